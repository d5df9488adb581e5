package proof

import (
	"fmt"
	"strings"

	"fleetdeck/fleet"
)

// Kind is what an operation does.
type Kind string

// The kinds.
const (
	Reserve Kind = "reserve" // write a reservation
	Release Kind = "release" // drop one of a tree, by id or whatever stands there
	Settle  Kind = "settle"  // drop one by id
	Prune   Kind = "prune"   // drop what may be dropped, in all trees
	Spawn   Kind = "spawn"   // ask the daemon for an agent
	List    Kind = "list"    // a launch becomes a member
	Exit    Kind = "exit"    // an agent, or a launch, is gone
	Look    Kind = "look"    // see what stands while nothing is under way
)

// Result is how an operation ended.
type Result string

// The results. The zero value means that nobody lived to tell.
const (
	Unknown Result = ""
	Done    Result = "done"
	No      Result = "no"
)

// Op is one operation as its caller saw it.
type Op struct {
	Kind   Kind
	Client int
	// Tree is empty for a prune, which is about all trees.
	Tree string
	// ID is the reservation that the operation is about.
	ID string
	// Call and Return are CLOCK_MONOTONIC in nanoseconds. Of an unknown result Return is when the caller was seen to be dead: what it
	// did by itself it did before, what it asked others for may come later.
	Call, Return int64
	Result       Result
	// Code is why the answer was no.
	Code fleet.Code
	// By is the reservation of who was in the way or, of a release, the one that was found.
	By string
	// Early and Late bound the end of a reservation's grace. They are equal where it is known.
	Early, Late int64
	// Pool is the slot pool that a spawn asks of, Slot what it was given.
	Pool, Slot string
	// Dropped is what a prune dropped.
	Dropped []fleet.Pruned
	// Hidden says of a spawn that the daemon's own steps after it are not on record: from here on its worker may be
	// listed, and its entry settled, at any time. Of a reserve it says that some prunes are not on record.
	Hidden bool
}

func (op Op) String() string {
	var b strings.Builder
	b.WriteString(string(op.Kind))
	if op.ID != "" {
		b.WriteString(" " + short(op.ID))
	}
	switch op.Result {
	case Unknown:
		b.WriteString(" → ?")
	case Done:
		b.WriteString(" → done")
	case No:
		fmt.Fprintf(&b, " → no %s", op.Code)
	}
	if op.By != "" {
		b.WriteString(" by " + short(op.By))
	}
	if op.Slot != "" {
		b.WriteString(" slot " + op.Slot)
	}
	for _, p := range op.Dropped {
		fmt.Fprintf(&b, " dropped %s (%s)", short(p.ID), p.Reason)
	}
	return b.String()
}

// short is the part of an id that tells it from the others.
func short(id string) string { return id[max(0, len(id)-8):] }
