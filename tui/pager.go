package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// pager shows a text that is longer than the screen, over all of it.
type pager struct {
	scroller
	name  string
	none  string // what is said where there is no text
	fetch func(context.Context) (string, error)
	renew time.Duration // how often it is fetched anew while it is open, 0 for once
	paint func(m *Model, line string) paint
	prose bool // its lines are broken where they are too long; others are cut
	// turn is a key that shows another page in its place, by other.
	turn  key.Binding
	other func(m *Model) tea.Cmd

	id     uint64
	text   []string // nil until it is there
	err    error
	ctx    context.Context // until it is closed
	cancel context.CancelFunc
}

// pageMsg is the text of a pager, pageDueMsg that it is time to fetch it anew.
type (
	pageMsg struct {
		id   uint64
		text string
		err  error
	}
	pageDueMsg struct{ id uint64 }
)

// page opens a pager, and fetches its text.
func (m *Model) page(p *pager) tea.Cmd {
	p.id = m.next()
	p.ctx, p.cancel = context.WithCancel(m.ctx)
	m.dialog = p
	return p.ask()
}

func (p *pager) ask() tea.Cmd {
	id, ctx, fetch := p.id, p.ctx, p.fetch
	return func() tea.Msg {
		text, err := fetch(ctx)
		return pageMsg{id, text, err}
	}
}

// pagerOf is the pager id, or nil where it is not open any more.
func (m *Model) pagerOf(id uint64) *pager {
	if p, ok := m.dialog.(*pager); ok && p.id == id {
		return p
	}
	return nil
}

func (m *Model) gotPage(msg pageMsg) tea.Cmd {
	p := m.pagerOf(msg.id)
	if p == nil {
		return nil
	}
	if p.err = msg.err; msg.err == nil {
		p.text = strings.Split(strings.TrimRight(msg.text, "\n"), "\n")
	}
	return p.later()
}

// later is when the text is fetched anew.
func (p *pager) later() tea.Cmd {
	if p.renew == 0 {
		return nil
	}
	id := p.id
	return tea.Tick(p.renew, func(time.Time) tea.Msg { return pageDueMsg{id} })
}

// pageDue fetches the text anew, if somebody looks.
func (m *Model) pageDue(msg pageDueMsg) tea.Cmd {
	switch p := m.pagerOf(msg.id); {
	case p == nil:
		return nil
	case !m.focused:
		return p.later()
	default:
		return p.ask()
	}
}

func (p *pager) title() string { return p.name }
func (p *pager) keys() []key.Binding {
	keys := []key.Binding{keyClose, keyListDown, bind("pgdn", "page down", "pgdown")}
	if p.turn.Enabled() {
		keys = append(keys, p.turn)
	}
	return keys
}
func (p *pager) takesText() bool { return false }
func (p *pager) wholeScreen()    {}

func (p *pager) lines(m *Model, w, h int) []string {
	switch {
	case p.err != nil:
		var out []string
		for _, l := range wrap(p.err.Error(), w) {
			out = append(out, m.danger.of(l))
		}
		return out
	case p.text == nil:
		return []string{m.faint.of("looking…")}
	case len(p.text) == 1 && p.text[0] == "":
		return []string{m.faint.of(p.none)}
	}
	text := p.text
	if p.prose {
		text = broken(text, w)
	}
	top := p.window(len(text), max(h-1, 1))
	var out []string
	for _, l := range text[top:min(top+p.page, len(text))] {
		out = append(out, p.paint(m, l).of(cut(strings.ReplaceAll(l, "\t", "    "), w)))
	}
	if p.most > 0 {
		out = append(block(out, w, h-1), m.faint.of(fmt.Sprintf("%d to %d of %d", top+1, min(top+p.page, len(text)), len(text))))
	}
	return out
}

// broken is lines that fit w cells. What goes on in the next is indented.
func broken(lines []string, w int) []string {
	const indent = 2
	var out []string
	for _, l := range lines {
		if width(l) <= w {
			out = append(out, l)
			continue
		}
		for i, part := range wrap(l, w-indent) {
			if i > 0 {
				part = strings.Repeat(" ", indent) + strings.TrimLeft(part, " ")
			}
			out = append(out, part)
		}
	}
	return out
}

func (p *pager) update(m *Model, msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyPressMsg)
	is := func(b ...key.Binding) bool { return ok && key.Matches(k, b...) }
	switch {
	case is(m.keys.Up, keyListUp):
		p.step(-1)
	case is(m.keys.Down, keyListDown):
		p.step(1)
	case is(m.keys.HalfUp):
		p.step(-max(p.page/2, 1))
	case is(m.keys.HalfDown):
		p.step(max(p.page/2, 1))
	case is(m.keys.PageUp):
		p.step(-p.paging())
	case is(m.keys.PageDown, m.keys.Mark): // space goes on, as in every pager
		p.step(p.paging())
	case is(m.keys.Top):
		p.step(-far)
	case is(m.keys.Bottom):
		p.step(far)
	case is(keyClose):
		p.cancel()
		m.dialog = nil
	case is(p.turn):
		p.cancel()
		return p.other(m)
	}
	return nil
}
