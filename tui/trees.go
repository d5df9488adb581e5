package tui

import (
	"cmp"
	"path/filepath"
	"strings"

	"fleetdeck/fleet"
)

// treeKind is the list of trees.
func (m *Model) treeKind() kind[*fleet.TreeRow] {
	who := func(t *fleet.TreeRow) (role, profile, member string) {
		if x := m.ix.member[t.Member]; x != nil {
			return x.Role, x.Profile, x.ID
		}
		if as := m.assumed[t.Tree]; as != nil && t.Occupancy == fleet.Free {
			return as.role, as.profile, ""
		}
		if t.Occupancy != fleet.Reserved {
			return "", "", ""
		}
		if l := m.ix.launch[t.Launch]; l != nil {
			return l.Role, l.Profile, ""
		}
		if e := m.ix.entry[t.Tree]; e != nil {
			return e.Role, e.Profile, ""
		}
		return "", "", ""
	}
	role := func(t *fleet.TreeRow) string { r, _, _ := who(t); return r }
	profile := func(t *fleet.TreeRow) string { _, p, _ := who(t); return p }
	member := func(t *fleet.TreeRow) string { _, _, id := who(t); return id }
	state := func(t *fleet.TreeRow) string {
		if x := m.ix.member[t.Member]; x != nil {
			return string(x.State)
		}
		return ""
	}
	node := func(t *fleet.TreeRow) string { return t.Node }
	return kind[*fleet.TreeRow]{
		title: "Trees",
		key:   func(t *fleet.TreeRow) string { return t.Tree },
		text:  func(t *fleet.TreeRow) string { return m.ix.treeText(t) },
		look:  m.treeLook,
		fields: map[string]func(*fleet.TreeRow) string{
			"tree": func(t *fleet.TreeRow) string { return filepath.Base(t.Tree) }, "branch": func(t *fleet.TreeRow) string { return t.Branch },
			"occupancy": func(t *fleet.TreeRow) string { return string(t.Occupancy) }, "role": role, "profile": profile, "member": member,
			"state": func(t *fleet.TreeRow) string { return cmp.Or(state(t), string(t.Occupancy)) },
			"node":  node,
			"repo":  func(t *fleet.TreeRow) string { return filepath.Base(repository(t)) },
		},
		columns: []column[*fleet.TreeRow]{
			{title: "TREE", w: 14, grow: 3, most: 64, end: true, by: ordered(func(t *fleet.TreeRow) string { return t.Tree }),
				cell: func(t *fleet.TreeRow, _ int) (string, paint) { return m.treeIn(m.trees, t.Tree), "" }},
			{title: "NODE", w: 8, from: 56, many: true, by: ordered(node), cell: func(t *fleet.TreeRow, _ int) (string, paint) { return m.nodeCell(t.Node) }},
			{title: "BRANCH", w: 9, grow: 2, most: 30, from: 50, by: ordered(func(t *fleet.TreeRow) string { return t.Branch }),
				cell: func(t *fleet.TreeRow, w int) (string, paint) {
					if t.Dirty && w > 2 {
						return cut(t.Branch, w-2) + " *", m.faint
					}
					return t.Branch, m.faint
				}},
			{title: "UPSTREAM", w: 8, from: 86, by: func(a, b *fleet.TreeRow) int { return cmp.Compare(a.Ahead+a.Behind, b.Ahead+b.Behind) },
				cell: func(t *fleet.TreeRow, _ int) (string, paint) { return apart(t), m.faint }},
			{title: "OCCUPANCY", w: 9, by: ordered(func(t *fleet.TreeRow) int { return occupancyOrder[t.Occupancy] }),
				cell: func(t *fleet.TreeRow, _ int) (string, paint) { l := m.treeLook(t); return l.word, l.paint }},
			{title: "NOW", w: 9, by: ordered(state), cell: func(t *fleet.TreeRow, _ int) (string, paint) { l := m.treeNow(t); return l.word, l.paint }},
			{title: "ROLE", w: 9, from: 76, by: ordered(role), cell: func(t *fleet.TreeRow, _ int) (string, paint) { return role(t), "" }},
			{title: "PROFILE", w: 9, from: 90, by: ordered(profile), cell: func(t *fleet.TreeRow, _ int) (string, paint) { return profile(t), m.faint }},
			{title: "MEMBER", w: 10, from: 104, end: true, by: ordered(member), cell: func(t *fleet.TreeRow, _ int) (string, paint) { return member(t), m.faint }},
		},
		groups: []grouping[*fleet.TreeRow]{{name: "repository", of: func(t *fleet.TreeRow) string { return m.short(repository(t)) }}, {name: "role", of: role},
			{name: "occupancy", of: func(t *fleet.TreeRow) string { return string(t.Occupancy) }}, {name: "node", of: node, many: true}},
		fault: m.treeFault,
		empty: func() [2]string {
			return [2]string{"no tree is known yet", "fleetdeck looks in the roots of its configuration; " + m.keys.Spawn.Help().Key + " dispatches into any path"}
		},
	}
}

var occupancyOrder = map[fleet.Occupied]int{fleet.Taken: 1, fleet.Reserved: 2, fleet.Foreign: 3, fleet.Unsure: 4, fleet.Free: 5}

// ordered compares rows by what of gives.
func ordered[T any, V cmp.Ordered](of func(T) V) func(a, b T) int {
	return func(a, b T) int { return cmp.Compare(of(a), of(b)) }
}

// repository is the main working tree of t's repository, or the directory that t lies in where that is not known.
func repository(t *fleet.TreeRow) string { return cmp.Or(t.Repo, t.Tree) }

// treeLook is how a tree is: its occupancy, unless a person is asked for or a dispatch is on its way.
func (m *Model) treeLook(t *fleet.TreeRow) look {
	l := m.occupancy(t.Occupancy)
	switch x := m.ix.member[t.Member]; {
	case m.ix.lost[t.Node]:
		w := m.member(fleet.StateLost)
		l.glyph, l.paint = w.glyph, w.paint
	case x != nil && x.State == fleet.StateWaiting:
		w := m.member(x.State)
		l.glyph, l.paint = w.glyph, w.paint
	}
	if m.assumed[t.Tree] != nil && t.Occupancy == fleet.Free {
		return look{"◌", "dispatch…", m.reserved}
	}
	return l
}

// treeNow is what goes on in a tree.
func (m *Model) treeNow(t *fleet.TreeRow) look {
	x := m.ix.member[t.Member]
	switch {
	case t.Missing:
		return look{word: "gone", paint: m.danger}
	case x != nil:
		l := m.member(x.State)
		if x.Tree != t.Tree { // its state stands where it was started
			l.word = "with " + filepath.Base(x.Tree)
		}
		return l
	case m.ix.lost[t.Node]:
		return m.member(fleet.StateLost)
	case t.Occupancy == fleet.Reserved:
		m.counting = true
		return look{word: countdown(t.Deadline.Remaining(m.now)) + " left", paint: m.reserved}
	}
	return look{}
}

// treeFault reports whether a tree wants a person's attention.
func (m *Model) treeFault(t *fleet.TreeRow) bool {
	x, e := m.ix.member[t.Member], m.ix.entry[t.Tree]
	return t.Missing || t.Occupancy == fleet.Foreign || x != nil && memberFault(x) || e != nil && entryFault(e)
}

// treeText is what the words of a filter of trees look at.
func (ix *index) treeText(t *fleet.TreeRow) string {
	s := append(make([]string, 0, 12), t.Tree, t.Node, t.Branch, string(t.Occupancy)) // room for all that follows
	if x := ix.member[t.Member]; x != nil {
		s = append(s, x.ID, x.Role, x.Profile, string(x.State))
	}
	if e := ix.entry[t.Tree]; e != nil {
		s = append(s, e.Role, e.Profile)
	}
	if t.Dirty {
		s = append(s, "dirty")
	}
	if t.Ahead > 0 {
		s = append(s, "ahead")
	}
	if t.Behind > 0 {
		s = append(s, "behind")
	}
	return strings.Join(s, " ")
}
