package proof

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fleetdeck/fleet"
)

// Hold is what stands in a tree, or on a slot, of a fleet of many hosts.
//
//	          Reserve             List             Exit
//	(nothing) ───────► hold X ──────────► bound ─────────► (nothing)
//	                     └─ Settle, Release, or its lease has ended
//
// A lease may end late, by any time, and never before the grace is over.
type Hold struct {
	ID string
	// Early is the end of its grace: before it nothing but a drop by id ends what is not bound.
	Early int64
	Bound bool
}

// Holds are the places of one subject of a [Cluster], in the order of their names: the slots of a pool, or the one place that a
// tree is.
type Holds [maxSlots]Hold

// over reports whether the hold may have ended by itself by the moment to.
func (h Hold) over(to int64) bool { return !h.Bound && to >= h.Early }

// free reports whether a reservation that was answered at the moment to may have found nothing.
func (h Hold) free(to int64) bool { return h.ID == "" || h.over(to) }

func (s Holds) describe(places []string) string {
	var parts []string
	for i, name := range places {
		if h := s[i]; h.ID != "" {
			what := "hold "
			if h.Bound {
				what = "member "
			}
			parts = append(parts, strings.TrimSpace(name+" "+what+short(h.ID)))
		}
	}
	if parts == nil {
		return "free"
	}
	return strings.Join(parts, ", ")
}

// at is where id stands, or -1.
func (s Holds) at(id string) int {
	return slices.IndexFunc(s[:], func(h Hold) bool { return id != "" && h.ID == id })
}

// step carries out op on these places, and reports whether its answer is right.
func (s Holds) step(places []string, op Op) (Holds, bool) {
	i := s.at(op.ID)
	switch op.Kind {
	case Reserve:
		return s.reserve(places, op)
	case Spawn:
		switch {
		case op.Result == Done:
			return s, i >= 0 && !s[i].Bound && op.Call < s[i].Early
		case op.Code == fleet.CodeReservationStale:
			return s, i < 0 || s[i].Bound || op.Return >= s[i].Early
		}
		return s, true
	case List:
		switch {
		case op.Result == Done && (i < 0 || !s[i].Bound && op.Call >= s[i].Early):
			return s, false
		case op.Result != No && i >= 0:
			s[i].Bound = true
		case op.Code == fleet.CodeReservationStale:
			return s, i < 0 || s[i].over(op.Return)
		}
		return s, true
	case Settle, Exit:
		if op.Result != No && i >= 0 && (op.Kind == Exit || !s[i].Bound) {
			s[i] = Hold{}
		}
		return s, true
	case Release:
		return s.release(op)
	case Look:
		place := max(0, slices.Index(places, op.Slot))
		h := s[place]
		return s, h.ID == op.ID && h.Bound == (op.By != "") || op.ID == "" && h.free(op.Return)
	}
	return s, false
}

func (s Holds) reserve(places []string, op Op) (Holds, bool) {
	taken := Hold{ID: op.ID, Early: op.Early}
	switch op.Result {
	case Done, Unknown:
		i := slices.Index(places, op.Slot)
		if i < 0 || !s[i].free(op.end()) {
			return s, op.Result == Unknown
		}
		s[i] = taken
		return s, true
	}
	switch op.Code {
	case fleet.CodeTreeReserved:
		i := s.at(op.By)
		return s, i >= 0 && !s[i].Bound
	case fleet.CodeTreeOccupied:
		i := s.at(op.By)
		return s, i >= 0 && s[i].Bound
	case fleet.CodeSlotUnavailable:
		for i := range places {
			if s[i].ID == "" {
				return s, false
			}
		}
	}
	return s, true // any doubt may refuse
}

// release is by hand: of what id names, or of whatever stands and is not bound.
func (s Holds) release(op Op) (Holds, bool) {
	switch i := s.at(op.By); {
	case op.Result == Done && i >= 0:
		if s[i].Bound {
			return s, false
		}
		s[i] = Hold{}
	case op.Result == Unknown:
		if i = max(0, s.at(op.ID)); (op.ID == "" || s[i].ID == op.ID) && !s[i].Bound {
			s[i] = Hold{}
		}
	case op.Result == No && op.Code == "" && op.By == "":
		return s, s[0].free(op.Return) || s[0].Bound
	case op.Result == No && op.Code == "" && op.By != op.ID && op.ID != "":
		return s, i >= 0
	}
	return s, true
}

// end is the last moment at which op may have been carried out.
func (op Op) end() int64 {
	if op.Result == Unknown {
		return math.MaxInt64
	}
	return op.Return
}

// Cluster is a history of a fleet of many hosts, from its beginning, when nothing is held.
type Cluster struct {
	Trees []string
	// Slots names the slots of each pool.
	Slots map[string][]string
	Ops   []Op
}

// Check looks for an order that explains the history, for each tree and pool by itself, as [Window.Check] does.
func (c Cluster) Check(limit time.Duration) error {
	subject := func(name string, places []string, ops []Op) error {
		step := func(s Holds, op Op) (Holds, bool) { return s.step(places, op) }
		describe := func(s Holds) string { return s.describe(places) }
		return decide(name, Holds{}, step, describe, ops, limit)
	}
	for _, tree := range c.Trees {
		var ops []Op
		for _, op := range c.Ops {
			if op.Tree == tree {
				op.Slot = "" // a tree is one place, whatever slot is held with it
				if op.Code == fleet.CodeSlotUnavailable {
					op.Code = "" // that is the pool's to explain
				}
				ops = append(ops, op)
			}
		}
		if err := subject(tree, []string{""}, ops); err != nil {
			return err
		}
	}
	for name, slots := range c.Slots {
		var ops []Op
		for _, op := range c.Ops {
			// Who was in the way in a tree is the tree's to explain.
			if op.Pool == name && (op.Result != No || op.Code == fleet.CodeSlotUnavailable || op.Kind == List) {
				ops = append(ops, op)
			}
		}
		if err := subject("pool "+name, slots, ops); err != nil {
			return err
		}
	}
	return nil
}

// Fenced checks that who worked later in a place came by a younger fence.
func Fenced(stays []Stay, fences map[string]int64) error {
	last := map[string]Stay{}
	for _, s := range slices.SortedFunc(slices.Values(stays), func(a, b Stay) int { return int(a.From - b.From) }) {
		if was, ok := last[s.Place]; ok && was.ID != s.ID && fences[was.ID] >= fences[s.ID] {
			return fmt.Errorf("%s: %s came after %s, by fence %d after %d", s.Place, s.ID, was.ID, fences[s.ID], fences[was.ID])
		}
		last[s.Place] = s
	}
	return nil
}
