package process

import "fleetdeck/fleet"

// Marked gives the living processes with marker in their environment.
func Marked(marker string) []fleet.Process {
	all, _ := table()
	var ps []fleet.Process
	for _, e := range all {
		if !e.zombie && marked(e.Pid, marker) {
			ps = append(ps, e.Process)
		}
	}
	return ps
}
