package tui

import (
	"fmt"
	"slices"

	"fleetdeck/fleet"
)

// selectedTree is the tree of the row under the cursor, or empty.
func (m *Model) selectedTree() string {
	switch m.listed() {
	case viewMembers:
		if x, ok := m.members.current(); ok {
			return x.Tree
		}
	case viewSlots:
		if s, ok := m.slots.current(); ok {
			return s.Tree
		}
	case viewReservations:
		if r, ok := m.entries.current(); ok {
			return r.Tree
		}
	case viewQueue:
		if q, ok := m.queue.current(); ok {
			return q.Tree
		}
	case viewEvents:
		if d, ok := m.events.current(); ok {
			return d.Tree
		}
	case viewHistory:
		if d, ok := m.history.current(); ok {
			return d.Tree
		}
	case viewNodes:
	default:
		if t, ok := m.trees.current(); ok {
			return t.Tree
		}
	}
	return ""
}

// selectedMember is the member of the row under the cursor, or nil.
func (m *Model) selectedMember() *fleet.Member {
	switch m.listed() {
	case viewMembers:
		x, _ := m.members.current()
		return x
	case viewSlots:
		if s, ok := m.slots.current(); ok {
			return m.ix.member[s.Member]
		}
	case viewTrees:
		if t, ok := m.trees.current(); ok {
			return m.ix.member[t.Member]
		}
	case viewQueue:
		if q, ok := m.queue.current(); ok {
			return m.memberIn(q.Tree)
		}
	case viewEvents:
		if d, ok := m.events.current(); ok {
			return m.ix.member[d.Member]
		}
	case viewHistory:
		if d, ok := m.history.current(); ok {
			return m.ix.member[d.Member]
		}
	}
	return nil
}

// memberIn is the member that occupies tree, or nil.
func (m *Model) memberIn(tree string) *fleet.Member {
	if t := m.treeRowOf(tree); t != nil {
		return m.ix.member[t.Member]
	}
	return nil
}

// treeRowOf is the row of a tree, or nil.
func (m *Model) treeRowOf(tree string) *fleet.TreeRow { return m.ix.tree[tree] }

// chosenTrees is the trees that an act is about: those of the marked rows, or else of the one under the cursor.
func (m *Model) chosenTrees() []string {
	var out []string
	add := func(tree string) {
		if tree != "" && !slices.Contains(out, tree) {
			out = append(out, tree)
		}
	}
	switch m.listed() {
	case viewTrees:
		for _, t := range m.trees.chosen() {
			add(t.Tree)
		}
	case viewMembers:
		for _, x := range m.members.chosen() {
			add(x.Tree)
		}
	case viewReservations:
		for _, e := range m.entries.chosen() {
			add(e.Tree)
		}
	default:
		add(m.selectedTree())
	}
	return out
}

// chosenMembers is the members that an act is about, the living only.
func (m *Model) chosenMembers() []*fleet.Member {
	var out []*fleet.Member
	add := func(x *fleet.Member) {
		if x != nil && x.Alive() && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	switch m.listed() {
	case viewTrees:
		for _, t := range m.trees.chosen() {
			add(m.ix.member[t.Member])
		}
	case viewMembers:
		for _, x := range m.members.chosen() {
			add(x)
		}
	case viewSlots:
		for _, s := range m.slots.chosen() {
			add(m.ix.member[s.Member])
		}
	default:
		add(m.selectedMember())
	}
	return out
}

// chosenEntries is the reservations that an act is about.
func (m *Model) chosenEntries() []*fleet.ReservationRow {
	var out []*fleet.ReservationRow
	if m.listed() == viewReservations {
		return m.entries.chosen()
	}
	for _, tree := range m.chosenTrees() {
		if e := m.ix.entry[tree]; e != nil {
			out = append(out, e)
		}
	}
	return out
}

// nobody says why there is nobody to act on.
func (m *Model) nobody(what string) (text, hint string) {
	if n := m.list().marked(); n > 0 {
		return fmt.Sprintf("nobody to %s in what is marked", what), m.keys.Back.Help().Key + " takes the marks away"
	}
	if x := m.selectedMember(); x != nil && !x.Alive() {
		return clean(x.ID) + " has ended already", ""
	}
	if tree := m.selectedTree(); tree != "" {
		return fmt.Sprintf("nobody to %s in %s", what, m.short(tree)), m.keys.Spawn.Help().Key + " dispatches an agent"
	}
	return "no member is selected: there is nobody to " + what, ""
}
