package daemon

import "fleetdeck/fleet"

// foreignIn gives the agents that work somewhere and are none of the roster's. It takes no lock, and is a second old at most.
func (d *Daemon) foreignIn(roster fleet.Roster) []fleet.ForeignAgent {
	if d.foreign == nil {
		return nil
	}
	ours := make(map[string]bool, len(roster.Members)+len(roster.Launches))
	for _, m := range roster.Members {
		ours[m.ID] = m.Alive()
	}
	for _, l := range roster.Launches {
		ours[l.ID] = true
	}
	return d.foreign.Agents(func(member string) bool { return ours[member] })
}
