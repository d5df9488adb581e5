package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"fleetdeck/fleet"
)

// index is a snapshot made ready to be drawn: sorted, counted, and with each thing found by its name. It is made once
// for each snapshot, so that drawing touches the visible rows only.
type index struct {
	fleet.Snapshot
	loaded bool

	member map[string]*fleet.Member
	launch map[string]*fleet.Launch
	entry  map[string]*fleet.ReservationRow // by tree

	// root is the directory that all trees lie in, where naming it in each row would only cost width; or empty.
	root string

	trees        []*fleet.TreeRow
	members      []*fleet.Member
	reservations []*fleet.ReservationRow
	slots        []*fleet.Slot
	queue        []*fleet.QueueRow
	history      []*fleet.Deed
	nodes        []*fleet.Node

	lost map[string]bool // other hosts, by name: of this one its own daemon tells

	tree map[string]*fleet.TreeRow

	free, reserved, occupied, foreign, unsure int
	alive, waiting, mismatched                int
	outdated, queued, givenUp                 int
	droppable                                 int
}

func newIndex(s fleet.Snapshot) index {
	ix := index{
		Snapshot: s, loaded: true,
		member: make(map[string]*fleet.Member, len(s.Members)),
		launch: make(map[string]*fleet.Launch, len(s.Launches)),
		entry:  make(map[string]*fleet.ReservationRow, len(s.Reservations)),
	}
	ix.trees = sorted(s.Trees, func(a, b *fleet.TreeRow) int { return cmp.Compare(a.Tree, b.Tree) })
	// The living first: who has ended is history.
	ix.members = sorted(s.Members, func(a, b *fleet.Member) int {
		if a.Alive() != b.Alive() {
			if a.Alive() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Tree, b.Tree), cmp.Compare(a.ID, b.ID))
	})
	// Those that hold a tree first: the others are waiting to be pruned.
	ix.reservations = sorted(s.Reservations, func(a, b *fleet.ReservationRow) int {
		if a.Droppable != b.Droppable {
			if b.Droppable {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Tree, b.Tree), cmp.Compare(a.ID, b.ID))
	})
	ix.slots = sorted(knownSlots(s), func(a, b *fleet.Slot) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.Name, b.Name))
	})
	ix.queue = sorted(s.Queue, func(a, b *fleet.QueueRow) int { return cmp.Compare(a.ID, b.ID) })
	ix.history = make([]*fleet.Deed, len(s.History))
	for i := range s.History {
		ix.history[len(s.History)-1-i] = &s.History[i]
	}
	// The lost first: they want somebody.
	ix.nodes = sorted(s.Nodes, func(a, b *fleet.Node) int {
		if a.Lost != b.Lost {
			if a.Lost {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	ix.lost = make(map[string]bool)
	for _, n := range ix.nodes {
		if n.Lost && (s.Cluster == nil || n.Name != s.Cluster.Node) {
			ix.lost[n.Name] = true
		}
	}
	for _, q := range ix.queue {
		ix.queued++
		if q.State == taskGivenUp {
			ix.givenUp++
		}
	}
	ix.root = commonRoot(ix.trees)
	ix.tree = make(map[string]*fleet.TreeRow, len(ix.trees))
	for _, t := range ix.trees {
		ix.tree[t.Tree] = t
		switch t.Occupancy {
		case fleet.Free:
			ix.free++
		case fleet.Reserved:
			ix.reserved++
		case fleet.Taken:
			ix.occupied++
		case fleet.Foreign:
			ix.foreign++
		case fleet.Unsure:
			ix.unsure++
		}
	}
	for _, m := range ix.members {
		ix.member[m.ID] = m
		if !m.Alive() {
			continue
		}
		ix.alive++
		if m.State == fleet.StateWaiting {
			ix.waiting++
		}
		if m.CharterMismatch {
			ix.mismatched++
		} else if m.CharterOutdated {
			ix.outdated++
		}
	}
	for i := range s.Launches {
		ix.launch[s.Launches[i].ID] = &s.Launches[i]
	}
	for _, r := range ix.reservations {
		ix.entry[r.Tree] = r
		if r.Droppable {
			ix.droppable++
		}
	}
	return ix
}

// longRoot is how long a directory must be for rows to leave it out.
const longRoot = 24

// commonRoot is the directory that holds every one of the trees, on whichever host, if its name is long.
func commonRoot(trees []*fleet.TreeRow) string {
	if len(trees) < 2 {
		return ""
	}
	_, root := fleet.Where(trees[0].Tree)
	for _, t := range trees[1:] {
		_, path := fleet.Where(t.Tree)
		n := 0
		for n < min(len(root), len(path)) && root[n] == path[n] {
			n++
		}
		root = root[:n]
	}
	n := strings.LastIndexByte(root, '/')
	if n < longRoot {
		return ""
	}
	return root[:n]
}

// sorted is pointers to rows in order. The rows themselves belong to the snapshot and stay where they are.
func sorted[T any](rows []T, compare func(a, b *T) int) []*T {
	out := make([]*T, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	if !slices.IsSortedFunc(out, compare) {
		slices.SortStableFunc(out, compare)
	}
	return out
}

// age is how old something seen at then is, 0 where that is unknown or lies ahead.
func age(now fleet.Instant, then time.Time) time.Duration {
	if then.IsZero() {
		return 0
	}
	return max(now.Wall.Sub(then), 0)
}
