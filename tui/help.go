package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// helpDialog shows every key. It is made from the actions themselves.
type helpDialog struct{ scroller }

func (*helpDialog) title() string       { return "Keys" }
func (*helpDialog) keys() []key.Binding { return []key.Binding{keyClose, keyListDown} }
func (*helpDialog) takesText() bool     { return false }
func (*helpDialog) wholeScreen()        {}

// helpColumn is how wide a column of the help is.
const helpColumn = 36

func (d *helpDialog) lines(m *Model, w, h int) []string {
	columns := make([][]string, max(w/helpColumn, 1))
	for _, g := range groups(m.all) {
		col := []string{m.strong.of(g.title)}
		for _, a := range g.actions {
			hp := a.key.Help()
			switch {
			case a.many && !m.many():
			case !bound(*a.key):
				col = append(col, m.faint.of(pad(":"+a.name, 10)+" "+hp.Desc))
			case a.changes && m.opts.ReadOnly:
				col = append(col, m.faint.of(pad(hp.Key, 10)+" "+hp.Desc+" (read-only)"))
			default:
				col = append(col, m.key.of(pad(hp.Key, 10))+" "+hp.Desc)
			}
		}
		// Each group goes where there is least so far.
		least := 0
		for i := range columns {
			if len(columns[i]) < len(columns[least]) {
				least = i
			}
		}
		columns[least] = append(columns[least], append(col, "")...)
	}
	var out []string
	for y := 0; ; y++ {
		line, any := "", false
		for _, c := range columns {
			any = any || y < len(c)
			line += fit(at(c, y), w/len(columns))
		}
		if !any {
			break
		}
		out = append(out, line)
	}
	for _, l := range wrap("A filter holds words, !words that must not be there, and field:value such as state:waiting or role:dev. "+
		"What is marked is what an act is about. "+m.opts.Detach+" ends an attachment. The same keys by name are in the palette, "+m.keys.Palette.Help().Key+".", w) {
		out = append(out, m.faint.of(l))
	}
	top := d.window(len(out), h)
	return out[top:]
}

func (d *helpDialog) update(m *Model, msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyPressMsg)
	switch {
	case !ok:
	case key.Matches(k, keyClose):
		m.dialog = nil
	case key.Matches(k, m.keys.Up):
		d.step(-1)
	case key.Matches(k, m.keys.Down):
		d.step(1)
	case key.Matches(k, m.keys.PageUp, m.keys.HalfUp):
		d.step(-d.paging())
	case key.Matches(k, m.keys.PageDown, m.keys.HalfDown):
		d.step(d.paging())
	}
	return nil
}
