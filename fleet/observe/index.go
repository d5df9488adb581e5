package observe

import (
	"path"
	"slices"

	"fleetdeck/fleet"
)

// index finds quickly what of a look concerns a tree. Occupancy goes through all that it is given: to give it all for each of
// a thousand trees would cost a million comparisons a snapshot.
type index struct {
	look
	near   map[string]*near          // by a tree's path, and by its file
	member map[string][]fleet.Member // by reservation
}

// near is where in a look the rows are that name a tree.
type near struct{ entries, launches, members, foreign []int }

func newIndex(l look) index {
	n := len(l.entries) + len(l.roster.Launches) + len(l.roster.Members)
	x := index{l, make(map[string]*near, 2*n), make(map[string][]fleet.Member, len(l.roster.Members))}
	for i, e := range l.entries {
		x.add(e.On(), func(n *near) { n.entries = append(n.entries, i) })
	}
	for i, la := range l.roster.Launches {
		for _, t := range append([]fleet.Tree{{Path: la.Tree, File: la.File}}, la.Also...) {
			x.add(t, func(n *near) { n.launches = append(n.launches, i) })
		}
	}
	for i, m := range l.roster.Members {
		if m.Reservation != "" {
			x.member[m.Reservation] = l.roster.Members[i : i+1 : i+1]
		}
		if m.Alive() {
			note := func(n *near) { n.members = append(n.members, i) }
			x.add(fleet.Tree{Path: m.Tree, File: m.File}, note)
			for _, t := range m.Also {
				x.add(t, note)
			}
		}
	}
	for i, f := range l.roster.Foreign {
		note := func(n *near) { n.foreign = append(n.foreign, i) }
		if x.add(fleet.Tree{Path: f.Tree, File: f.File}, note); f.Tree == "" {
			for dir := f.Dir; ; dir = path.Dir(dir) {
				x.add(fleet.Tree{Path: dir}, note)
				if dir == path.Dir(dir) {
					break
				}
			}
		}
	}
	return x
}

// add notes a row at both names of the tree that it is about.
func (x index) add(t fleet.Tree, note func(*near)) {
	for _, name := range [...]string{t.Path, string(t.File)} {
		if name == "" {
			continue
		}
		if x.near[name] == nil {
			x.near[name] = &near{}
		}
		note(x.near[name])
	}
}

// has reports whether anything at all concerns t, foreign agents included.
func (x index) has(t fleet.Tree) bool {
	return x.near[t.Path] != nil || t.File != "" && x.near[string(t.File)] != nil
}

// around is what [fleet.Occupancy] of t follows from: the rows that name t, in their order, and the members that those entries
// have become.
func (x index) around(t fleet.Tree) (entries []fleet.Entry, roster fleet.Roster) {
	var all near
	for _, name := range [...]string{t.Path, string(t.File)} {
		if n := x.near[name]; n != nil {
			all.entries, all.launches, all.members = append(all.entries, n.entries...), append(all.launches, n.launches...), append(all.members, n.members...)
			all.foreign = append(all.foreign, n.foreign...)
		}
	}
	roster.Launches = pick(x.roster.Launches, all.launches)
	roster.Members = pick(x.roster.Members, all.members)
	roster.Foreign = pick(x.roster.Foreign, all.foreign)
	entries = pick(x.entries, all.entries)
	for _, e := range entries {
		roster.Members = append(roster.Members, x.member[e.ID]...)
	}
	return entries, roster
}

// listed is the part of the roster that says whether the reservation id is listed.
func (x index) listed(id string) fleet.Roster { return fleet.Roster{Members: x.member[id]} }

// pick is the rows at these places, each once and in their order.
func pick[T any](rows []T, places []int) []T {
	slices.Sort(places)
	var out []T
	for _, i := range slices.Compact(places) {
		out = append(out, rows[i])
	}
	return out
}
