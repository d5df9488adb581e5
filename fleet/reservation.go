package fleet

import (
	"path"
	"time"
)

// Reservation is the trace that a dispatch leaves between the daemon accepting it and listing its worker.
//
//	             Reserve                    the worker is listed
//	(no entry) ───────────► pending ─────────────────────────────► listed ──┐
//	     ▲                     │  the dispatch was provably refused         │
//	     │                     ├────────────────────────────────────────┐   │
//	     │                     │  an operator released it by hand       │   │
//	     │                     ├────────────────────────────────────────┤   │
//	     │                     │  its grace ran out                     │   │
//	     │                     └──────► expired ──┐                     │   │
//	     └────────────────────────────────────────┴─────────────────────┴───┘
//	                        dropped under the admission lock, by id
//
// Its writer's exit is no reason to end it. Expired and listed are what a reader makes of an entry; nothing is written
// when an entry passes into them, and occupancy does not wait for it to be dropped.
type Reservation struct {
	// ID is unique for ever. Every change of the entry compares it.
	ID         string     `json:"id"`
	Role       Role       `json:"role"`
	Profile    string     `json:"profile"`
	Slot       string     `json:"slot"`
	File       FileID     `json:"file,omitzero"`
	Dispatcher Dispatcher `json:"dispatcher,omitzero"`
	ReservedAt time.Time  `json:"reserved_at,omitzero"`
	ExpiresAt  time.Time  `json:"expires_at"`
	Boot       BootStamp  `json:"boot,omitzero"`
}

// Dispatcher says who wrote a reservation.
type Dispatcher struct {
	Pid     int    `json:"pid"`
	Host    string `json:"host"`
	Program string `json:"program"`
	// Machine tells apart hosts that share a name.
	Machine string `json:"machine,omitempty"`
}

// BootStamp is a deadline on the monotonic clock of one boot.
type BootStamp struct {
	ID         string `json:"id"`
	DeadlineNS int64  `json:"deadline_ns"`
}

// Deadline is a moment that a clock step can neither shorten nor stretch on the boot where it was set.
type Deadline struct {
	Wall time.Time `json:"wall"`
	Boot BootStamp `json:"boot,omitzero"`
}

// DeadlineAfter is the deadline d after now.
func DeadlineAfter(now Instant, d time.Duration) Deadline {
	return Deadline{
		Wall: now.Wall.Add(d).UTC(),
		Boot: BootStamp{ID: now.Boot, DeadlineNS: int64(now.Mono + d)},
	}
}

// Remaining is the time from now until d, by the monotonic clock where d is of this boot. It is negative once d has passed.
func (d Deadline) Remaining(now Instant) time.Duration {
	if d.Boot.ID != "" && d.Boot.ID == now.Boot {
		return time.Duration(d.Boot.DeadlineNS) - now.Mono
	}
	return d.Wall.Sub(now.Wall)
}

// Deadline is the end of the reservation's grace.
func (r Reservation) Deadline() Deadline { return Deadline{Wall: r.ExpiresAt, Boot: r.Boot} }

// Stale reports whether this host wrote r on an earlier boot: nothing that it stood for can be running.
func (r Reservation) Stale(now Instant) bool {
	if r.Boot.ID == "" || now.Boot == "" || r.Boot.ID == now.Boot || r.Dispatcher.Host != now.Host {
		return false
	}
	return r.Dispatcher.Machine == "" || now.Machine == "" || r.Dispatcher.Machine == now.Machine
}

// Remaining is what is left of r's grace; zero or less means that it has run out.
func (r Reservation) Remaining(now Instant) time.Duration {
	left := r.Deadline().Remaining(now)
	if r.Stale(now) && left > 0 {
		return 0
	}
	return left
}

// Expired reports whether r's grace has run out.
func (r Reservation) Expired(now Instant) bool { return r.Remaining(now) <= 0 }

// Verdict is what occupancy makes of a reservation.
type Verdict string

// The verdicts.
const (
	VerdictPending Verdict = "pending" // holds its tree
	VerdictListed  Verdict = "listed"  // its worker is a member; may be dropped
	VerdictExpired Verdict = "expired" // its grace ran out; may be dropped
	// VerdictInvalid is an entry without an id, or under a key that is no clean absolute path. It holds its tree until its
	// time is over, since whoever wrote it meant something; then it may be dropped.
	VerdictInvalid Verdict = "invalid"
)

// Entry is a reservation where it stands in the file.
type Entry struct {
	Tree string `json:"tree"`
	Reservation
}

// On is the tree that e stands for, also where a foreign writer spelled its key with a slash at the end or with dots.
func (e Entry) On() Tree {
	if !path.IsAbs(e.Tree) {
		return Tree{Path: e.Tree, File: e.File}
	}
	return Tree{Path: path.Clean(e.Tree), File: e.File}
}

// Valid reports whether e can be told from every other entry and names a place.
func (e Entry) Valid() bool { return e.ID != "" && path.IsAbs(e.Tree) && path.Clean(e.Tree) == e.Tree }

// Judge gives the verdict on e and whether it may be dropped.
func Judge(e Entry, roster Roster, now Instant) (v Verdict, droppable bool) {
	switch {
	case roster.Listed(e.ID):
		return VerdictListed, true
	case !e.Valid():
		return VerdictInvalid, e.Expired(now)
	case e.Expired(now):
		return VerdictExpired, true
	}
	return VerdictPending, false
}
