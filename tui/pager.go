package tui

import (
	"context"
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// pager shows a text that is longer than the screen, over all of it.
type pager struct {
	scroller
	id     uint64
	name   string
	none   string   // what is said where there is no text
	text   []string // nil until it is there
	err    error
	paint  func(m *Model, line string) paint
	prose  bool // its lines are broken where they are too long; others are cut
	cancel context.CancelFunc
}

// pageMsg is the text of a pager.
type pageMsg struct {
	id   uint64
	text string
	err  error
}

// page opens a pager, and fetches its text.
func (m *Model) page(name string, paint func(m *Model, line string) paint, fetch func(context.Context) (string, error)) tea.Cmd {
	ctx, cancel := context.WithCancel(m.ctx)
	p := &pager{id: m.next(), name: name, none: "everything is committed", paint: paint, cancel: cancel}
	m.dialog = p
	return func() tea.Msg {
		defer cancel()
		text, err := fetch(ctx)
		return pageMsg{p.id, text, err}
	}
}

func (m *Model) gotPage(msg pageMsg) {
	p, ok := m.dialog.(*pager)
	if !ok || p.id != msg.id {
		return
	}
	p.err = msg.err
	p.text = strings.Split(strings.TrimRight(msg.text, "\n"), "\n")
}

func (p *pager) title() string { return p.name }
func (p *pager) keys() []key.Binding {
	return []key.Binding{keyClose, keyListDown, bind("pgdn", "page down", "pgdown")}
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
	}
	return nil
}

// showDiff shows what the selected tree holds that is not committed.
func (m *Model) showDiff() tea.Cmd {
	tree := m.selectedTree()
	if tree == "" {
		return m.say(levelInfo, "no tree is selected", "")
	}
	f := m.fleet
	return m.page("Diff of "+m.short(tree), diffPaint, func(ctx context.Context) (string, error) { return f.Diff(ctx, tree) })
}

// diffPaint is the style of a line of a diff.
func diffPaint(m *Model, l string) paint {
	switch {
	case strings.HasPrefix(l, "diff "), strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"):
		return m.strong
	case strings.HasPrefix(l, "@@"):
		return m.accent
	case strings.HasPrefix(l, "+"):
		return m.ok
	case strings.HasPrefix(l, "-"):
		return m.removed
	}
	return ""
}

// showExplanation says why the selected tree can or cannot be dispatched into.
func (m *Model) showExplanation() tea.Cmd {
	tree := m.selectedTree()
	if tree == "" {
		return m.say(levelInfo, "no tree is selected", "")
	}
	f := m.fleet
	plain := func(*Model, string) paint { return "" }
	cmd := m.page("Why "+m.short(tree)+" is as it is", plain, func(ctx context.Context) (string, error) { return f.Explain(ctx, tree) })
	m.dialog.(*pager).prose = true
	return cmd
}
