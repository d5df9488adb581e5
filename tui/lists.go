package tui

import (
	"fmt"
	"strings"

	"fleetdeck/fleet"
)

// lists are the rows of all views.
type lists struct {
	trees   *list[*fleet.TreeRow]
	members *list[*fleet.Member]
	slots   *list[*fleet.Slot]
	entries *list[*fleet.ReservationRow]
	queue   *list[*fleet.QueueRow]
	events  *list[*deed]
	history *list[*fleet.Deed]
	nodes   *list[*fleet.Node]
}

func (m *Model) newLists() lists {
	l := lists{
		trees: newList(m.treeKind()), members: newList(m.memberKind()), slots: newList(m.slotKind()), entries: newList(m.entryKind()),
		queue: newList(m.queueKind()), events: newList(m.eventKind()), history: newList(m.historyKind()),
		nodes: newList(m.nodeKind()),
	}
	l.events.follow, l.history.follow = true, true
	return l
}

// setAll takes the rows of the present snapshot.
func (m *Model) setAll() {
	many := m.many()
	m.trees.many, m.members.many, m.slots.many, m.entries.many = many, many, many, many
	m.fitNodes()
	m.trees.set(m.ix.trees)
	m.members.set(m.ix.members)
	m.slots.set(m.ix.slots)
	m.entries.set(m.ix.reservations)
	m.queue.set(m.ix.queue)
	m.events.set(deeds(m.ix.Events, m.own))
	m.history.set(m.ix.history)
	m.nodes.set(m.ix.nodes)
}

// of is the list of a view.
func (m *Model) of(v view) lister {
	switch v {
	case viewMembers:
		return m.members
	case viewSlots:
		return m.slots
	case viewReservations:
		return m.entries
	case viewQueue:
		return m.queue
	case viewEvents:
		return m.events
	case viewHistory:
		return m.history
	case viewNodes:
		return m.nodes
	}
	return m.trees
}

// allLists is the lists by the names that the configuration knows them by.
func (m *Model) allLists() map[string]lister {
	out := map[string]lister{}
	for v := viewTrees; v <= lastView; v++ {
		out[strings.ToLower(m.of(v).name())] = m.of(v)
	}
	return out
}

// listPane is the list of a view in a pane.
func (m *Model) listPane(r rect, v view, p pane) []string {
	focused := m.pane == p
	title, note := m.listTitle(v, focused)
	return m.boxed(r, focused, title, note, func(w, h int) []string {
		if e := m.ix.File.Error; v == viewReservations && e != "" && (!m.many() || len(m.ix.reservations) == 0) {
			var out []string
			what := "the file"
			if m.many() {
				what = "etcd"
			}
			for _, l := range wrap(what+" cannot be read: "+e, w-2) {
				out = append(out, " "+m.danger.of(l))
			}
			return out
		}
		switch v {
		case viewMembers:
			return rows(m, m.members, w, h, focused, p)
		case viewSlots:
			return rows(m, m.slots, w, h, focused, p)
		case viewReservations:
			return rows(m, m.entries, w, h, focused, p)
		case viewQueue:
			return rows(m, m.queue, w, h, focused, p)
		case viewEvents:
			return rows(m, m.events, w, h, focused, p)
		case viewHistory:
			return rows(m, m.history, w, h, focused, p)
		case viewNodes:
			return rows(m, m.nodes, w, h, focused, p)
		}
		return rows(m, m.trees, w, h, focused, p)
	})
}

// rows is a list, or why there is nothing in it.
func rows[T any](m *Model, l *list[T], w, h int, focused bool, p pane) []string {
	if len(l.shown) > 0 {
		return l.table(m, w, h, focused, p == paneList)
	}
	e := l.empty()
	what, why := e[0], e[1]
	switch {
	case !m.ix.loaded:
		what, why = "reading the fleet…", ""
	case l.faults && l.query != "":
		what, why = "nothing that wants you matches /"+l.query, m.keys.Back.Help().Key+" clears the filter, "+m.keys.Faults.Help().Key+" shows what is well too"
	case l.query != "":
		what, why = "nothing matches /"+l.query, m.keys.Back.Help().Key+" clears the filter"
	case l.faults:
		what, why = "nothing wants you here", m.keys.Faults.Help().Key+" shows everything again"
	}
	out := []string{""}
	for _, l := range wrap(what, w-4) {
		out = append(out, "  "+l)
	}
	for _, l := range wrap(why, w-4) {
		out = append(out, "  "+m.faint.of(l))
	}
	return out
}

// listTitle is the title of a list with how much of it is shown, its filter, and how it is ordered.
func (m *Model) listTitle(v view, focused bool) (title, note string) {
	l := m.of(v)
	shown, all := l.count()
	title = fmt.Sprintf("%s %d", l.name(), all)
	if shown != all || l.filtered() != "" || l.faultsOnly() || m.typing && focused {
		title = fmt.Sprintf("%s %d/%d", l.name(), shown, all)
	}
	if n := l.marked(); n > 0 {
		title += fmt.Sprintf(" · %d marked", n)
	}
	var notes []string
	switch h := m.ix.Lock.Holder; {
	case m.typing && focused:
		notes = append(notes, m.accent.of("/")+m.search.view(m, 24, 1, true)[0])
	case l.filtered() != "":
		notes = append(notes, m.accent.of("/"+cut(l.filtered(), 24)))
	case v == viewReservations && h != nil && !m.many():
		notes = append(notes, m.warn.of("lock held by "+holder(h)))
	case v == viewTrees && m.ix.root != "":
		notes = append(notes, m.faint.of("in "+strings.TrimRight(tail(m.short(m.ix.root), 28), " ")))
	}
	if l.faultsOnly() {
		notes = append(notes, m.warn.of("faults only"))
	}
	if d := l.describe(); strings.Contains(d, "grouped") {
		notes = append(notes, m.faint.of(d[strings.Index(d, "grouped"):]))
	}
	return title, strings.Join(notes, " ")
}
