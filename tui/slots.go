package tui

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// slotUnsure is the state of a slot that nobody is known to have, while etcd is away: another host's member may.
const slotUnsure = "unsure"

// knownSlots is the slots of a snapshot as far as they are known.
func knownSlots(s fleet.Snapshot) []fleet.Slot {
	if s.Cluster == nil || s.Cluster.Error == "" && s.File.Error == "" {
		return s.Slots
	}
	out := slices.Clone(s.Slots)
	for i := range out {
		if out[i].State == fleet.SlotFree {
			out[i].State = slotUnsure
		}
	}
	return out
}

// slotKind is the list of slots.
func (m *Model) slotKind() kind[*fleet.Slot] {
	type row = *fleet.Slot
	role := func(s row) string { return s.Role }
	profile := func(s row) string { return s.Profile }
	state := func(s row) string { return s.State }
	node := func(s row) string { return s.Node }
	return kind[row]{
		title: "Slots",
		key:   func(s row) string { return s.Name },
		text: func(s row) string {
			return strings.Join([]string{s.Name, s.Node, s.State, s.Role, s.Profile, s.Member, s.Tree}, " ")
		},
		look:   func(s row) look { return m.slot(s.State) },
		fields: map[string]func(row) string{"slot": func(s row) string { return s.Name }, "state": state, "role": role, "profile": profile, "node": node, "tree": func(s row) string { return path.Base(s.Tree) }},
		columns: []column[row]{
			{title: "SLOT", w: 12, grow: 2, most: 32, by: ordered(func(s row) string { return s.Name }), cell: func(s row, _ int) (string, paint) { return s.Name, "" }},
			{title: "STATE", w: 8, by: ordered(state), cell: func(s row, _ int) (string, paint) { l := m.slot(s.State); return l.word, l.paint }},
			{title: "LEFT", w: 6, from: 48, cell: func(s row, _ int) (string, paint) {
				until, _, ok := m.reservedUntil(s)
				if !ok {
					return "", ""
				}
				m.counting = true
				return countdown(until.Remaining(m.now)), m.slot(s.State).paint
			}},
			{title: "ROLE", w: 9, from: 84, by: ordered(role), cell: func(s row, _ int) (string, paint) { return s.Role, "" }},
			{title: "PROFILE", w: 9, from: 96, by: ordered(profile), cell: func(s row, _ int) (string, paint) { return s.Profile, m.faint }},
			{title: "TREE", w: 10, grow: 3, most: 60, from: 58, end: true, by: ordered(func(s row) string { return s.Tree }), cell: func(s row, _ int) (string, paint) { return m.treeIn(m.slots, s.Tree), "" }},
			{title: "NODE", w: 8, from: 60, many: true, by: ordered(node), cell: func(s row, _ int) (string, paint) { return m.nodeCell(s.Node) }},
			{title: "MEMBER", w: 10, grow: 1, most: 28, end: true, by: ordered(func(s row) string { return s.Member }), cell: func(s row, _ int) (string, paint) { return s.Member, m.faint }},
		},
		groups: []grouping[row]{{name: "role", of: role}, {name: "profile", of: profile}, {name: "state", of: state}, {name: "node", of: node, many: true}},
		fault:  func(s row) bool { return s.State == fleet.SlotBound && m.ix.member[s.Member] == nil },
		empty: func() [2]string {
			return [2]string{"no slot is configured", "a [[slots]] entry limits how many members a role may have"}
		},
	}
}

// reservedUntil is when a reserved slot is free again at the latest, and since when it is reserved: by its launch, or, where that is
// another host's, by its reservation.
func (m *Model) reservedUntil(s *fleet.Slot) (until fleet.Deadline, since time.Time, ok bool) {
	if s.State != fleet.SlotReserved {
		return until, since, false
	}
	if x := m.ix.launch[s.Member]; x != nil {
		return x.Deadline, x.AcceptedAt, true
	}
	if e := m.ix.entry[s.Tree]; e != nil && e.ID == s.Reservation {
		return e.Deadline, e.ReservedAt, true
	}
	return until, since, false
}

// slotDetail is a slot with who fills it, and what will free it.
func (m *Model) slotDetail(s *fleet.Slot, w int) []string {
	l := m.slot(s.State)
	out := []string{" " + l.String(), ""}
	out = append(out, m.fact("for", s.Role+" on "+s.Profile, w))
	switch s.State {
	case fleet.SlotFree:
		return append(out, "", " "+cut("The next "+s.Role+" on "+s.Profile+" takes it.", w-2))
	case slotUnsure:
		out = append(out, "")
		for _, l := range wrap("etcd is not heard: whether a member of another host has it by now is not known.", w-2) {
			out = append(out, " "+m.warn.of(l))
		}
		return out
	}
	out = append(out, m.fact("tree", m.short(s.Tree), w))
	if s.Member != "" {
		out = append(out, m.fact("member", s.Member, w))
	}
	if m.elsewhere(s.Node) {
		out = append(out, m.fact("node", s.Node, w))
	}
	if !s.Since.IsZero() {
		out = append(out, m.fact("since", s.Since.Local().Format("15:04:05")+" · "+m.since(s.Since), w))
	}
	out = append(out, m.fact("id", s.Reservation, w), "")
	if until, since, ok := m.reservedUntil(s); ok {
		m.counting = true
		left := until.Remaining(m.now)
		out = append(out, " "+m.gauge(left, until.Wall.Sub(since), w-2))
		for _, l := range wrap("Bound once its launch is listed, free if it is not, in "+countdown(left)+".", w-2) {
			out = append(out, " "+l)
		}
	} else if s.State == fleet.SlotReserved {
		out = append(out, " "+cut("Bound once its launch is listed, free if it is not.", w-2))
	} else {
		out = append(out, " "+cut("Free once its member has ended.", w-2), "",
			" "+m.key.of(m.keys.GoTo.Help().Key)+" goes to its member")
	}
	return append(out, m.lately(s.Tree, w)...)
}

// slotStrip is the slots in one line: each by name where there is room, or else how many are in each state.
func (m *Model) slotStrip(w int) string {
	if len(m.ix.Slots) == 0 {
		return ""
	}
	var names, numbers, glyphs string
	states := map[string]int{}
	for _, s := range m.ix.slots {
		states[s.State]++
	}
	for _, s := range m.ix.slots {
		l := m.slot(s.State)
		word := cut(s.Name, 20)
		if s.Tree != "" {
			word += "→" + cut(m.named(s.Tree), 16)
		}
		if until, _, ok := m.reservedUntil(s); ok {
			m.counting = true
			word += " " + countdown(until.Remaining(m.now))
		}
		names += "  " + l.paint.of(l.glyph+" "+word)
		if width(names) > w {
			break // by name they do not fit, however many follow
		}
	}
	title := m.faint.of("slots")
	if width(title)+width(names) <= w {
		return title + names
	}
	for _, state := range []string{fleet.SlotBound, fleet.SlotReserved, fleet.SlotFree, slotUnsure} {
		l := m.slot(state)
		if states[state] == 0 && state == slotUnsure {
			continue
		}
		numbers += "  " + l.paint.of(fmt.Sprintf("%s %d %s", l.glyph, states[state], l.word))
		glyphs += "  " + l.paint.of(fmt.Sprintf("%s %d", l.glyph, states[state]))
	}
	for _, s := range []string{numbers, glyphs} {
		if width(title)+width(s) <= w {
			return title + s
		}
	}
	return ""
}

// goTo turns to what the selected row belongs to: from a slot to its member, from a member to its slot, or else to its tree.
func (m *Model) goTo() tea.Cmd {
	switch m.listed() {
	case viewSlots:
		s, ok := m.slots.current()
		if !ok || s.Tree == "" {
			return m.say(levelInfo, "nobody holds this slot", "")
		}
		if m.ix.member[s.Member] == nil {
			return m.jump(viewTrees, m.trees, s.Tree)
		}
		return m.jump(viewMembers, m.members, s.Member)
	case viewMembers:
		x, ok := m.members.current()
		if !ok {
			return nil
		}
		if x.Slot != "" && x.Alive() {
			return m.jump(viewSlots, m.slots, x.Slot)
		}
		return m.jump(viewTrees, m.trees, x.Tree)
	case viewTrees:
		x := m.selectedMember()
		if x == nil {
			return m.say(levelInfo, "nobody is in this tree", "")
		}
		return m.jump(viewMembers, m.members, x.ID)
	case viewNodes:
		return m.membersOfNode()
	}
	if tree := m.selectedTree(); tree != "" {
		return m.jump(viewTrees, m.trees, tree)
	}
	return nil
}

// jump shows a view with the row named id selected. A filter that hides the row goes.
func (m *Model) jump(v view, list lister, id string) tea.Cmd {
	m.show(v)
	m.pane = paneList
	if list.goTo(id) {
		return nil
	}
	list.filter("")
	if list.faultsOnly() {
		list.toggleFaults()
	}
	if !list.goTo(id) {
		return m.say(levelWarn, cut(m.short(id), 60)+" is not in the list", "")
	}
	return nil
}

// goesTo is the hint for goTo.
func (m *Model) goesTo() key.Binding {
	what := "go to its tree"
	switch m.listed() {
	case viewNodes:
		what = "go to its members"
	case viewSlots, viewTrees:
		what = "go to its member"
	case viewMembers:
		if x, ok := m.members.current(); ok && x.Slot != "" && x.Alive() {
			what = "go to its slot"
		}
	}
	return bind(m.keys.GoTo.Help().Key, what, m.keys.GoTo.Keys()...)
}
