package daemon

import (
	"context"

	"fleetdeck/fleet"
)

// StandIn holds the place of the daemon of a state directory: until it is closed none runs there, so that what is on record
// stays as it is. Members and launches go on; the next daemon adopts them.
type StandIn struct{ reg *registry }

// Stand takes the daemon's place, or fails where one runs.
func Stand(ctx context.Context, dir string, now func() fleet.Instant) (*StandIn, error) {
	reg, err := openRegistry(ctx, dir, now)
	if err != nil {
		return nil, err
	}
	return &StandIn{reg}, nil
}

// Roster is who is on record: members, dead ones among them, and launches.
func (s *StandIn) Roster() fleet.Roster { return s.reg.view().roster }

// Knows reports whether anything on record came of the reservation id.
func (s *StandIn) Knows(id string) bool {
	_, ok := s.reg.view().byReservation(id)
	return ok
}

// Close lets the next daemon begin.
func (s *StandIn) Close() error { return s.reg.close() }
