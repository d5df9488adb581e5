package tui

import (
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"github.com/charmbracelet/x/ansi"
)

const (
	// fresh is the age up to which data counts as live.
	fresh = 10 * time.Second
	// stale is the age from which a bar says so.
	stale = 15 * time.Second
	// longHeld is how long the lock may be held until a bar says so. The admission itself takes milliseconds.
	longHeld = 5 * time.Second
)

// oneLineHeader is the width from which views and truth stand in one line.
const oneLineHeader = 160

// header is the program's name and its views, the truth line, the counts and the slots.
func (m *Model) header(w, h int) []string {
	tabs := m.tabs(w)
	if h < 2 {
		return []string{spread(tabs, m.counts(w-width(tabs)-1), w)}
	}
	truth := m.truth()
	if w >= oneLineHeader && width(tabs)+width(truth)+4 <= w {
		counts := m.counts(w - 2)
		return []string{spread(tabs, truth+" ", w), spread(" "+counts, m.slotStrip(w-width(counts)-6)+" ", w)}
	}
	if h < 3 {
		return []string{fit(tabs, w), spread(" "+truth, m.counts(w-width(truth)-4)+" ", w)}
	}
	counts := m.counts(w - width(truth) - 4)
	strip := m.slotStrip(w - 2)
	if counts == "" {
		// The truth takes the whole line: the counts go before the slots.
		counts = m.counts(w/2 - 2)
		return []string{fit(tabs, w), fit(" "+truth, w), spread(" "+m.slotStrip(w-width(counts)-4), counts+" ", w)}
	}
	return []string{fit(tabs, w), spread(" "+truth, counts+" ", w), fit(" "+strip, w)}
}

// tabs is the views with their keys, in as many words as there is room for.
func (m *Model) tabs(w int) string {
	mode := ""
	switch {
	case m.opts.Recorded:
		mode = "  " + m.warn.of("recording")
	case m.opts.ReadOnly:
		mode = "  " + m.warn.of("read-only")
	}
	for _, brand := range []string{m.brand.of(" fleetdeck") + "  ", " "} {
		var s []string
		for v := viewTrees; v <= m.lastTab(); v++ {
			s = append(s, m.tabOf(v, true))
		}
		if line := brand + strings.Join(s, "  ") + mode; width(line) <= w {
			return line
		}
	}
	var s []string
	for v := viewTrees; v <= m.lastTab(); v++ {
		s = append(s, m.tabOf(v, v == m.view))
	}
	return " " + strings.Join(s, " ") + mode
}

// tabAt is the view whose tab is at a column of the first line.
func (m *Model) tabAt(x int) (view, bool) {
	line := ansi.Strip(m.tabs(m.width))
	at := 0
	for v := viewTrees; v <= m.lastTab(); v++ {
		for _, words := range []bool{true, false} {
			s := ansi.Strip(m.tabOf(v, words))
			if i := strings.Index(line[at:], s); i >= 0 {
				if x >= at+i && x < at+i+len(s) {
					return v, true
				}
				at += i + len(s)
				break
			}
		}
	}
	return 0, false
}

// tabOf is a view's key, and its name where words is set.
func (m *Model) tabOf(v view, words bool) string {
	k := [...]key.Binding{m.keys.Trees, m.keys.Members, m.keys.Slots, m.keys.Reservations, m.keys.Queue, m.keys.Events, m.keys.History, m.keys.Nodes}[v]
	s := k.Help().Key
	if words {
		s += " " + k.Help().Desc
	}
	if v == m.view {
		return m.tab.of(s)
	}
	return m.faint.of(s)
}

// truth says whether what is shown can be trusted: the daemon, the lock, the keeper, the file, or the cluster that stands in its place, and
// the age of it all.
func (m *Model) truth() string {
	if !m.ix.loaded {
		return m.faint.of("reading the fleet")
	}
	var s []string
	if m.opts.Recorded {
		s = append(s, m.warn.of("recorded "+m.ix.At.Wall.Local().Format("2006-01-02 15:04:05")))
	}
	add := func(p paint, format string, args ...any) { s = append(s, p.of(fmt.Sprintf(format, args...))) }
	if d := m.ix.Daemon; d.Running {
		up := "daemon up"
		if !d.Since.IsZero() {
			up += " " + span(age(m.now, d.Since))
		}
		s = append(s, m.ok.of("●")+" "+up)
	} else {
		add(m.danger, "× daemon down")
	}
	switch h := m.ix.Lock.Holder; {
	case h != nil:
		m.counting = true
		add(m.warn, "lock held by %d %s", h.Pid, seconds(age(m.now, h.Since)))
	case m.ix.Lock.State == "held":
		add(m.warn, "lock held")
	case m.many(): // no dispatch waits for it
	default:
		add("", "lock free")
	}
	switch k := m.ix.Keeper; {
	case k.Error != "":
		add(m.danger, "keeper unknown")
	case k.Broken > 0:
		add(m.danger, "keeper: %d broken", k.Broken)
	case m.many():
		s = append(s, m.elected())
	case k.Running:
		add("", "keeper on")
	case m.kept():
		add("", "keeper ready")
	case m.ix.queued > 0 || k.Staff > 0:
		add(m.warn, "no keeper")
	default:
		add(m.faint, "no keeper")
	}
	base := "file"
	switch {
	case m.many():
		base = "etcd"
		s = append(s, m.etcd())
	case m.ix.File.Error == "":
		add("", "file ok")
	default:
		add(m.danger, "file broken")
	}
	file, daemon := m.baseAge(), age(m.now, m.ix.Daemon.AnsweredAt)
	if !m.ix.Daemon.Running {
		daemon = 0 // that it is down is said already
	}
	switch {
	case file > fresh && daemon > fresh:
		add(m.warn, "%s old", seconds(max(file, daemon)))
	case file > fresh:
		add(m.warn, "%s %s old", base, seconds(file))
	case daemon > fresh:
		add(m.warn, "daemon's data %s old", seconds(daemon))
	case m.ix.Daemon.Running && m.ix.File.Error == "" && m.etcdAway() == "" && !m.opts.Recorded:
		add("", "live")
	}
	m.counting = m.counting || max(file, daemon) > fresh
	return strings.Join(s, m.faint.of(" · "))
}

// kept reports whether somebody works off the queue: a keeper that runs, or a daemon that starts one.
func (m *Model) kept() bool {
	return m.ix.Keeper.Running || m.ix.Keeper.OnDemand && m.ix.Daemon.Running
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
		{ix.unsure, m.occupancy("unknown"), true},
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
