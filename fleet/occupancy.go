package fleet

import (
	"fmt"
	"strings"
	"time"
)

// Occupied says what a tree is.
type Occupied string

// The occupancies.
const (
	Free     Occupied = "free"
	Reserved Occupied = "reserved"
	Taken    Occupied = "occupied"
	Foreign  Occupied = "foreign"
	// Unsure is for display alone, and never a decision: file or daemon cannot be asked, so that nobody knows it to be free.
	Unsure Occupied = "unknown"
)

// Holding is the answer to "may somebody be sent into this tree", and who is in the way.
type Holding struct {
	State Occupied
	// Member is the live member of an occupied tree.
	Member *Member
	// Launch is the launch that holds a reserved tree, where the daemon has one.
	Launch *Launch
	// Entry is the reservation that holds a reserved tree, where the file has one.
	Entry *Entry
	// Remaining is what is left of the grace of a reserved tree.
	Remaining time.Duration
	// Foreign is an agent in the tree that fleetdeck did not start, whoever else is there.
	Foreign *ForeignAgent
}

// Free reports whether somebody may be sent. Beside a foreign agent only who says so may.
func (h Holding) Free(besideForeign bool) bool {
	return h.State == Free || h.State == Foreign && besideForeign
}

// ReservationID is the id of the reservation that the holder came by, or empty.
func (h Holding) ReservationID() string {
	switch {
	case h.Member != nil:
		return h.Member.Reservation
	case h.Launch != nil:
		return h.Launch.Reservation
	case h.Entry != nil:
		return h.Entry.ID
	}
	return ""
}

// Refusal words what is in the way of a dispatch into t.
func (h Holding) Refusal(t Tree, now Instant) *Refusal {
	switch h.State {
	case Taken:
		return Refuse(CodeTreeOccupied, "%s is occupied by member %s (%s, %s)",
			t.Path, h.Member.ID, h.Member.Role, h.Member.State).
			WithHint("look at it with 'fleetdeck screen %s', or end it with 'fleetdeck stop %s'", h.Member.ID, h.Member.ID)
	case Foreign:
		return h.Foreign.Refusal(t, now)
	}
	by := "a launch"
	if e := h.Entry; e != nil {
		by = "reservation " + e.ID
		if e.ID == "" {
			by = "an entry without an id"
		}
		if p := e.Dispatcher; p.Program != "" {
			by += fmt.Sprintf(" of %s (pid %d)", strings.TrimSpace(p.Program), p.Pid)
		}
	} else if h.Launch != nil {
		by = "launch " + h.Launch.ID
	}
	return Refuse(CodeTreeReserved, "%s is reserved by %s, %.0f s left", t.Path, by, max(0, h.Remaining.Seconds())).
		WithHint("wait for its worker, or drop the reservation by hand with 'fleetdeck release'")
}

// Occupancy is the rule of the whole program: a tree is occupied by a live member; else reserved by a launch, or by
// an entry whose worker is not listed and whose grace is not over; else foreign where an agent works in it that nobody
// sent; else free. An entry whose worker is listed is skipped, so an unpruned file costs nothing.
//
// Who decides on the answer holds the admission lock, and read entries before roster.
func Occupancy(t Tree, entries []Entry, roster Roster, now Instant) Holding {
	h := held(t, entries, roster, now)
	for i := range roster.Foreign {
		if roster.Foreign[i].In(t) {
			h.Foreign = &roster.Foreign[i]
			break
		}
	}
	if h.State == Free && h.Foreign != nil {
		h.State = Foreign
	}
	return h
}

// held is who of the fleet holds t.
func held(t Tree, entries []Entry, roster Roster, now Instant) Holding {
	for i := range roster.Members {
		if m := &roster.Members[i]; m.Alive() && m.Holds(t) {
			return Holding{State: Taken, Member: m}
		}
	}
	h := Holding{State: Free}
	for i := range roster.Launches {
		if l := &roster.Launches[i]; l.Holds(t) {
			h = Holding{State: Reserved, Launch: l, Remaining: l.Deadline.Remaining(now)}
			break
		}
	}
	for i := range entries {
		e := &entries[i]
		if !t.Same(e.On()) || roster.Listed(e.ID) || e.Expired(now) {
			continue
		}
		if h.State == Free {
			h = Holding{State: Reserved, Remaining: e.Remaining(now)}
		}
		if h.Launch == nil || h.Launch.Reservation == e.ID {
			h.Entry = e
		}
		break
	}
	return h
}
