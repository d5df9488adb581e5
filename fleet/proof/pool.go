package proof

import (
	"strings"

	"fleetdeck/fleet"
)

// maxSlots bounds how many slots a pool of these histories has.
const maxSlots = 4

// Pool is the state of a slot pool: who holds each slot, in the order of their names. A slot is held from the daemon's
// accepting the spawn until the agent, or its launch, is gone.
type Pool [maxSlots]string

func (s Pool) describe(slots []string) string {
	var parts []string
	for i, name := range slots {
		if s[i] != "" {
			parts = append(parts, name+": "+short(s[i]))
		}
	}
	if parts == nil {
		return "free"
	}
	return strings.Join(parts, ", ")
}

// step carries out op on a pool of these slots, and reports whether its answer is right.
func (s Pool) step(slots []string, op Op) (Pool, bool) {
	switch op.Kind {
	case Spawn:
		return s.spawn(slots, op)
	case List:
		// A worker is listed on the slot that its launch reserved.
		if op.Result != Done || op.Slot == "" {
			return s, op.Result != Done
		}
		for i, name := range slots {
			if name == op.Slot {
				return s, s[i] == op.ID
			}
		}
		return s, false
	case Exit:
		for i := range s {
			if s[i] == op.ID && op.Result != No {
				s[i] = ""
			}
		}
		return s, true
	case Look:
		for i, name := range slots {
			if name == op.Slot {
				return s, s[i] == op.By
			}
		}
	}
	return s, false
}

func (s Pool) spawn(slots []string, op Op) (Pool, bool) {
	switch {
	case op.Result == Unknown:
		for i := range slots {
			if s[i] == "" {
				s[i] = op.ID // the first that is free
				break
			}
		}
		return s, true
	case op.Result == Done:
		for i, name := range slots {
			if name == op.Slot && s[i] == "" {
				s[i] = op.ID
				return s, true
			}
		}
		return s, false
	case op.Code == fleet.CodeSlotUnavailable && !op.Hidden:
		for i := range slots {
			if s[i] == "" {
				return s, false
			}
		}
	}
	return s, true
}
