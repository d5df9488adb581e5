package cli

import (
	"cmp"
	"context"
	"slices"
	"time"

	"fleetdeck/fleet"
)

// slotUnsure is the state of a slot that nobody here has, while the cluster does not say whether another host does.
const slotUnsure = "unsure"

// slotRows adds to this host's slots who of the other hosts has them.
func (s *session) slotRows(ctx context.Context, here []fleet.Slot) []fleet.Slot {
	if s.cluster == nil {
		return append([]fleet.Slot{}, here...)
	}
	nodes, err := s.nodes(ctx)
	if err == nil {
		return s.fleetSlots(nodes)
	}
	s.warn("only this host's members are shown: %v", err)
	return s.slotsUnsure(here)
}

// slotsDiffer says so where the fleet goes by another slot table than this host, and is empty where it does not, or nobody can say.
func (s *session) slotsDiffer(ctx context.Context) string {
	if s.cluster == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, s.conf.LockWait)
	defer cancel()
	r := fleet.RefusalOf(s.cluster.SlotsDiffer(ctx))
	if r == nil || r.Code != fleet.CodeSlotsDiffer {
		return ""
	}
	return r.Message
}

func (s *session) warnOfSlots(differ string) {
	if differ != "" {
		s.warn("this host is sent nobody: %s", differ)
	}
}

// slotsUnsure is this host's slots while nobody can say who of the others has them.
func (s *session) slotsUnsure(here []fleet.Slot) []fleet.Slot {
	rows := append([]fleet.Slot{}, here...)
	for i := range rows {
		if rows[i].State == fleet.SlotFree {
			rows[i].State = slotUnsure
		} else {
			rows[i].Node = s.conf.Cluster.Node
		}
	}
	return rows
}

// nodes asks the cluster for its hosts, as long as a dispatch would wait for it.
func (s *session) nodes(ctx context.Context) ([]fleet.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, s.conf.LockWait)
	defer cancel()
	return s.cluster.Nodes(ctx)
}

// fleetSlots are the configured slots, with who has them by what the hosts hold, and those that are held without being configured here.
func (s *session) fleetSlots(nodes []fleet.Node) []fleet.Slot {
	type key struct{ role, profile, name string }
	held := map[key]fleet.Slot{}
	for _, n := range nodes {
		for _, t := range n.Held {
			k := key{t.Role, t.Profile, t.Slot}
			if _, seen := held[k]; t.Slot == "" || seen {
				continue // a further tree of the same agent
			}
			row := fleet.Slot{Node: n.Name, Name: t.Slot, Role: t.Role, Profile: t.Profile, State: fleet.SlotReserved, Reservation: t.ID, Tree: t.Tree, Since: t.ReservedAt}
			if t.State == "member" {
				row.State = fleet.SlotBound
			}
			for _, m := range n.Members {
				if m.Reservation == t.ID {
					row.Member, row.Tree, row.Since = m.ID, m.Tree, m.ListedAt
				}
			}
			held[k] = row
		}
	}
	rows := []fleet.Slot{}
	for _, c := range s.conf.Slots {
		k := key{c.Role, c.Profile, c.Name}
		row, ok := held[k]
		if !ok {
			row = fleet.Slot{Name: c.Name, Role: c.Role, Profile: c.Profile, State: fleet.SlotFree}
		}
		delete(held, k)
		rows = append(rows, row)
	}
	var more []fleet.Slot
	for _, row := range held {
		more = append(more, row)
	}
	slices.SortFunc(more, func(a, b fleet.Slot) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.Name, b.Name))
	})
	return append(rows, more...)
}

func (s *session) printSlots(rows []fleet.Slot, now time.Time) error {
	t := newTable(s.out, "SLOT", "ROLE", "PROFILE", "STATE", "MEMBER", "TREE", "SINCE")
	for _, sl := range rows {
		t.row(sl.Name, sl.Role, sl.Profile, sl.State, sl.Member, placed(sl.Node, sl.Tree), age(sl.Since, now))
	}
	return t.flush()
}

// treeRows are the trees of this host, and with all those of the others that are not free.
func (s *session) treeRows(ctx context.Context, here []fleet.TreeRow, all bool) ([]fleet.TreeRow, error) {
	rows := append([]fleet.TreeRow{}, here...)
	err := s.others(ctx, all, func(node string) {
		for i := range rows {
			rows[i].Node = node
		}
	}, func(n fleet.Node, t fleet.NodeTree, left time.Duration) {
		row := fleet.TreeRow{Node: n.Name, Tree: t.Tree, Occupancy: fleet.Taken, Reservation: t.ID}
		if t.State != "member" {
			row.Occupancy, row.RemainingS = fleet.Reserved, left.Seconds()
		}
		for _, m := range n.Members {
			if m.Reservation == t.ID {
				row.Member = m.ID
			}
		}
		rows = append(rows, row)
	})
	return rows, err
}

// reservationRows are the reservations of this host, and with all those of the others.
func (s *session) reservationRows(ctx context.Context, here []fleet.ReservationRow, all bool) ([]fleet.ReservationRow, error) {
	rows := append([]fleet.ReservationRow{}, here...)
	err := s.others(ctx, all, func(node string) {
		for i := range rows {
			rows[i].Node = node
		}
	}, func(n fleet.Node, t fleet.NodeTree, left time.Duration) {
		if t.State == "member" {
			return
		}
		rows = append(rows, fleet.ReservationRow{Node: n.Name,
			Tree: t.Tree, ID: t.ID, Role: t.Role, Profile: t.Profile, Slot: t.Slot, ReservedAt: t.ReservedAt, ExpiresAt: t.ExpiresAt,
			RemainingS: left.Seconds(), Verdict: fleet.VerdictPending, Dispatcher: t.Dispatcher,
		})
	})
	return rows, err
}

// others goes through what the other hosts hold, where all is set and there are any; named is told what this one is called. A grace is
// by the other host's clock: what is left of it is about right.
func (s *session) others(ctx context.Context, all bool, named func(node string), each func(n fleet.Node, t fleet.NodeTree, left time.Duration)) error {
	if !all || s.cluster == nil {
		return nil
	}
	nodes, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	named(s.conf.Cluster.Node)
	for _, n := range nodes {
		if n.Name == s.conf.Cluster.Node {
			continue
		}
		for _, t := range n.Held {
			each(n, t, max(0, time.Until(t.ExpiresAt)))
		}
	}
	return nil
}

// placed is path as a list of more than one host names it.
func placed(node, path string) string {
	if node == "" {
		return shorten(path)
	}
	return node + ":" + path
}
