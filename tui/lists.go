package tui

import (
	"fmt"
	"path"

	"fleetdeck/fleet"
)

// listPane is the list of the view.
func (m *Model) listPane(r rect) []string {
	switch m.view {
	case viewMembers:
		return m.membersPane(r)
	case viewSlots:
		return m.slotsPane(r)
	case viewReservations:
		return m.entriesPane(r, paneList)
	case viewEvents:
		return m.eventsPane(r, paneList)
	}
	return m.treesPane(r)
}

var treeColumns = []column{
	{title: "TREE", w: 14, grow: 3, most: 64},
	{title: "BRANCH", w: 9, grow: 2, most: 30, from: 50},
	{title: "OCCUPANCY", w: 9},
	{title: "NOW", w: 9},
	{title: "ROLE", w: 9, from: 76},
	{title: "PROFILE", w: 9, from: 90},
	{title: "MEMBER", w: 10, from: 104},
}

func (m *Model) treesPane(r rect) []string {
	focused := m.pane == paneList
	title, note := m.listTitle("Trees", &m.trees, focused)
	return m.boxed(r, focused, title, note, func(w, h int) []string {
		if len(m.trees.shown) == 0 {
			return m.empty(w, "no tree is known yet", "fleetdeck looks in the roots of its configuration; s dispatches into any path", m.trees.query)
		}
		return table(m, &m.trees, w, h, treeColumns, func(t *fleet.TreeRow, selected bool, ws []int) string {
			return m.treeRow(t, selected, focused && m.dialog == nil, ws, w)
		})
	})
}

func (m *Model) treeRow(t *fleet.TreeRow, selected, focused bool, ws []int, w int) string {
	state := m.occupancy(t.Occupancy)
	var now look
	var role, profile, member string
	switch x := m.ix.member[t.Member]; {
	case x != nil:
		now, role, profile, member = m.member(x.State), x.Role, x.Profile, x.ID
		if x.State == fleet.StateWaiting {
			// A person is asked for: that outweighs who is in the tree.
			state.glyph, state.paint = now.glyph, now.paint
		}
	case t.Occupancy == fleet.Reserved:
		m.counting = true
		now = look{word: countdown(t.Deadline.Remaining(m.now)) + " left", paint: m.reserved}
		if l := m.ix.launch[t.Launch]; l != nil {
			role, profile = l.Role, l.Profile
		} else if e := m.ix.entry[t.Tree]; e != nil {
			role, profile = e.Role, e.Profile
		}
	}
	if as := m.assumed[t.Tree]; as != nil && t.Occupancy == fleet.Free {
		state, role, profile = look{"◌", "dispatch…", m.reserved}, as.role, as.profile
	}
	if t.Missing {
		now = look{word: "gone", paint: m.danger}
	}
	branch := rowCell{cell(t.Branch, ws[1]), m.faint}
	if t.Dirty && ws[1] > 2 {
		branch.text = pad(cut(t.Branch, ws[1]-2)+" *", ws[1])
	}
	return m.row(selected, focused, state, present(ws, []rowCell{
		{tail(m.inList(t.Tree), ws[0]), ""},
		branch,
		{cell(state.word, ws[2]), state.paint},
		{cell(now.word, ws[3]), now.paint},
		{cell(role, ws[4]), ""},
		{cell(profile, ws[5]), m.faint},
		{tail(member, ws[6]), m.faint},
	}), w)
}

var memberColumns = []column{
	{title: "MEMBER", w: 10, grow: 1, most: 28},
	{title: "STATE", w: 8},
	{title: "ROLE", w: 9, from: 48},
	{title: "TREE", w: 12, grow: 3, most: 60},
	{title: "PROFILE", w: 9, from: 68},
	{title: "SLOT", w: 12, from: 90},
	{title: "UP", w: 6, from: 56},
	{title: "SAYS", w: 14, grow: 4, from: 110},
}

func (m *Model) membersPane(r rect) []string {
	focused := m.pane == paneList
	title, note := m.listTitle("Members", &m.members, focused)
	return m.boxed(r, focused, title, note, func(w, h int) []string {
		if len(m.members.shown) == 0 {
			return m.empty(w, "nobody is at work", "s dispatches an agent into a tree", m.members.query)
		}
		return table(m, &m.members, w, h, memberColumns, func(x *fleet.Member, selected bool, ws []int) string {
			state := m.member(x.State)
			word, role := state.word, x.Role
			if !x.Alive() && x.ExitCode != nil {
				word = fmt.Sprintf("exit %d", *x.ExitCode)
			}
			rolePaint := paint("")
			if x.CharterMismatch {
				role, rolePaint = "! "+role, m.danger
			}
			return m.row(selected, focused && m.dialog == nil, state, present(ws, []rowCell{
				{tail(x.ID, ws[0]), ""},
				{cell(word, ws[1]), state.paint},
				{cell(role, ws[2]), rolePaint},
				{tail(m.inList(x.Tree), ws[3]), ""},
				{cell(x.Profile, ws[4]), m.faint},
				{cell(x.Slot, ws[5]), m.faint},
				{cell(m.up(x), ws[6]), m.faint},
				{cell(x.StateMessage, ws[7]), m.faint},
			}), w)
		})
	})
}

// up is how long a member has run, or ran.
func (m *Model) up(x *fleet.Member) string {
	switch {
	case x.StartedAt.IsZero():
		return ""
	case !x.EndedAt.IsZero():
		return span(x.EndedAt.Sub(x.StartedAt))
	}
	return span(age(m.now, x.StartedAt))
}

var entryColumns = []column{
	{title: "TREE", w: 14, grow: 3, most: 64},
	{title: "VERDICT", w: 7},
	{title: "LEFT", w: 6},
	{title: "ROLE", w: 9, from: 60},
	{title: "PROFILE", w: 9, from: 74},
	{title: "BY", w: 14, grow: 2, most: 40, from: 100},
	{title: "ID", w: 10, grow: 1, most: 28, from: 116},
}

func (m *Model) entriesPane(r rect, p pane) []string {
	focused := m.pane == p
	title, note := m.listTitle("Reservations", &m.entries, focused)
	if h := m.ix.Lock.Holder; h != nil && note == "" {
		note = m.warn.of("lock held by " + holder(h))
	}
	return m.boxed(r, focused, title, note, func(w, h int) []string {
		if e := m.ix.File.Error; e != "" {
			var out []string
			for _, l := range wrap("the file cannot be read: "+e, w-2) {
				out = append(out, " "+m.danger.of(l))
			}
			return out
		}
		if len(m.entries.shown) == 0 {
			return m.empty(w, "no reservation stands", "each dispatch leaves one here until its worker is listed", m.entries.query)
		}
		return table(m, &m.entries, w, h, entryColumns, func(e *fleet.ReservationRow, selected bool, ws []int) string {
			v := m.verdict(e.Verdict)
			left := "–"
			if e.Verdict == fleet.VerdictPending || e.Verdict == fleet.VerdictInvalid && !e.Droppable {
				m.counting = true
				left = countdown(e.Deadline.Remaining(m.now))
			}
			return m.row(selected && (focused || p == paneList), focused && m.dialog == nil, v, present(ws, []rowCell{
				{tail(m.inList(e.Tree), ws[0]), ""},
				{cell(v.word, ws[1]), v.paint},
				{cell(left, ws[2]), v.paint},
				{cell(e.Role, ws[3]), ""},
				{cell(e.Profile, ws[4]), m.faint},
				{cell(dispatcher(e.Dispatcher), ws[5]), m.faint},
				{tail(e.ID, ws[6]), m.faint},
			}), w)
		})
	})
}

// dispatcher says who wrote a reservation.
func dispatcher(d fleet.Dispatcher) string {
	s := d.Program
	if s == "" {
		s = "unknown"
	}
	if d.Pid != 0 {
		s += fmt.Sprintf(" (pid %d", d.Pid)
		if d.Host != "" {
			s += " on " + d.Host
		}
		s += ")"
	}
	return s
}

var eventColumns = []column{
	{title: "TIME", w: 8},
	{title: "EVENT", w: 13, from: 70},
	{title: "TREE", w: 14, grow: 1, most: 40, from: 90},
	{title: "MESSAGE", w: 20, grow: 3},
}

func (m *Model) eventsPane(r rect, p pane) []string {
	focused := m.pane == p
	title, note := m.listTitle("Events", &m.events, focused)
	return m.boxed(r, focused, title, note, func(w, h int) []string {
		if len(m.events.shown) == 0 {
			return m.empty(w, "nothing has happened yet", "", m.events.query)
		}
		return table(m, &m.events, w, h, eventColumns, func(d *deed, selected bool, ws []int) string {
			return m.eventRow(d, selected && (focused || p == paneList), focused && m.dialog == nil, ws, w)
		})
	})
}

func (m *Model) eventRow(d *deed, selected, focused bool, ws []int, w int) string {
	l := m.level(d.Level)
	text := d.Message
	if ws[1] == 0 && text == "" {
		text = d.Kind
	}
	if ws[2] == 0 && d.Tree != "" {
		text = path.Base(d.Tree) + ": " + text
	}
	p := l.paint
	if d.Level == levelInfo || d.Level == "" {
		p = ""
	}
	return m.row(selected, focused, l, present(ws, []rowCell{
		{cell(d.Time.Local().Format("15:04:05"), ws[0]), m.faint},
		{cell(d.Kind, ws[1]), p},
		{tail(m.inList(d.Tree), ws[2]), m.faint},
		{cell(text, ws[3]), p},
	}), w)
}

// empty says what is empty, why, and what to do about it.
func (m *Model) empty(w int, what, why, query string) []string {
	if !m.ix.loaded {
		what, why = "reading the fleet…", ""
	}
	if query != "" {
		what, why = "nothing matches /"+query, "esc clears the filter"
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
