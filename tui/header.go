package tui

import (
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
)

const (
	// fresh is the age up to which data counts as live.
	fresh = 10 * time.Second
	// stale is the age from which a bar says so.
	stale = 15 * time.Second
	// longHeld is how long the lock may be held until a bar says so. The admission itself takes milliseconds.
	longHeld = 5 * time.Second
)

// header is the program's name and its views, the truth line and the counts.
func (m *Model) header(w, h int) []string {
	tabs := m.tabs(w)
	if h < 2 {
		return []string{spread(tabs, m.counts(w-width(tabs)-1), w)}
	}
	truth := m.truth()
	counts := m.counts(w - 2)
	if width(tabs)+width(truth)+4 <= w {
		return []string{spread(tabs, truth+" ", w), spread(" "+counts, m.slotStrip(w-width(counts)-6)+" ", w)}
	}
	counts = m.counts(w - width(truth) - 4)
	return []string{fit(tabs, w), spread(" "+truth, counts+" ", w)}
}

func (m *Model) tabs(w int) string {
	b := m.brand.of(" fleetdeck")
	for i, k := range []key.Binding{m.keys.Trees, m.keys.Members, m.keys.Slots, m.keys.Reservations, m.keys.Events} {
		s := k.Help().Key + " " + k.Help().Desc
		switch {
		case view(i) == m.view:
			b += "  " + m.tab.of(s)
		case w >= 78:
			b += "  " + m.faint.of(s)
		}
	}
	if m.opts.ReadOnly {
		b += "  " + m.warn.of("read-only")
	}
	return b
}

// truth says whether what is shown can be trusted: the daemon, the lock, the file and the age of it all.
func (m *Model) truth() string {
	if !m.ix.loaded {
		return m.faint.of("reading the fleet")
	}
	part := func(p paint, s string) string { return p.of(s) }
	var s []string
	if d := m.ix.Daemon; d.Running {
		up := "daemon up"
		if !d.Since.IsZero() {
			up += " " + span(age(m.now, d.Since))
		}
		s = append(s, part(m.ok, "●")+" "+up)
	} else {
		s = append(s, part(m.danger, "× daemon down"))
	}
	switch h := m.ix.Lock.Holder; {
	case h != nil:
		m.counting = true
		s = append(s, part(m.warn, fmt.Sprintf("lock held by %d %s", h.Pid, seconds(age(m.now, h.Since)))))
	case m.ix.Lock.State == "held":
		s = append(s, part(m.warn, "lock held"))
	default:
		s = append(s, "lock free")
	}
	if m.ix.File.Error == "" {
		s = append(s, "file ok")
	} else {
		s = append(s, part(m.danger, "file broken"))
	}
	if a := m.dataAge(); a > fresh {
		m.counting = true
		s = append(s, part(m.warn, seconds(a)+" old"))
	} else {
		s = append(s, "live")
	}
	return strings.Join(s, m.faint.of(" · "))
}

// counts is how many trees are in each state, in words where there is room.
func (m *Model) counts(w int) string {
	if !m.ix.loaded {
		return ""
	}
	ix := &m.ix
	type count struct {
		n     int
		look  look
		quiet bool // not worth showing when there is none
	}
	all := []count{
		{ix.waiting, look{"!", "waiting for you", m.waiting}, true},
		{ix.occupied, m.occupancy("occupied"), false},
		{ix.reserved, m.occupancy("reserved"), false},
		{ix.free, m.occupancy("free"), false},
		{ix.foreign, m.occupancy("foreign"), true},
		{ix.droppable, look{"×", "to prune", m.faint}, true},
	}
	for _, words := range []bool{true, false} {
		var s []string
		for _, c := range all {
			if c.n == 0 && c.quiet {
				continue
			}
			text := fmt.Sprintf("%s %d", c.look.glyph, c.n)
			if words {
				text += " " + c.look.word
			}
			s = append(s, c.look.paint.of(text))
		}
		sep := "   "
		if !words {
			sep = " "
		}
		// The first are the ones that matter most: without words, as many of them as fit.
		for ; len(s) > 0; s = s[:len(s)-1] {
			if line := strings.Join(s, sep); width(line) <= w {
				return line
			}
			if words {
				break
			}
		}
	}
	return ""
}

// dataAge is the age of the oldest of what is shown. A daemon that is down has a bar of its own.
func (m *Model) dataAge() time.Duration {
	a := age(m.now, m.ix.File.ReadAt)
	if m.ix.Daemon.Running {
		a = max(a, age(m.now, m.ix.Daemon.AnsweredAt))
	}
	return a
}

// alertLines are the bars over the lists: what is wrong, and what to do about it.
func (m *Model) alertLines(w int) []string {
	var out []string
	bar := func(p paint, title, text string) {
		s := " " + title
		if text != "" {
			s += " · " + clean(text)
		}
		out = append(out, p.of(fit(s, w)))
	}
	if err := m.polling.err; err != nil {
		bar(m.dangerBar, "NO NEWS OF THE FLEET", "what is shown may be old · "+err.Error())
	}
	if !m.ix.loaded {
		return out
	}
	if d := m.ix.Daemon; !d.Running {
		why := "dispatches are refused · `fleetdeck up` starts it"
		if d.Error != "" {
			why += " · " + d.Error
		}
		bar(m.dangerBar, "DAEMON DOWN", why)
	}
	if e := m.ix.File.Error; e != "" {
		bar(m.dangerBar, "RESERVATION FILE BROKEN", "dispatches are refused · "+e+" · `fleetdeck doctor` says how to mend it")
	}
	if m.ix.mismatched > 0 {
		bar(m.dangerBar, "CHARTER MISMATCH", plural(m.ix.mismatched, "member holds", "members hold")+" a charter of a role that is not theirs · 2 shows which")
	}
	if a := m.dataAge(); a > stale {
		m.counting = true
		bar(m.warnBar, "STALE", "what is shown is "+seconds(a)+" old · r asks again")
	}
	if h := m.ix.Lock.Holder; h != nil && h.Pid != m.pid && age(m.now, h.Since) > longHeld {
		bar(m.warnBar, "LOCK HELD", fmt.Sprintf("by %s for %s · dispatches wait for it", holder(h), seconds(age(m.now, h.Since))))
	}
	return out
}

// title is the terminal's title.
func (m *Model) title() string {
	s := "fleetdeck · " + plural(len(m.ix.trees), "tree", "trees")
	if m.ix.waiting > 0 {
		s += fmt.Sprintf(" · %d waiting", m.ix.waiting)
	}
	return s
}

// footer is the keys that matter here, as many as fit. They are dropped from the end; help stays.
func (m *Model) footer(w int) string {
	if m.typing {
		return fit(" "+m.hints([]key.Binding{keyApply, keyClear}, w-1), w)
	}
	if m.dialog != nil {
		return fit("", w) // the dialog names its own keys
	}
	help := m.hints([]key.Binding{m.keys.Help}, w)
	left := m.hints(m.context(), w-width(help)-4)
	return spread(" "+left, help+" ", w)
}

// hints is bindings as text of at most w cells.
func (m *Model) hints(keys []key.Binding, w int) string {
	var b strings.Builder
	n := 0
	for _, k := range keys {
		h := k.Help()
		if !k.Enabled() {
			continue
		}
		size := width(h.Key) + 1 + width(h.Desc)
		if n > 0 {
			size += 2
		}
		if n+size > w {
			break
		}
		if n > 0 {
			b.WriteString("  ")
		}
		b.WriteString(m.key.of(h.Key) + " " + h.Desc)
		n += size
	}
	return b.String()
}

// context is the keys that do something with what is selected, the most useful first.
func (m *Model) context() []key.Binding {
	k := &m.keys
	var out []key.Binding
	switch l := m.listed(); {
	case l == viewReservations, l == viewEvents:
		out = append(out, bind("enter", "go to its tree", "enter"))
	case m.selectedMember() != nil && !m.opts.ReadOnly:
		out = append(out, k.Attach, k.Message, k.Stop)
	}
	if m.listed() != viewReservations && m.listed() != viewEvents && m.selectedMember() != nil {
		out = append(out, m.goesTo())
	}
	if m.listed() == viewReservations || m.ix.entry[m.selectedTree()] != nil {
		out = append(out, k.Release)
	}
	out = append(out, k.Spawn, k.Prune, k.Filter, k.NextPane)
	if m.view != viewTrees {
		return append(out, k.Back)
	}
	return append(out, k.Refresh, k.Quit)
}
