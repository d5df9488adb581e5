package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// mover is a pane that a cursor moves in.
type mover interface {
	step(d int)
	paging() int
}

func (c *cursor) paging() int { return max(c.page, 1) }

// far is a step over the end of any list.
const far = 1 << 30

// scroller is a text that is longer than its pane.
type scroller struct{ top, most, page int }

func (s *scroller) step(d int)  { s.top = max(min(s.top+d, s.most), 0) }
func (s *scroller) paging() int { return max(s.page, 1) }

// window gives the first of n lines to show on h, and remembers how far one can scroll.
func (s *scroller) window(n, h int) int {
	s.most, s.page = max(n-h, 0), h
	s.top = min(s.top, s.most)
	return s.top
}

// command runs a key of the console.
func (m *Model) command(msg tea.KeyPressMsg) tea.Cmd {
	k, is := &m.keys, func(b key.Binding) bool { return key.Matches(msg, b) }
	at := m.mover()
	switch {
	case is(k.Up):
		at.step(-1)
	case is(k.Down):
		at.step(1)
	case is(k.Top):
		at.step(-far)
	case is(k.Bottom):
		at.step(far)
	case is(k.HalfUp):
		at.step(-max(at.paging()/2, 1))
	case is(k.HalfDown):
		at.step(max(at.paging()/2, 1))
	case is(k.PageUp):
		at.step(-at.paging())
	case is(k.PageDown):
		at.step(at.paging())
	case is(k.NextPane):
		m.turn(1)
	case is(k.PrevPane):
		m.turn(-1)
	case is(k.Trees):
		m.show(viewTrees)
	case is(k.Members):
		m.show(viewMembers)
	case is(k.Slots):
		m.show(viewSlots)
	case is(k.GoTo):
		return m.goTo()
	case is(k.Reservations):
		m.show(viewReservations)
	case is(k.Events):
		m.show(viewEvents)
	case is(k.Filter):
		m.startFilter()
	case is(k.Help):
		m.dialog = &helpDialog{}
	case is(k.Refresh):
		return tea.Batch(tea.ClearScreen, m.refresh())
	case is(k.Back):
		return m.back()
	case is(k.Quit):
		return m.quit()
	case is(k.Attach):
		return m.open()
	case is(k.Spawn):
		return m.askSpawn()
	case is(k.Message):
		return m.askMessage()
	case is(k.Prune):
		return m.askPrune()
	case is(k.Release):
		return m.askRelease()
	case is(k.Stop):
		return m.askStop()
	default:
		return m.refused(msg)
	}
	return nil
}

// refused explains a key that is off because the console is read-only.
func (m *Model) refused(msg tea.KeyPressMsg) tea.Cmd {
	if !m.opts.ReadOnly {
		return nil
	}
	all := newKeymap()
	for _, b := range all.changes() {
		if key.Matches(msg, *b) {
			return m.say(levelInfo, b.Help().Desc+" is off: this console is read-only", "")
		}
	}
	return nil
}

// mover is the pane that has the focus.
func (m *Model) mover() mover {
	if m.pane == paneDetail {
		return &m.detail
	}
	return m.list()
}

// lister is a list that can be filtered.
type lister interface {
	mover
	filter(query string)
	filtered() string
	count() (shown, all int)
}

func (r *roll[T]) filtered() string        { return r.query }
func (r *roll[T]) count() (shown, all int) { return len(r.shown), len(r.all) }

// listed says whose rows the focused list holds: at home the lesser panes list what has a view of its own.
func (m *Model) listed() view {
	switch {
	case m.view == viewTrees && m.pane == paneReservations:
		return viewReservations
	case m.view == viewTrees && m.pane == paneEvents:
		return viewEvents
	}
	return m.view
}

// list is the list that has the focus, or that the detail belongs to.
func (m *Model) list() lister {
	switch m.listed() {
	case viewMembers:
		return &m.members
	case viewSlots:
		return &m.slots
	case viewReservations:
		return &m.entries
	case viewEvents:
		return &m.events
	}
	return &m.trees
}

// show turns to a view.
func (m *Model) show(v view) {
	if m.view != v {
		m.view, m.pane, m.detail = v, paneList, scroller{}
	}
}

// turn moves the focus to the next pane that is on the screen.
func (m *Model) turn(d int) {
	f := m.frame()
	panes := []pane{paneList}
	for _, p := range []struct {
		pane
		at rect
	}{{paneDetail, f.detail}, {paneReservations, f.reservations}, {paneEvents, f.events}} {
		if !p.at.empty() {
			panes = append(panes, p.pane)
		}
	}
	for i, p := range panes {
		if p == m.pane {
			m.pane = panes[(i+d+len(panes))%len(panes)]
			return
		}
	}
	m.pane = paneList
}

// back undoes the latest thing that esc can undo.
func (m *Model) back() tea.Cmd {
	switch {
	case len(m.acts) > 0:
		m.acts[len(m.acts)-1].stop()
	case m.list().filtered() != "":
		m.list().filter("")
	case m.pane != paneList:
		m.pane = paneList
	default:
		m.show(viewTrees)
	}
	return nil
}

// quit leaves the console, or the view that is not home.
func (m *Model) quit() tea.Cmd {
	switch {
	case m.view != viewTrees:
		m.show(viewTrees)
	case len(m.acts) > 0:
		return m.say(levelWarn, m.acts[0].label+" is still under way", "esc cancels it, ctrl+c quits all the same")
	default:
		return tea.Quit
	}
	return nil
}

// startFilter begins to type the filter of the focused list.
func (m *Model) startFilter() {
	if m.pane == paneDetail {
		m.pane = paneList
	}
	m.typing = true
	m.search.set(m.list().filtered())
}

// typeFilter filters as it is typed.
func (m *Model) typeFilter(msg tea.Msg) {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, keyApply):
			m.typing = false
			return
		case key.Matches(k, keyClear):
			m.typing = false
			m.list().filter("")
			return
		case key.Matches(k, keyListUp):
			m.list().step(-1)
			return
		case key.Matches(k, keyListDown):
			m.list().step(1)
			return
		}
	}
	m.search.update(msg)
	m.list().filter(m.search.value())
}

// selectedTree is the tree that an act is about, or empty.
func (m *Model) selectedTree() string {
	switch m.listed() {
	case viewMembers:
		if x, ok := m.members.current(); ok {
			return x.Tree
		}
	case viewSlots:
		if s, ok := m.slots.current(); ok {
			return s.Tree
		}
	case viewReservations:
		if r, ok := m.entries.current(); ok {
			return r.Tree
		}
	case viewEvents:
		if d, ok := m.events.current(); ok {
			return d.Tree
		}
	default:
		if t, ok := m.trees.current(); ok {
			return t.Tree
		}
	}
	return ""
}

// selectedMember is the member that an act is about, or nil.
func (m *Model) selectedMember() *fleet.Member {
	switch m.listed() {
	case viewMembers:
		x, _ := m.members.current()
		return x
	case viewSlots:
		if s, ok := m.slots.current(); ok {
			return m.ix.member[s.Member]
		}
	case viewTrees:
		if t, ok := m.trees.current(); ok {
			return m.ix.member[t.Member]
		}
	case viewEvents:
		if d, ok := m.events.current(); ok {
			return m.ix.member[d.Member]
		}
	}
	return nil
}
