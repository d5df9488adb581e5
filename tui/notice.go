package tui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

const (
	// noticeTime is how long a notice that is no error stays.
	noticeTime = 5 * time.Second
	// readTime is how long an error stays whatever is pressed, so that a key already on its way does not wipe it.
	readTime = time.Second
	// mostNotices is how many are shown at once.
	mostNotices = 3
)

// levelDone is the level of a notice that says that something was done.
const levelDone = "done"

// notice is something that the console says. An error stays until a key is pressed; all of them stay in the event list.
type notice struct {
	id         uint64
	level      string
	text, hint string
	at         time.Duration // monotonic
	about      string        // what a later notice about the same takes the place of; empty for most
}

func (n *notice) sticky() bool { return n.level == levelAlarm }

type expireMsg struct{ id uint64 }

// say shows a notice.
func (m *Model) say(level, text, hint string) tea.Cmd {
	return m.add(&notice{id: m.next(), level: level, text: clean(text), hint: clean(hint), at: m.now.Mono})
}

// sayOf shows a notice in place of an earlier one about the same.
func (m *Model) sayOf(about, text string) tea.Cmd {
	m.notices = slices.DeleteFunc(m.notices, func(n *notice) bool { return n.about == about })
	return m.add(&notice{id: m.next(), level: levelInfo, text: clean(text), at: m.now.Mono, about: about})
}

func (m *Model) add(n *notice) tea.Cmd {
	m.notices = append(m.notices, n)
	if over := len(m.notices) - mostNotices; over > 0 {
		m.notices = m.notices[over:]
	}
	if n.sticky() {
		return nil
	}
	return tea.Tick(noticeTime, func(time.Time) tea.Msg { return expireMsg{n.id} })
}

// record shows the end of an act, and keeps it among the events.
func (m *Model) record(e end, tree string) tea.Cmd {
	text := e.text
	if e.hint != "" {
		text += " · " + e.hint
	}
	d := &deed{own: true, Event: fleet.Event{
		Seq: m.next(), Time: m.now.Wall, Level: e.level, Kind: "console", Tree: tree, Message: text,
	}}
	m.own = append([]*deed{d}, m.own...)
	if len(m.own) > mostEvents {
		m.own = m.own[:mostEvents]
	}
	m.events.set(deeds(m.ix.Events, m.own))
	if e.level == levelInfo {
		e.level = levelDone
	}
	return m.say(e.level, e.text, e.hint)
}

func (m *Model) expire(msg expireMsg) {
	for i, n := range m.notices {
		if n.id == msg.id {
			m.notices = append(m.notices[:i:i], m.notices[i+1:]...)
			return
		}
	}
}

// dismiss takes away the errors that could be read.
func (m *Model) dismiss() {
	kept := m.notices[:0]
	for _, n := range m.notices {
		if !n.sticky() || m.now.Mono-n.at < readTime {
			kept = append(kept, n)
		}
	}
	m.notices = kept
}

// noticeLines are the acts under way and the notices, the latest last, as lines of w cells.
func (m *Model) noticeLines(w int) []string {
	var out []string
	for _, a := range m.acts {
		m.counting = true
		for i, l := range m.progress(a, w-4) {
			mark := " ⋯ "
			if i > 0 {
				mark = "   "
			}
			out = append(out, m.accent.of(fit(mark+l, w)))
		}
	}
	for _, n := range m.notices {
		glyph, p := "·", m.infoBar
		switch n.level {
		case levelDone:
			glyph = "✓"
		case levelWarn:
			glyph, p = "▲", m.warn
		case levelAlarm:
			glyph, p = "!", m.danger
		}
		text := n.text
		if n.hint != "" && width(text)+width(n.hint)+6 <= w {
			text += " · " + n.hint
		}
		for i, l := range wrap(text, w-4) {
			if i > 0 {
				glyph = " "
			}
			out = append(out, p.of(fit(" "+glyph+" "+l, w)))
		}
		if n.hint != "" && width(n.text)+width(n.hint)+6 > w {
			for _, l := range wrap(n.hint, w-4) {
				out = append(out, fit("   "+l, w))
			}
		}
	}
	return out
}
