package tui

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
)

// memberKind is the list of members.
func (m *Model) memberKind() kind[*fleet.Member] {
	type row = *fleet.Member
	role := func(x row) string { return x.Role }
	profile := func(x row) string { return x.Profile }
	slot := func(x row) string { return x.Slot }
	node := func(x row) string { return x.Node }
	return kind[row]{
		title: "Members",
		key:   func(x row) string { return x.ID },
		text: func(x row) string {
			return strings.Join([]string{x.ID, x.Node, string(x.State), x.Role, x.Profile, x.Slot, x.Tree, x.StateMessage, x.Task, strings.Join(paths(x.Also), " ")}, " ")
		},
		look: func(x row) look { return m.member(x.State) },
		fields: map[string]func(row) string{
			"member": func(x row) string { return x.ID }, "state": func(x row) string { return string(x.State) }, "role": role, "profile": profile,
			"slot": slot, "node": node, "tree": func(x row) string { return filepath.Base(x.Tree) },
		},
		columns: []column[row]{
			{title: "MEMBER", w: 10, grow: 1, most: 28, end: true, by: ordered(func(x row) string { return x.ID }), cell: func(x row, _ int) (string, paint) { return x.ID, "" }},
			{title: "STATE", w: 8, by: ordered(func(x row) int { return stateOrder[x.State] }), cell: func(x row, _ int) (string, paint) {
				l := m.member(x.State)
				if !x.Alive() && x.ExitCode != nil {
					l.word = fmt.Sprintf("exit %d", *x.ExitCode)
				}
				return l.word, l.paint
			}},
			{title: "ROLE", w: 9, from: 48, by: ordered(role), cell: func(x row, _ int) (string, paint) {
				switch {
				case x.CharterMismatch:
					return "! " + x.Role, m.danger
				case x.CharterOutdated && x.Alive():
					return "≠ " + x.Role, m.warn
				}
				return x.Role, ""
			}},
			{title: "TREE", w: 12, grow: 3, most: 60, end: true, by: ordered(func(x row) string { return x.Tree }), cell: func(x row, _ int) (string, paint) {
				if n := len(x.Also); n > 0 {
					return m.treeIn(m.members, x.Tree) + fmt.Sprintf(" +%d", n), ""
				}
				return m.treeIn(m.members, x.Tree), ""
			}},
			{title: "NODE", w: 8, from: 56, many: true, by: ordered(node), cell: func(x row, _ int) (string, paint) { return m.nodeCell(x.Node) }},
			{title: "PROFILE", w: 9, from: 68, by: ordered(profile), cell: func(x row, _ int) (string, paint) { return x.Profile, m.faint }},
			{title: "SLOT", w: 12, from: 90, by: ordered(slot), cell: func(x row, _ int) (string, paint) { return x.Slot, m.faint }},
			{title: "UP", w: 6, from: 56, by: func(a, b row) int { return a.StartedAt.Compare(b.StartedAt) }, cell: func(x row, _ int) (string, paint) { return m.up(x), m.faint }},
			{title: "SAYS", w: 14, grow: 4, from: 110, cell: func(x row, _ int) (string, paint) { return x.StateMessage, m.faint }},
		},
		groups: []grouping[row]{{name: "role", of: role}, {name: "profile", of: profile}, {name: "state", of: func(x row) string { return string(x.State) }},
			{name: "repository", of: func(x row) string {
				if t := m.treeRowOf(x.Tree); t != nil {
					return m.short(repository(t))
				}
				return m.short(x.Tree)
			}}, {name: "node", of: node, many: true}},
		fault: memberFault,
		empty: func() [2]string {
			return [2]string{"nobody is at work", m.keys.Spawn.Help().Key + " dispatches an agent into a tree"}
		},
	}
}

// stateOrder is the states by how much they want a person.
var stateOrder = map[fleet.State]int{
	fleet.StateWaiting: 1, fleet.StateLost: 2, fleet.StateUnknown: 3, fleet.StateDone: 4, fleet.StateIdle: 5, fleet.StateWorking: 6, fleet.StateExited: 7,
}

// memberFault reports whether a member wants a person's attention.
func memberFault(x *fleet.Member) bool {
	if !x.Alive() {
		return x.ExitCode != nil && *x.ExitCode != 0
	}
	return x.State == fleet.StateWaiting || x.State == fleet.StateLost || x.CharterMismatch || x.CharterOutdated
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

// memberTitle names a member by tree, one of those that it holds, and by the title of its terminal.
func (m *Model) memberTitle(x *fleet.Member, tree string) string {
	s := clean(m.named(tree))
	if t := m.screen.screen.Title; m.screen.member == x.ID && m.screen.seen && t != "" {
		s += " · " + cut(t, 30)
	}
	return s
}

// memberDetail is the facts of a member and of tree, one of those that it holds, in as few lines as can be, and its screen.
func (m *Model) memberDetail(x *fleet.Member, tree string, w, h int) []string {
	state := m.member(x.State)
	who := state.String() + m.faint.of(" · ") + cut(x.Role+" on "+x.Profile, 40)
	if x.Slot != "" {
		who += m.faint.of(" · ") + cut(x.Slot, 20)
	}
	if up := m.up(x); up != "" {
		who += m.faint.of(" · " + up)
	}
	out := []string{" " + spread(who, m.faint.of(strings.TrimLeft(tail(x.ID, 8), " "))+" ", w-1)}
	if t := m.treeRowOf(tree); t != nil && t.Branch != "" && h > 5 {
		out = append(out, " "+m.faint.of("on ")+cut(work(t, w-5), w-5))
	}
	if m.elsewhere(x.Node) {
		_, path := fleet.Where(tree)
		out = append(out, " "+m.faint.of("host ")+cut(x.Node+" · "+m.short(path), w-7))
	}
	if len(x.Also) > 0 && h > 5 {
		out = append(out, " "+m.faint.of("holds ")+cut(m.holds(x), w-8))
	}
	switch {
	case x.CharterMismatch:
		out = append(out, " "+m.danger.of("! its charter is not that of its role: it asked for "+cut(x.RequestedRole, 20)))
	case x.CharterOutdated && x.Alive():
		out = append(out, " "+m.warn.of(cut("≠ its role has another charter by now: a restart hands that over", w-2)))
	}
	if x.State == fleet.StateLost {
		for _, l := range wrap("◇ its host is lost: whether it still runs nobody knows, so it keeps what it holds", w-2) {
			out = append(out, " "+m.warn.of(l))
		}
	}
	if !x.Alive() && x.ExitCode != nil {
		out = append(out, " "+m.faint.of(fmt.Sprintf("it ended with exit code %d", *x.ExitCode)))
	}
	if x.StateMessage != "" && h > 5 {
		p := m.text
		if x.State == fleet.StateWaiting {
			p = m.waiting
		}
		out = append(out, " "+p.of("“"+cut(x.StateMessage, w-4)+"”"))
	}
	if x.Task != "" && h > 12 {
		out = append(out, " "+m.faint.of("task ")+cut(x.Task, w-7))
	}
	out = append(out, m.rule.of(strings.Repeat("┄", w)))
	return append(out, m.screenLines(x, w, h-len(out))...)
}

// holds is the trees of a member that holds several, the one first that it was started in.
func (m *Model) holds(x *fleet.Member) string {
	all := []string{m.inList(x.Tree)}
	for _, t := range x.Also {
		all = append(all, m.inList(t.Path))
	}
	return strings.Join(all, ", ")
}

// screenLines is the part of a member's screen that the pane has room for: its end, unless it is scrolled.
func (m *Model) screenLines(x *fleet.Member, w, h int) []string {
	s := &m.screen
	note := func(p paint, text string) []string {
		var out []string
		for _, l := range wrap(text, w-2) {
			out = append(out, " "+p.of(l))
		}
		return out
	}
	switch {
	case x.State == fleet.StateLost:
		return note(m.faint, "its screen cannot be seen until its host is back")
	case s.member != x.ID, !s.seen && s.err == nil:
		return note(m.faint, "waiting for its screen…")
	case !s.seen:
		return note(m.warn, "its screen cannot be shown: "+s.err.Error())
	}
	lines, n := screenText(s.screen)
	if n == 0 {
		return note(m.faint, "its screen is empty")
	}
	atEnd := m.detail.top >= m.detail.most
	top := m.detail.window(n, h)
	if atEnd && m.detail.top < m.detail.most {
		m.detail.top = m.detail.most
		top = m.detail.top
	}
	out := make([]string, 0, max(h, 0))
	for _, l := range lines[top:min(top+max(h, 0), n)] {
		out = append(out, m.screenLine(l, w))
	}
	return out
}

// screenText is the lines of a screen, and how many of them stand before the blank ones at its end.
func screenText(s fleet.Screen) (lines []string, n int) {
	lines = s.Styled
	if len(lines) == 0 {
		lines = s.Lines
	}
	n = len(lines)
	for n > 0 && strings.TrimSpace(at(s.Lines, n-1)) == "" && n-1 > s.Cursor.Y {
		n--
	}
	return lines, n
}

// screenLine is a line of an agent's screen as exactly w cells: without its colours where the console has none.
func (m *Model) screenLine(l string, w int) string {
	if !m.colour {
		l = ansi.Strip(l)
	}
	return screenLine(l, w)
}
