// Fleetdeck is a terminal operator console for a fleet of coding agents over many git working trees, and the daemon
// behind it.
package main

import (
	"os"

	"fleetdeck/fleet/cli"
)

// Set by the release build.
var version, commit, date string

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.Build{Version: version, Commit: commit, Date: date}))
}
