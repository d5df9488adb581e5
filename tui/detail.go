package tui

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"fleetdeck/fleet"
)

// detailPane is what is selected in the list: the live screen of who is there, what holds a tree, or why it is free.
func (m *Model) detailPane(r rect) []string {
	if r.empty() {
		return nil
	}
	focused := m.pane == paneDetail
	show := func(title string, body func(w, h int) []string) []string {
		return m.boxed(r, focused, title, "", body)
	}
	switch m.view {
	case viewMembers:
		if x, ok := m.members.current(); ok {
			return show(m.memberTitle(x), func(w, h int) []string { return m.memberDetail(x, w, h) })
		}
	case viewSlots:
		if s, ok := m.slots.current(); ok {
			return show(clean(s.Name), func(w, h int) []string { return m.scrolled(m.slotDetail(s, w), h) })
		}
	case viewReservations:
		if e, ok := m.entries.current(); ok {
			return show(clean(filepath.Base(e.Tree)), func(w, h int) []string {
				return m.scrolled(m.entryDetail(e, w), h)
			})
		}
	default:
		if t, ok := m.trees.current(); ok {
			if x := m.ix.member[t.Member]; x != nil {
				return show(m.memberTitle(x), func(w, h int) []string { return m.memberDetail(x, w, h) })
			}
			return show(clean(filepath.Base(t.Tree)), func(w, h int) []string {
				return m.scrolled(m.treeDetail(t, w), h)
			})
		}
	}
	return show("Detail", func(int, int) []string { return nil })
}

// scrolled is the part of a text that the pane is scrolled to.
func (m *Model) scrolled(lines []string, h int) []string {
	return lines[min(m.detail.window(len(lines), h), len(lines)):]
}

func (m *Model) memberTitle(x *fleet.Member) string {
	s := clean(filepath.Base(x.Tree))
	if t := m.screen.screen.Title; m.screen.member == x.ID && m.screen.seen && t != "" {
		s += " · " + cut(t, 30)
	}
	return s
}

// memberDetail is a member's facts in as few lines as can be, and its screen.
func (m *Model) memberDetail(x *fleet.Member, w, h int) []string {
	state := m.member(x.State)
	who := state.String() + m.faint.of(" · ") + cut(x.Role+" on "+x.Profile, 40)
	if x.Slot != "" {
		who += m.faint.of(" · ") + cut(x.Slot, 20)
	}
	if up := m.up(x); up != "" {
		who += m.faint.of(" · " + up)
	}
	out := []string{" " + spread(who, m.faint.of(strings.TrimLeft(tail(x.ID, 8), " "))+" ", w-1)}
	if x.CharterMismatch {
		out = append(out, " "+m.danger.of("! its charter is not that of its role: it asked for "+cut(x.RequestedRole, 20)))
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
	case s.member != x.ID, !s.seen && s.err == nil:
		return note(m.faint, "waiting for its screen…")
	case !s.seen:
		return note(m.warn, "its screen cannot be shown: "+s.err.Error())
	}
	lines := s.screen.Styled
	if len(lines) == 0 {
		lines = s.screen.Lines
	}
	n := len(lines)
	for n > 0 && strings.TrimSpace(at(s.screen.Lines, n-1)) == "" && n-1 > s.screen.Cursor.Y {
		n--
	}
	if n == 0 {
		return note(m.faint, "its screen is empty")
	}
	atEnd := m.detail.top >= m.detail.most
	top := m.detail.window(n, h)
	if atEnd && m.detail.top < m.detail.most {
		m.detail.top = m.detail.most
		top = m.detail.top
	}
	out := make([]string, 0, h)
	for _, l := range lines[top:min(top+h, n)] {
		out = append(out, screenLine(l, w))
	}
	return out
}

// at is line i, or empty where there is none.
func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// fact is a named line of a text.
func (m *Model) fact(name, value string, w int) string {
	return " " + m.faint.of(pad(name, 10)) + cut(value, w-12)
}

// treeDetail says why a tree without a member is as it is.
func (m *Model) treeDetail(t *fleet.TreeRow, w int) []string {
	out := []string{" " + cut(fleet.ShortPath(t.Tree, m.opts.Home), w-2)}
	entry := m.ix.entry[t.Tree]
	para := func(p paint, text string) {
		for _, l := range wrap(text, w-2) {
			out = append(out, " "+p.of(l))
		}
	}
	switch {
	case t.Occupancy == fleet.Foreign:
		out = append(out, " "+m.occupancy(t.Occupancy).String(), "")
		para("", "An agent that fleetdeck did not start runs here. Nobody is dispatched into this tree until it has ended.")
	case t.Occupancy == fleet.Reserved:
		out = append(out, m.hold(t, entry, w)...)
	case m.assumed[t.Tree] != nil:
		as := m.assumed[t.Tree]
		out = append(out, " "+m.reserved.of("◌ dispatching…"), "")
		para("", "You asked for "+as.role+" on "+as.profile+" here. It shows as reserved once its reservation stands in the file.")
	case t.Missing:
		out = append(out, " "+m.danger.of("! gone"), "")
		para("", "The directory is not there any more.")
	default:
		out = append(out, " "+m.occupancy(t.Occupancy).String(), "")
		para("", "No member, no launch and no live reservation holds it.")
		if entry != nil && entry.Droppable {
			para(m.faint, fmt.Sprintf("An entry that is %s still stands in the file; it holds nothing, and %s drops it.",
				entry.Verdict, m.keys.Prune.Help().Key))
		}
		if m.keys.Spawn.Enabled() {
			out = append(out, "", " "+m.key.of(m.keys.Spawn.Help().Key)+" dispatches an agent here")
		}
	}
	return append(out, m.lately(t.Tree, w)...)
}

// lately is the last events of a tree.
func (m *Model) lately(tree string, w int) []string {
	var out []string
	for _, d := range m.events.all {
		if d.Tree != tree {
			continue
		}
		if out == nil {
			out = []string{"", " " + m.strong.of("Lately")}
		}
		text := d.Message
		if text == "" {
			text = d.Kind
		}
		l := m.level(d.Level)
		out = append(out, " "+l.paint.of(l.glyph)+" "+m.faint.of(d.Time.Local().Format("15:04:05"))+"  "+cut(text, w-14))
		if len(out) > 9 {
			break
		}
	}
	return out
}

// hold says what holds a reserved tree, and what will end that.
func (m *Model) hold(t *fleet.TreeRow, e *fleet.ReservationRow, w int) []string {
	m.counting = true
	left := t.Deadline.Remaining(m.now)
	out := []string{" " + m.occupancy(t.Occupancy).String() + m.faint.of(" · ") + m.reserved.of(countdown(left)+" left")}
	if e != nil && !e.ReservedAt.IsZero() {
		out = append(out, " "+m.gauge(left, e.ExpiresAt.Sub(e.ReservedAt), w-2))
	}
	out = append(out, "")
	if l := m.ix.launch[t.Launch]; l != nil {
		s := l.Step
		if l.Pid != 0 {
			s += fmt.Sprintf(" · pid %d", l.Pid)
		}
		if !l.AcceptedAt.IsZero() {
			s += " · accepted " + m.since(l.AcceptedAt)
		}
		out = append(out, m.fact("launch", s, w), m.fact("for", l.Role+" on "+l.Profile, w))
		if l.Slot != "" {
			out = append(out, m.fact("slot", l.Slot, w))
		}
	} else {
		out = append(out, m.fact("launch", "the daemon has none yet", w))
	}
	if e != nil {
		out = append(out, m.writer(e, w)...)
	} else {
		out = append(out, m.fact("file", "no entry: the launch alone holds the tree", w))
	}
	return append(out, m.ends(left, w)...)
}

// entryDetail is everything about a reservation.
func (m *Model) entryDetail(e *fleet.ReservationRow, w int) []string {
	v := m.verdict(e.Verdict)
	out := []string{" " + cut(fleet.ShortPath(e.Tree, m.opts.Home), w-2)}
	left := e.Deadline.Remaining(m.now)
	if e.Verdict != fleet.VerdictPending {
		why := map[fleet.Verdict]string{
			fleet.VerdictListed:  "its worker is a member: it holds nothing any more",
			fleet.VerdictExpired: "its grace ran out: it holds nothing any more",
			fleet.VerdictInvalid: "it has no id or no absolute path: it holds its tree until its time is over",
		}[e.Verdict]
		out = append(out, " "+v.String()+m.faint.of(" · ")+cut(why, w-16), "")
		out = append(out, m.fact("for", e.Role+" on "+e.Profile, w))
		return append(out, m.writer(e, w)...)
	}
	m.counting = true
	out = append(out, " "+v.String()+m.faint.of(" · ")+v.paint.of(countdown(left)+" left"))
	if !e.ReservedAt.IsZero() {
		out = append(out, " "+m.gauge(left, e.ExpiresAt.Sub(e.ReservedAt), w-2))
	}
	out = append(out, "", m.fact("for", e.Role+" on "+e.Profile, w))
	out = append(out, m.writer(e, w)...)
	return append(out, m.ends(left, w)...)
}

// since says how long ago a moment was.
func (m *Model) since(t time.Time) string {
	a := age(m.now, t)
	m.counting = m.counting || a < time.Minute
	return ago(a)
}

// writer says who wrote a reservation, and when.
func (m *Model) writer(e *fleet.ReservationRow, w int) []string {
	out := []string{m.fact("by", dispatcher(e.Dispatcher), w)}
	if !e.ReservedAt.IsZero() {
		out = append(out, m.fact("at", e.ReservedAt.Local().Format("15:04:05")+" · "+m.since(e.ReservedAt), w))
	}
	if e.Slot != "" {
		out = append(out, m.fact("slot", e.Slot, w))
	}
	return append(out, m.fact("id", e.ID, w))
}

// ends says what ends a live reservation.
func (m *Model) ends(left time.Duration, w int) []string {
	out := []string{"", " " + m.strong.of("Ends when")}
	for _, s := range []string{
		"its worker is listed",
		"its dispatch is provably refused",
		"its grace runs out, in " + countdown(left),
		"you release it: " + m.keys.Release.Help().Key,
	} {
		out = append(out, " "+m.faint.of("·")+" "+cut(s, w-4))
	}
	return out
}

// gauge is how much of a grace is left, as a bar of at most 40 cells.
func (m *Model) gauge(left, whole time.Duration, w int) string {
	w = min(w, 40)
	if whole <= 0 || w <= 0 {
		return ""
	}
	n := int(min(max(left.Seconds()/whole.Seconds(), 0), 1) * float64(w))
	return m.reserved.of(strings.Repeat("━", n)) + m.faint.of(strings.Repeat("─", w-n))
}
