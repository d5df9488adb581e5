package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"fleetdeck/fleet"
)

// detailPane is what is selected in the list: the live screen of who is there, what holds a tree, or why it is free.
func (m *Model) detailPane(r rect) []string {
	if r.empty() {
		return nil
	}
	title, body := m.detailOf()
	return m.boxed(r, m.pane == paneDetail, title, "", body)
}

// detailOf is the title and the text of the detail.
func (m *Model) detailOf() (title string, body func(w, h int) []string) {
	text := func(lines func(w int) []string) func(w, h int) []string {
		return func(w, h int) []string { return m.scrolled(lines(w), h) }
	}
	switch m.view {
	case viewMembers:
		if x, ok := m.members.current(); ok {
			return m.memberTitle(x, x.Tree), func(w, h int) []string { return m.memberDetail(x, x.Tree, w, h) }
		}
	case viewSlots:
		if s, ok := m.slots.current(); ok {
			return clean(s.Name), text(func(w int) []string { return m.slotDetail(s, w) })
		}
	case viewReservations:
		if e, ok := m.entries.current(); ok {
			return clean(m.named(e.Tree)), text(func(w int) []string { return m.entryDetail(e, w) })
		}
	case viewQueue:
		if q, ok := m.queue.current(); ok {
			return clean(m.named(q.Tree)), text(func(w int) []string { return m.queueDetail(q, w) })
		}
	case viewEvents:
		if d, ok := m.events.current(); ok {
			return clean(d.Kind), text(func(w int) []string { return m.eventDetail(d, w) })
		}
	case viewHistory:
		if d, ok := m.history.current(); ok {
			return clean(d.What), text(func(w int) []string { return m.historyDetail(d, w) })
		}
	case viewNodes:
		if n, ok := m.nodes.current(); ok {
			return clean(n.Name), text(func(w int) []string { return m.nodeDetail(n, w) })
		}
	default:
		if t, ok := m.trees.current(); ok {
			if x := m.ix.member[t.Member]; x != nil {
				return m.memberTitle(x, t.Tree), func(w, h int) []string { return m.memberDetail(x, t.Tree, w, h) }
			}
			return clean(m.named(t.Tree)), text(func(w int) []string { return m.treeDetail(t, w) })
		}
	}
	return "Detail", func(int, int) []string { return nil }
}

// scrolled is the part of a text that the pane is scrolled to.
func (m *Model) scrolled(lines []string, h int) []string {
	return lines[min(m.detail.window(len(lines), h), len(lines)):]
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
	out := []string{" " + cut(m.short(t.Tree), w-2)}
	if t.Branch != "" {
		dirt := "clean"
		if t.Dirty {
			dirt = "with changes that are not committed · " + m.keys.Diff.Help().Key + " shows them"
		}
		out = append(out, " "+m.faint.of("on ")+cut(t.Branch, max(w/2, 10))+m.faint.of(cut(" · "+dirt, w-6-min(width(clean(t.Branch)), max(w/2, 10)))))
		if t.Upstream != "" {
			out = append(out, " "+m.faint.of(cut(upstream(t), w-2)))
		}
	}
	entry := m.ix.entry[t.Tree]
	para := func(p paint, text string) {
		for _, l := range wrap(text, w-2) {
			out = append(out, " "+p.of(l))
		}
	}
	switch {
	case t.Occupancy == fleet.Foreign:
		out = append(out, " "+m.occupancy(t.Occupancy).String(), "")
		if f := t.Foreign; f.Pid != 0 {
			out = append(out, m.fact("agent", f.Agent, w), m.fact("pid", strconv.Itoa(f.Pid), w))
			if !f.Since.IsZero() {
				out = append(out, m.fact("since", f.Since.Local().Format("15:04:05")+" · "+m.since(f.Since), w))
			}
			out = append(out, "")
		}
		para("", "An agent that fleetdeck did not start runs here. Nobody is dispatched into this tree until it has ended, unless you say so.")
	case t.Occupancy == fleet.Reserved:
		out = append(out, m.hold(t, entry, w)...)
	case m.assumed[t.Tree] != nil:
		as := m.assumed[t.Tree]
		out = append(out, " "+m.reserved.of("◌ dispatching…"), "")
		para("", "You asked for "+as.role+" on "+as.profile+" here. It shows as reserved once its reservation stands in the file.")
	case t.Occupancy == fleet.Unsure:
		out = append(out, " "+m.occupancy(t.Occupancy).String(), "")
		why := "The daemon does not answer: who may be in it is not known. Nobody is dispatched into it meanwhile."
		if m.etcdAway() != "" {
			why = "etcd is not heard: what is on its way to it is not known. Nobody is dispatched into it meanwhile."
		} else if m.ix.File.Error != "" {
			why = "The reservation file cannot be read: what is on its way to it is not known. Nobody is dispatched into it meanwhile."
		}
		para(m.warn, why)
	case t.Occupancy == fleet.Taken && m.elsewhere(t.Node):
		out = append(out, " "+m.occupancy(t.Occupancy).String(), "", m.fact("node", t.Node, w), m.fact("id", t.Reservation, w), "")
		para("", "A member of that host holds it, of whom it has told nothing yet.")
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
	out = append(out, m.queuedFor(t.Tree, w)...)
	out = append(out, m.lastMembers(t.Tree, w)...)
	return append(out, m.lately(t.Tree, w)...)
}

// queuedFor is the tasks that wait for a tree.
func (m *Model) queuedFor(tree string, w int) []string {
	var out []string
	for _, q := range m.ix.queue {
		if q.Tree != tree {
			continue
		}
		if out == nil {
			out = []string{"", " " + m.strong.of("Queue")}
		}
		l := m.task(q.State)
		out = append(out, " "+l.paint.of(l.glyph)+" "+cut(l.word+"  "+q.Task, w-4))
	}
	return out
}

// lastMembers is who was in a tree last.
func (m *Model) lastMembers(tree string, w int) []string {
	var out []string
	for i := len(m.ix.members) - 1; i >= 0 && len(out) < 5; i-- {
		x := m.ix.members[i]
		if x.Alive() || !x.Holds(fleet.Tree{Path: tree}) {
			continue
		}
		if out == nil {
			out = []string{"", " " + m.strong.of("Last members")}
		}
		how := "ended"
		if x.ExitCode != nil {
			how = fmt.Sprintf("exit %d", *x.ExitCode)
		}
		out = append(out, " "+m.faint.of("× ")+cut(fmt.Sprintf("%s on %s  %s  %s", x.Role, x.Profile, how, x.Task), w-4))
	}
	return out
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
		if len(l.Also) > 0 {
			out = append(out, m.fact("holds", m.holds(&fleet.Member{Tree: l.Tree, Also: l.Also}), w))
		}
	} else if m.elsewhere(t.Node) {
		out = append(out, m.fact("node", t.Node, w))
	} else {
		out = append(out, m.fact("launch", "the daemon has none yet", w))
	}
	if e != nil {
		out = append(out, m.writer(e, w)...)
	} else {
		out = append(out, m.fact("file", "no entry: the launch alone holds the tree", w))
	}
	return append(out, m.ends(t.Node, left, w)...)
}

// since says how long ago a moment was.
func (m *Model) since(t time.Time) string {
	a := age(m.now, t)
	m.counting = m.counting || a < time.Minute
	return ago(a)
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
