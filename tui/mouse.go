package tui

import tea "charm.land/bubbletea/v2"

// wheelStep is how many rows a notch of the wheel goes.
const wheelStep = 3

// mouse takes clicks, the wheel, and dragging of what separates the panes. Nothing that changes the fleet is done by it.
func (m *Model) mouse(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	f := m.frame()
	if f.tooSmall || m.dialog != nil {
		m.dragging = false
		if w, ok := msg.(tea.MouseWheelMsg); ok && m.dialog != nil {
			return m.dialog.update(m, wheelKey(w))
		}
		return nil
	}
	switch msg := msg.(type) {
	case tea.MouseWheelMsg:
		if p, ok := f.paneAt(at.X, at.Y); ok {
			m.wheel(p, msg)
		}
	case tea.MouseClickMsg:
		if msg.Button != tea.MouseLeft {
			return nil
		}
		if m.dragging = f.onDivider(at.X, at.Y); !m.dragging {
			m.click(f, at.X, at.Y)
		}
	case tea.MouseMotionMsg:
		if m.dragging {
			m.drag(f, at.X, at.Y)
		}
	case tea.MouseReleaseMsg:
		m.dragging = false
	}
	return nil
}

// wheelKey is a notch of the wheel as the key that a dialog knows.
func wheelKey(w tea.MouseWheelMsg) tea.KeyPressMsg {
	if w.Button == tea.MouseWheelUp {
		return tea.KeyPressMsg{Code: tea.KeyUp}
	}
	return tea.KeyPressMsg{Code: tea.KeyDown}
}

// wheel scrolls the pane under the mouse, whichever has the focus.
func (m *Model) wheel(p pane, w tea.MouseWheelMsg) {
	d := wheelStep
	if w.Button == tea.MouseWheelUp {
		d = -d
	}
	if p == paneDetail {
		m.detail.step(d)
		return
	}
	m.of(m.shownIn(p)).step(d)
}

// paneAt is the pane at a cell.
func (f frame) paneAt(x, y int) (pane, bool) {
	for p, r := range map[pane]rect{paneList: f.list, paneDetail: f.detail, paneReservations: f.reservations, paneEvents: f.events} {
		if r.has(x, y) {
			return p, true
		}
	}
	return 0, false
}

// onDivider reports whether a cell lies on what separates list and detail.
func (f frame) onDivider(x, y int) bool {
	switch {
	case f.detail.empty() || f.list.empty():
		return false
	case f.beside:
		return x >= f.detail.x-between && x < f.detail.x && y >= f.list.y && y < f.list.y+f.list.h
	}
	return y == f.detail.y
}

// drag gives the detail the room that it is dragged to.
func (m *Model) drag(f frame, x, y int) {
	whole, part := f.list.h+f.detail.h, f.detail.y+f.detail.h-y
	if f.beside {
		whole, part = m.width, m.width-x-1
	}
	m.share = max(min(100*part/max(whole, 1), 90), 10)
}

// click goes to the view, or the pane and the row, under the mouse.
func (m *Model) click(f frame, x, y int) {
	if y == 0 && f.header.has(x, y) {
		if v, ok := m.tabAt(x); ok {
			m.show(v)
		}
		return
	}
	p, ok := f.paneAt(x, y)
	if !ok {
		return
	}
	m.pane = p
	if p == paneDetail {
		return
	}
	r := map[pane]rect{paneList: f.list, paneReservations: f.reservations, paneEvents: f.events}[p]
	first := 1 // the title
	if r.h-1 > 3 {
		first = 2 // and the column titles
	}
	if line := y - r.y - first; line >= 0 {
		m.list().clicked(line)
	}
}
