package cli

import (
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/process"
)

// internal runs the parts of the program that only the program itself starts: the holder of a terminal, also in a pane, the last gate
// before an agent, and the hooks of agents. They come before everything else, so that they load no configuration and take no flags.
func internal(args []string) (code int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch args[0] {
	case "holder":
		if len(args) == 3 && args[1] == "--dir" {
			return embedded.HolderMain(args[2]), true
		}
	case "hook":
		return hookMain(args[1:], process.Now()), true
	case "pane":
		if len(args) == 3 && args[1] == "--dir" {
			return embedded.PaneMain(args[2]), true
		}
	case "agent-exec":
		return embedded.GateMain(args[1:]), true
	}
	return 0, false
}
