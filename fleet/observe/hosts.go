package observe

import (
	"context"
	"slices"

	"fleetdeck/fleet"
)

// Cluster tells of the hosts of a fleet of many, as the cluster's ledger does.
type Cluster interface {
	// Follow calls tell, one call at a time, whenever something changed, until ctx ends. The nodes are nil until the cluster was heard,
	// and stay as they were while it is not.
	Follow(ctx context.Context, tell func(nodes []fleet.Node, info fleet.ClusterInfo))
}

// hosts is what the cluster told last, with the rows that it makes.
type hosts struct {
	nodes []fleet.Node
	info  fleet.ClusterInfo

	trees        []fleet.TreeRow
	members      []fleet.Member
	reservations []fleet.ReservationRow
	slots        map[slotKey]fleet.Slot // those that another host has
}

type slotKey struct {
	role    fleet.Role
	profile string
	name    string
}

// newHosts makes the rows of all hosts but this one, of which file and daemon tell more, and sooner.
func newHosts(nodes []fleet.Node, info fleet.ClusterInfo) *hosts {
	h := &hosts{nodes: nodes, info: info, slots: map[slotKey]fleet.Slot{}}
	for _, n := range nodes {
		if n.Name == info.Node {
			continue
		}
		byReservation := make(map[string]string, len(n.Members))
		for _, m := range n.Members {
			m = elsewhere(n, m)
			if m.Reservation != "" {
				byReservation[m.Reservation] = m.ID
			}
			h.members = append(h.members, m)
		}
		for _, t := range n.Held {
			h.add(n.Name, t, byReservation[t.ID])
		}
	}
	return h
}

// elsewhere is m as a member of n. What a device and an inode are on another host says nothing here.
func elsewhere(n fleet.Node, m fleet.Member) fleet.Member {
	m.Node, m.Tree, m.File = n.Name, fleet.At(n.Name, m.Tree), ""
	m.Also = slices.Clone(m.Also)
	for i, t := range m.Also {
		m.Also[i] = fleet.Tree{Path: fleet.At(n.Name, t.Path)}
	}
	if n.Lost {
		m.State = fleet.StateLost
	}
	return m
}

// add adds the rows of a tree that node holds, for member where that is known.
func (h *hosts) add(node string, t fleet.NodeTree, member string) {
	tree, ends := fleet.At(node, t.Tree), fleet.Deadline{Wall: t.ExpiresAt}
	row := fleet.TreeRow{Tree: tree, Node: node, Occupancy: fleet.Taken, Member: member, Reservation: t.ID}
	slot := fleet.Slot{
		Name: t.Slot, Role: t.Role, Profile: t.Profile, State: fleet.SlotBound, Member: member, Reservation: t.ID, Tree: tree,
		Since: t.ReservedAt, Node: node,
	}
	if t.State != "member" {
		row.Occupancy, row.Deadline, slot.State = fleet.Reserved, ends, fleet.SlotReserved
		h.reservations = append(h.reservations, fleet.ReservationRow{
			Tree: tree, Node: node, ID: t.ID, Role: t.Role, Profile: t.Profile, Slot: t.Slot, ReservedAt: t.ReservedAt, ExpiresAt: t.ExpiresAt,
			Verdict: fleet.VerdictPending, Dispatcher: t.Dispatcher, Deadline: ends,
		})
	}
	h.trees = append(h.trees, row)
	key := slotKey{t.Role, t.Profile, t.Slot}
	if _, known := h.slots[key]; t.Slot != "" && !known { // the first tree of several is where the agent is started
		h.slots[key] = slot
	}
}

// join adds to a snapshot of this host what the cluster told of the others. Where the cluster is not heard nothing is known to be free.
func (h *hosts) join(s *fleet.Snapshot) {
	if h == nil {
		return
	}
	here := h.info.Node
	for i := range s.Trees {
		s.Trees[i].Node = here
		if h.info.Error != "" && s.Trees[i].Occupancy == fleet.Free {
			s.Trees[i].Occupancy = fleet.Unsure
		}
	}
	for i := range s.Reservations {
		s.Reservations[i].Node = here
	}
	s.Members = slices.Concat(s.Members, h.members) // the roster's own rows stay as they are
	for i := range len(s.Members) - len(h.members) {
		s.Members[i].Node = here
	}
	s.Slots = slices.Clone(s.Slots)
	for i, slot := range s.Slots {
		if other, taken := h.slots[slotKey{slot.Role, slot.Profile, slot.Name}]; slot.State != fleet.SlotFree {
			s.Slots[i].Node = here
		} else if taken {
			s.Slots[i] = other
		}
	}
	s.Trees, s.Reservations = append(s.Trees, h.trees...), append(s.Reservations, h.reservations...)
	info := h.info
	s.Nodes, s.Cluster = h.nodes, &info
}

// away says why the cluster is not heard; empty where it is, and on one host.
func (h *hosts) away() string {
	if h == nil {
		return ""
	}
	return h.info.Error
}

// told takes in what the cluster told. What was not to be had while it was away is read now.
func (w *watcher) told(ctx context.Context, h *hosts) {
	unread := w.hosts.away() != "" || w.seen != nil && w.seen.file.Code == fleet.CodeClusterUnreachable
	w.hosts = h
	if w.seen != nil && w.seen.file.Error == "" && h.info.HeardAt.After(w.seen.file.ReadAt) {
		w.seen.file.ReadAt = h.info.HeardAt // as good as read again
	}
	if unread && h.away() == "" {
		w.force = true
		w.news()
	}
	w.publish(ctx, false)
}

// followCluster hands over what the cluster tells, the latest only.
func (w *watcher) followCluster(ctx context.Context) {
	w.Cluster.Follow(ctx, func(nodes []fleet.Node, info fleet.ClusterInfo) {
		h := newHosts(nodes, info)
		select {
		case <-w.hostsTold:
		default:
		}
		w.hostsTold <- h
	})
}
