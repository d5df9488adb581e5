package proof

import (
	"fmt"

	"fleetdeck/fleet"
)

// Tree is the state of one tree: its entry in the book, and the agent that the daemon has there.
//
//	           Reserve              Spawn               List             Exit
//	(nothing) ─────────► entry X ──────────► entry X ────────► entry X ────────► (nothing)
//	                       │                 launch X          member X
//	                       └─ Release, Settle, Prune drop the entry, by id
//
// An entry is in nobody's way once its worker was listed, or its grace is over.
type Tree struct {
	// Entry is the id of the reservation that stands, Early and Late bound the end of its grace.
	Entry       string
	Early, Late int64
	// Listed says that the worker of Entry is, or was, a member.
	Listed bool
	// Swept says that some prunes are not on record: once its grace is over the entry may be gone.
	Swept bool
	// Loose says that the daemon's steps for Entry are not on record: it may be settled already.
	Loose bool
	// Agent is the reservation that the launch or member came by, AgentLate the last moment at which it may be listed.
	Agent     string
	AgentLate int64
	Member    bool
	// AgentLoose says of the agent what Loose says of the entry: it may be listed by now.
	AgentLoose bool
}

func (s Tree) String() string {
	if s == (Tree{}) {
		return "free"
	}
	out := ""
	if s.Entry != "" {
		out = "entry " + short(s.Entry)
		if s.Listed {
			out += " (listed)"
		}
		if s.Loose {
			out += " (perhaps gone)"
		}
	}
	if s.Agent != "" {
		what := "launch"
		if s.Member {
			what = "member"
		}
		out += fmt.Sprintf(" %s %s", what, short(s.Agent))
	}
	return out
}

// Step carries out op, and reports whether its answer is one that a fleet in state s may give.
func (s Tree) Step(op Op) (Tree, bool) {
	switch op.Kind {
	case Reserve:
		return s.reserve(op)
	case Release:
		return s.release(op)
	case Settle:
		if op.Result != No && s.Entry == op.ID {
			return s.dropped(), true
		}
		return s, true
	case Prune:
		return s.prune(op)
	case Spawn:
		return s.spawn(op)
	case List:
		return s.list(op)
	case Exit:
		if op.Result == No || s.Agent != op.ID {
			return s, op.Result != Done
		}
		s.Agent, s.AgentLate, s.Member, s.AgentLoose = "", 0, false, false
		return s, true
	case Look:
		same := s.Entry == op.ID || op.ID == "" && s.perhapsGone(op.Return)
		return s, same && s.Agent == op.By
	}
	return s, false
}

// pending reports whether the entry stands in the way of a decision that was made by the moment to.
func (s Tree) pending(to int64) bool {
	return s.Entry != "" && !s.Listed && !s.Loose && to < s.Early
}

// perhapsGone reports whether the entry may have been dropped off the record by the moment to.
func (s Tree) perhapsGone(to int64) bool {
	return s.Entry == "" || s.Loose || s.Swept && to >= s.Early
}

func (s Tree) dropped() Tree {
	s.Entry, s.Early, s.Late, s.Listed, s.Loose, s.Swept = "", 0, 0, false, false, false
	return s
}

func (s Tree) reserve(op Op) (Tree, bool) {
	free := s.Agent == "" && !s.pending(op.Return)
	switch {
	case op.Result == Done && !free:
		return s, false
	case op.Result == Done, op.Result == Unknown && free:
		s = s.dropped()
		s.Entry, s.Early, s.Late, s.Swept = op.ID, op.Early, op.Late, op.Hidden
		return s, true
	case op.Result == Unknown:
		return s, true
	}
	switch op.Code {
	case fleet.CodeTreeReserved:
		byEntry := s.Entry == op.By && (s.Loose || !s.Listed && op.Call < s.Late)
		byLaunch := s.Agent == op.By && !s.Member
		return s, byEntry || byLaunch
	case fleet.CodeTreeOccupied:
		return s, s.Agent == op.By && (s.Member || s.AgentLoose)
	}
	return s, true // any doubt may refuse
}

func (s Tree) release(op Op) (Tree, bool) {
	switch op.Result {
	case Done:
		return s.dropped(), s.Entry == op.By && (op.ID == "" || op.ID == op.By)
	case Unknown:
		if s.Entry == op.ID || op.ID == "" {
			return s.dropped(), true
		}
		return s, true
	}
	if op.By != "" {
		return s, s.Entry == op.By && op.By != op.ID
	}
	return s, s.perhapsGone(op.Return) || op.ID != "" && s.Entry != op.ID
}

// prune is the part of a prune that is about this tree: op.By is what it dropped here.
func (s Tree) prune(op Op) (Tree, bool) {
	listed := s.Listed || s.Loose || s.Member && s.Agent == s.Entry
	over := op.Return >= s.Early
	switch {
	case op.Result == Unknown && s.Entry != "" && (listed || over):
		return s.dropped(), true
	case op.Result != Done:
		return s, true
	case op.By == "":
		return s, s.perhapsGone(op.Return) || op.Call < s.Late
	}
	return s.dropped(), s.Entry == op.By && (listed || over)
}

func (s Tree) spawn(op Op) (Tree, bool) {
	licensed := s.Entry == op.ID && op.Call < s.Late
	switch {
	case op.Result != No && licensed && s.Agent == "":
		s.Agent, s.AgentLate, s.Member = op.ID, s.Late, false
		s.Loose, s.AgentLoose = op.Hidden, op.Hidden
		return s, true
	case op.Result != No:
		return s, op.Result == Unknown
	}
	switch op.Code {
	case fleet.CodeReservationStale:
		return s, s.perhapsGone(op.Return) || s.Entry != op.ID || op.Return >= s.Early
	case fleet.CodeTreeOccupied, fleet.CodeTreeReserved:
		return s, s.Agent != "" && s.Agent == op.By
	case fleet.CodeSlotUnavailable:
		return s, licensed // the fence comes first
	}
	return s, true
}

func (s Tree) list(op Op) (Tree, bool) {
	if op.Result == No || s.Agent != op.ID || s.Member || op.Call >= s.AgentLate {
		return s, op.Result != Done
	}
	s.Member = true
	s.Listed = s.Listed || s.Entry == op.ID
	return s, true
}
