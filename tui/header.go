package tui

import (
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
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
	if m.opts.ReadOnly {
		mode = "  " + m.warn.of("read-only")
	}
	for _, brand := range []string{m.brand.of(" fleetdeck") + "  ", " "} {
		var s []string
		for v := viewTrees; v <= lastView; v++ {
			s = append(s, m.tabOf(v, true))
		}
		if line := brand + strings.Join(s, "  ") + mode; width(line) <= w {
			return line
		}
	}
	var s []string
	for v := viewTrees; v <= lastView; v++ {
		s = append(s, m.tabOf(v, v == m.view))
	}
	return " " + strings.Join(s, " ") + mode
}

// tabAt is the view whose tab is at a column of the first line.
func (m *Model) tabAt(x int) (view, bool) {
	line := ansi.Strip(m.tabs(m.width))
	at := 0
	for v := viewTrees; v <= lastView; v++ {
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
	k := [...]key.Binding{m.keys.Trees, m.keys.Members, m.keys.Slots, m.keys.Reservations, m.keys.Queue, m.keys.Events, m.keys.History}[v]
	s := k.Help().Key
	if words {
		s += " " + k.Help().Desc
	}
	if v == m.view {
		return m.tab.of(s)
	}
	return m.faint.of(s)
}

// truth says whether what is shown can be trusted: the daemon, the lock, the keeper, the file and the age of it all.
func (m *Model) truth() string {
	if !m.ix.loaded {
		return m.faint.of("reading the fleet")
	}
	var s []string
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
	default:
		add("", "lock free")
	}
	switch k := m.ix.Keeper; {
	case k.Error != "":
		add(m.danger, "keeper unknown")
	case k.Broken > 0:
		add(m.danger, "keeper: %d broken", k.Broken)
	case k.Running:
		add("", "keeper on")
	case m.ix.queued > 0 || k.Staff > 0:
		add(m.warn, "no keeper")
	default:
		add(m.faint, "no keeper")
	}
	if m.ix.File.Error == "" {
		add("", "file ok")
	} else {
		add(m.danger, "file broken")
	}
	file, daemon := age(m.now, m.ix.File.ReadAt), age(m.now, m.ix.Daemon.AnsweredAt)
	if !m.ix.Daemon.Running {
		daemon = 0 // that it is down is said already
	}
	switch {
	case file > fresh && daemon > fresh:
		add(m.warn, "%s old", seconds(max(file, daemon)))
	case file > fresh:
		add(m.warn, "file %s old", seconds(file))
	case daemon > fresh:
		add(m.warn, "daemon's data %s old", seconds(daemon))
	default:
		add("", "live")
	}
	m.counting = m.counting || max(file, daemon) > fresh
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
	if n := m.ix.outdated; n > 0 {
		bar(m.warnBar, "CHARTER OUTDATED", plural(n, "member works", "members work")+" on an older charter than its role has now · 2 shows which · a restart hands the new one over")
	}
	if k := m.ix.Keeper; k.Error != "" {
		bar(m.dangerBar, "KEEPER UNKNOWN", k.Error)
	} else if k.Broken > 0 {
		bar(m.dangerBar, "KEEPER GAVE UP", plural(k.Broken, "tree is", "trees are")+" not staffed any more · `fleetdeck keep --status` says why, `fleetdeck keep --reset TREE` tries again")
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

// programStatus tells terminals that can show it whether somebody waits for a person, or something is under way.
func (m *Model) programStatus() *tea.ProgramStatus {
	switch {
	case m.ix.waiting > 0:
		return &tea.ProgramStatus{State: tea.ProgramStateBlocked, Message: plural(m.ix.waiting, "agent waits", "agents wait") + " for you"}
	case len(m.acts) > 0:
		return &tea.ProgramStatus{State: tea.ProgramStateWorking}
	}
	return &tea.ProgramStatus{State: tea.ProgramStateIdle}
}

// notify tells the operator's terminal that a member has begun to wait for a person.
func (m *Model) notify(before index) tea.Cmd {
	if !before.loaded || m.opts.Notify == "none" {
		return nil
	}
	for _, x := range m.ix.members {
		if old := before.member[x.ID]; x.State != fleet.StateWaiting || old != nil && old.State == x.State {
			continue
		}
		text := clean(x.Role + " in " + m.short(x.Tree) + " waits for you: " + x.StateMessage)
		switch m.opts.Notify {
		case "osc9":
			return tea.Raw(ansi.Notify(text))
		case "osc777":
			return tea.Raw("\x1b]777;notify;fleetdeck;" + strings.ReplaceAll(text, ";", ",") + "\a")
		}
		return tea.Raw("\a")
	}
	return nil
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
	if n := m.list().marked(); n > 0 {
		clear := k.Back
		clear.SetHelp(k.Back.Help().Key, "clear the marks")
		return append(m.forChosen(), k.MarkAll, clear)
	}
	l := m.listed()
	goes := m.goesTo()
	var out []key.Binding
	x := m.selectedMember()
	if x != nil && !m.opts.ReadOnly && l != viewReservations && l != viewEvents && l != viewHistory && l != viewQueue {
		if x.State == fleet.StateWaiting {
			out = append(out, k.Answer)
		}
		out = append(out, k.Attach, k.Message, k.Stop)
	}
	if l == viewReservations || l == viewEvents || l == viewHistory || l == viewQueue {
		out = append(out, bind(k.Attach.Help().Key, "go to its tree", k.Attach.Keys()...))
	} else if x != nil {
		out = append(out, goes)
	}
	if l == viewQueue && len(m.queue.shown) > 0 {
		out = append(out, k.Unqueue)
	}
	if l == viewReservations || m.ix.entry[m.selectedTree()] != nil {
		out = append(out, k.Release)
	}
	out = append(out, k.Spawn, k.Prune, k.Filter, k.NextPane)
	if m.view != viewTrees {
		return append(out, k.Back)
	}
	return append(out, k.Palette, k.Diff, k.Explain, k.Enqueue, k.Quit)
}

// forChosen is the keys of the acts that go over marked rows.
func (m *Model) forChosen() []key.Binding {
	k := &m.keys
	switch m.listed() {
	case viewTrees:
		return []key.Binding{k.Spawn, k.Enqueue, k.Message, k.Stop, k.Restart, k.Release}
	case viewMembers, viewSlots:
		return []key.Binding{k.Message, k.Stop, k.Restart}
	case viewReservations:
		return []key.Binding{k.Release}
	case viewQueue:
		return []key.Binding{k.Unqueue}
	}
	return []key.Binding{k.Copy}
}
