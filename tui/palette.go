package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/sahilm/fuzzy"
)

// palette finds an act by its name and does it. It shows the key, so that it teaches itself away.
type palette struct {
	input editor
	found []int // in the model's actions
	at    int
}

func (m *Model) openPalette() {
	d := &palette{input: editor{hint: "type what you want to do"}}
	d.search(m)
	m.dialog = d
}

func (d *palette) title() string { return "Every act" }
func (d *palette) keys() []key.Binding {
	return []key.Binding{keyRun, keyListUp, keyListDown, keyCancel}
}
func (d *palette) takesText() bool { return true }

// search finds the actions that match what is typed, the best first.
func (d *palette) search(m *Model) {
	d.found, d.at = d.found[:0], 0
	if d.input.value() == "" {
		for i := range m.all {
			if !m.all[i].many || m.many() {
				d.found = append(d.found, i)
			}
		}
		return
	}
	names := make([]string, len(m.all)) // one that is not there is found by nothing
	for i, a := range m.all {
		if !a.many || m.many() {
			names[i] = a.name + " " + a.key.Help().Desc
		}
	}
	for _, f := range fuzzy.Find(d.input.value(), names) {
		d.found = append(d.found, f.Index)
	}
}

func (d *palette) lines(m *Model, w, h int) []string {
	out := []string{m.accent.of(": ") + d.input.view(m, w-2, 1, true)[0], ""}
	h -= len(out)
	top := max(min(d.at-h/2, len(d.found)-h), 0)
	for i := top; i < min(top+h, len(d.found)); i++ {
		a := &m.all[d.found[i]]
		text := pad(a.name, 15) + " " + a.key.Help().Desc
		k := a.key.Help().Key
		switch {
		case i == d.at:
			out = append(out, m.selected.of(spread(" "+text, k+" ", w)))
		case a.changes && m.opts.ReadOnly:
			out = append(out, m.faint.of(spread(" "+text+" (read-only)", k+" ", w)))
		default:
			out = append(out, spread(" "+text, m.key.of(k)+" ", w))
		}
	}
	if len(d.found) == 0 {
		out = append(out, m.faint.of("no act is called so"))
	}
	return out
}

func (d *palette) update(m *Model, msg tea.Msg) tea.Cmd {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, keyCancel):
			m.dialog = nil
			return nil
		case key.Matches(k, keyListUp):
			d.at = max(d.at-1, 0)
			return nil
		case key.Matches(k, keyListDown):
			d.at = max(min(d.at+1, len(d.found)-1), 0)
			return nil
		case key.Matches(k, keyRun):
			m.dialog = nil
			if d.at < len(d.found) {
				return m.perform(&m.all[d.found[d.at]])
			}
			return nil
		}
	}
	before := d.input.value()
	if d.input.update(msg); d.input.value() != before {
		d.search(m)
	}
	return nil
}
