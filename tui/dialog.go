package tui

import (
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// dialog is what stands over the lists and takes all keys until it is closed.
type dialog interface {
	title() string
	// keys are the keys that it takes, for its last line.
	keys() []key.Binding
	// lines is its text, at most w cells wide. It should fit h lines; what does not is cut from the end.
	lines(m *Model, w, h int) []string
	// update takes a key or a paste.
	update(m *Model, msg tea.Msg) tea.Cmd
	// takesText reports whether a paste is for it.
	takesText() bool
}

// dialogWidth is how wide a dialog is where the screen has room.
const dialogWidth = 76

// dialogBox is the dialog with its border, at most w by h.
func (m *Model) dialogBox(w, h int) []string {
	if _, ok := m.dialog.(interface{ wholeScreen() }); ok {
		w -= 2
	} else {
		w = min(w-2, dialogWidth)
	}
	if h >= 16 {
		h -= 2
	}
	inner := w - 4
	if inner < 8 || h < 5 {
		return nil
	}
	danger := false
	if d, ok := m.dialog.(interface{ dangerous() bool }); ok {
		danger = d.dangerous()
	}
	edge := m.accent
	if danger {
		edge = m.danger
	}
	title := ansi.Truncate(m.dialog.title(), w-6, "…")
	out := []string{edge.of("╭─ ") + m.strong.of(title) + edge.of(" "+strings.Repeat("─", w-width(title)-5)+"╮")}
	most := 1
	if h >= 16 {
		most = 2
	}
	hints := m.hintLines(m.dialog.keys(), inner, most)
	room := h - 3 - len(hints)
	body := m.dialog.lines(m, inner, room)
	body = append(body[:min(len(body), room)], "")
	body = append(body, hints...)
	for _, l := range body {
		out = append(out, edge.of("│")+" "+fit(l, inner)+" "+edge.of("│"))
	}
	return append(out, edge.of("╰"+strings.Repeat("─", w-2)+"╯"))
}

// grace keeps keys from a dialog whose content has just come up, so that a key that was meant for what stood there
// before cannot answer it: keys count once there was a pause, or after a while at most.
type grace struct {
	since, last time.Duration
	on          bool
}

const (
	quiet     = 400 * time.Millisecond
	mostQuiet = 1500 * time.Millisecond
)

func (g *grace) begin(now time.Duration) { *g = grace{now, now, true} }

// swallows reports whether a key at now comes too soon.
func (g *grace) swallows(now time.Duration) bool {
	if !g.on {
		return false
	}
	if now-g.last >= quiet || now-g.since >= mostQuiet {
		g.on = false
		return false
	}
	g.last = now
	return true
}

// confirm asks whether to do something that cannot be undone. Its default is No.
type confirm struct {
	name   string
	text   []string // what it is about, as far as possible by name
	names  []string // what it is about, where that is several things
	effect string   // what yes does
	yes    key.Binding
	do     func() tea.Cmd
}

func (c *confirm) title() string       { return c.name }
func (c *confirm) keys() []key.Binding { return []key.Binding{c.yes, keyNo} }
func (c *confirm) takesText() bool     { return false }
func (c *confirm) dangerous() bool     { return true }

func (c *confirm) lines(m *Model, w, h int) []string {
	out := m.targets(c.names, w, max(h-4, 1))
	for i, t := range c.text {
		for _, l := range wrap(t, w) {
			if i == 0 {
				l = m.strong.of(l)
			}
			out = append(out, l)
		}
	}
	out = append(out, "")
	for _, l := range wrap(c.effect, w) {
		out = append(out, m.faint.of(l))
	}
	return out
}

func (c *confirm) update(m *Model, msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyPressMsg)
	switch {
	case !ok:
	case key.Matches(k, c.yes):
		m.dialog = nil
		cmd := c.do()
		m.list().unmark()
		return cmd
	case key.Matches(k, keyNo):
		m.dialog = nil
	}
	return nil
}

// yesKey is y with what it does in a dialog.
func yesKey(does string) key.Binding { return bind("y", does, "y") }
