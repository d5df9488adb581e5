// Package ledger says what the rooms of the program need of the place where reservations stand, wherever that is: one file on
// one host (fleet/book), or etcd for a fleet of many (fleet/cluster). Dispatcher, daemon, keeper, displays and commands know
// this interface and no more.
//
// It is a leaf: the words, and nothing that does anything.
package ledger

import (
	"context"
	"time"

	"fleetdeck/fleet"
)

// View asks the daemon who is there.
type View func(context.Context) (fleet.Roster, error)

// Draft is a reservation before it is written.
type Draft struct {
	Tree fleet.Tree
	// Also are further trees: all are reserved under the one id, or none.
	Also       []fleet.Tree
	Role       fleet.Role
	Profile    string
	Grace      time.Duration
	Dispatcher fleet.Dispatcher
	// ID is the reservation's id; empty means a new one.
	ID string
	// Renew says that the reservation ID may stand already: it begins anew.
	Renew bool
	// BesideForeign reserves also where an agent works that fleetdeck did not start.
	BesideForeign bool
}

// Claim is what a member that runs on this host holds, by the record of its daemon.
type Claim struct {
	// ID is the reservation under which it is held, Member the member's own.
	ID, Member string
	// Trees begins with the tree that the agent was started in.
	Trees   []fleet.Tree
	Role    fleet.Role
	Profile string
	// Slot is the one that it fills; empty where it fills none.
	Slot  string
	Since time.Time
}

// Retaken is what became of a claim that was found not to be held: it is held again where Err is nil. Otherwise somebody else has one
// of its trees, or its slot, and Err says who: its agent must end.
type Retaken struct {
	ID  string
	Err error
}

// Ledger is where the reservations of this host's fleet stand. A tree and its slot go through it like this:
//
//	         Reserve            Admit              Bind            Vacate
//	(free) ───────────► reserved ─────► launching ─────► member ──────────► (free)
//	   ▲                   │                │
//	   └───────────────────┴────────────────┘
//	     Settle, Release, or the grace runs out
//
// A ledger that is one host's leaves what is right of launching to that host's daemon, which alone can staff its trees: there Bind has
// nothing to do. Every change compares the reservation's id, and may be asked for again: what was done already is no error.
//
// A window is how long a call may wait for its turn, or for an answer. An error that is a [fleet.Refusal] says that nothing was
// changed, with the one exception [fleet.CodeOutcomeUnknown].
type Ledger interface {
	// Reserve reserves the draft's trees, and the slot that its role needs where the ledger keeps those, for the draft's grace, or says who
	// is in the way. Any doubt refuses. Where the outcome is unknown the entry that may stand comes with the error.
	Reserve(ctx context.Context, window time.Duration, draft Draft, view View) (fleet.Entry, error)

	// Admit is the fence at the daemon: it makes sure that the reservation id stands for tree and also, with its grace not over, and calls
	// admit with the entry of tree, whose deadline is no later than the reservation's end. One admit runs at a time. An error after admit
	// has returned none says that the reservation was dropped meanwhile, or may have been: what admit recorded must not be started.
	Admit(ctx context.Context, window time.Duration, tree, id string, admit func(fleet.Entry) error, also ...fleet.Tree) error

	// Bind makes the trees held under id those of the member agent: from here on no grace ends them, and only Vacate gives them back. It is
	// called once the launch is ready, and asks until ctx ends. An error means that the launch must not become a member.
	Bind(ctx context.Context, id, agent string) error

	// Settle drops the reservation id, of one tree or of several, in one change: its dispatch was refused, or its worker is listed. What is
	// bound by then stays.
	Settle(ctx context.Context, window time.Duration, id string) error

	// Retake makes what members hold held again, as after [Ledger.Bind], where it has been lost: with etcd's data, or because an operator
	// gave it back while this host was away. It gives those of the claims that were not held. Each is retaken whole or not at all. An
	// error says that nobody knows of the claims that are not among them, and proves nothing against any.
	Retake(ctx context.Context, claims []Claim) ([]Retaken, error)

	// Vacate gives back whatever is held under id: its agent has ended, or never came to be, and its processes are gone.
	Vacate(ctx context.Context, window time.Duration, id string) error

	// Release drops the reservation of tree by hand if its id is id; an empty id drops whatever reservation stands there. It reports
	// whether there was anything to drop.
	Release(ctx context.Context, window time.Duration, tree, id string) (dropped fleet.Entry, ok bool, err error)

	// Plan says what a prune would drop by the given roster; Prune drops it.
	Plan(roster fleet.Roster) (fleet.PruneReport, error)
	Prune(ctx context.Context, window time.Duration, roster fleet.Roster) (fleet.PruneReport, error)

	// Read gives the reservations as they stand, for display only. Held gives the ids under which this host's trees are held, and
	// whether each is bound.
	Read() ([]fleet.Entry, error)
	Held(ctx context.Context) (bound map[string]bool, err error)

	// Watch sends a token whenever what Read gives may have changed, or may be had again, until ctx ends.
	Watch(ctx context.Context) <-chan struct{}

	// Path says where the reservations are, for people.
	Path() string
}
