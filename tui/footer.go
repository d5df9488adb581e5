package tui

import (
	"charm.land/bubbles/v2/key"

	"fleetdeck/fleet"
)

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
func (m *Model) hints(keys []key.Binding, w int) string { return m.hintLines(keys, w, 1)[0] }

// hintLines is bindings as at most so many lines of at most w cells: those at the end are left out where there is no room.
func (m *Model) hintLines(keys []key.Binding, w, most int) []string {
	out := []string{""}
	n := 0
	for _, k := range keys {
		h := k.Help()
		if !k.Enabled() {
			continue
		}
		size := width(h.Key) + 1 + width(h.Desc)
		if n > 0 && n+2+size > w && len(out) < most {
			out, n = append(out, ""), 0
		}
		sep := ""
		if n > 0 {
			sep, size = "  ", size+2
		}
		if n+size > w {
			break
		}
		out[len(out)-1] += sep + m.key.of(h.Key) + " " + h.Desc
		n += size
	}
	return out
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
	tree := m.selectedTree()
	if tree != "" && (l == viewReservations || l == viewEvents || l == viewHistory || l == viewQueue) {
		out = append(out, bind(k.Attach.Help().Key, "go to its tree", k.Attach.Keys()...))
	} else if x != nil {
		out = append(out, goes)
	}
	if l == viewNodes && len(m.nodes.shown) > 0 {
		out = append(out, bind(k.Attach.Help().Key, goes.Help().Desc, k.Attach.Keys()...))
	}
	if l == viewQueue && len(m.queue.shown) > 0 {
		out = append(out, k.Unqueue)
	}
	if m.ix.entry[tree] != nil && m.hostOf(tree) == "" {
		out = append(out, k.Release)
	}
	out = append(out, k.Spawn, k.Prune, k.Filter, k.NextPane)
	if m.view != viewTrees {
		return append(out, k.Back)
	}
	out = append(out, k.Palette, k.Diff, k.Explain)
	if m.hostOf(tree) == "" {
		out = append(out, k.Enqueue)
	}
	return append(out, k.Quit)
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
