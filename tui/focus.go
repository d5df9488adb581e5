package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// mover is a pane that a cursor moves in.
type mover interface {
	step(d int)
	paging() int
}

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

// mover is the pane that has the focus.
func (m *Model) mover() mover {
	if m.pane == paneDetail {
		return &m.detail
	}
	return m.list()
}

// listed says whose rows the focused list holds: at home the lesser panes list what has a view of its own.
func (m *Model) listed() view { return m.shownIn(m.pane) }

// shownIn is whose rows the list in a pane holds.
func (m *Model) shownIn(p pane) view {
	switch {
	case m.view == viewTrees && p == paneReservations:
		return viewReservations
	case m.view == viewTrees && p == paneEvents:
		return viewEvents
	}
	return m.view
}

// list is the list that has the focus, or that the detail belongs to.
func (m *Model) list() lister { return m.of(m.listed()) }

// show turns to a view.
func (m *Model) show(v view) {
	if m.view != v {
		m.view, m.pane, m.detail, m.zoomed = v, paneList, scroller{}, false
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
	if m.zoomed {
		panes = []pane{paneList, paneDetail} // what is not on the screen can still be turned to
	}
	for i, p := range panes {
		if p == m.pane {
			m.pane = panes[(i+d+len(panes))%len(panes)]
			return
		}
	}
	m.pane = paneList
}

// placeDetail moves the detail pane: where there is most room for it, beside the list, below it, and closed.
func (m *Model) placeDetail() tea.Cmd {
	m.zoomed = false
	m.place = (m.place + 1) % (placeClosed + 1)
	if m.pane == paneDetail && m.frame().detail.empty() {
		m.pane = paneList
	}
	return m.sayOf("pane", "detail pane: "+m.place.String())
}

// zoom gives the focused pane all of the room, or gives it back.
func (m *Model) zoom() { m.zoomed = !m.zoomed }

// back undoes the latest thing that can be undone.
func (m *Model) back() tea.Cmd {
	switch {
	case m.callOff():
	case m.zoomed:
		m.zoomed = false
	case m.list().unmark():
	case m.list().filtered() != "":
		m.list().filter("")
	case m.list().faultsOnly():
		m.list().toggleFaults()
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
		return m.say(levelWarn, m.acts[0].label+" is still under way", m.keys.Back.Help().Key+" cancels it, "+m.keys.ForceQuit.Help().Key+" quits all the same")
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

func (m *Model) regroup() tea.Cmd      { return m.sayOrder(m.list().regroup()) }
func (m *Model) sortNext() tea.Cmd     { return m.sayOrder(m.list().sortBy(1)) }
func (m *Model) sortPrevious() tea.Cmd { return m.sayOrder(m.list().sortBy(-1)) }

func (m *Model) sayOrder(how string) tea.Cmd {
	return m.sayOf("order", m.list().name()+": "+how)
}

// nextWaiting goes to the next member that waits for a person: in the list of members where that is shown, or else to its tree.
func (m *Model) nextWaiting() tea.Cmd {
	var ids []string
	at := -1
	here := m.selectedMember()
	for _, x := range m.ix.members {
		if !x.Alive() || x.State != "waiting" {
			continue
		}
		if here != nil && x.ID == here.ID {
			at = len(ids)
		}
		ids = append(ids, x.ID)
	}
	if len(ids) == 0 {
		return m.say(levelInfo, "nobody waits for you", "")
	}
	next := ids[(at+1)%len(ids)]
	if m.view == viewMembers {
		return m.jump(viewMembers, m.members, next)
	}
	return m.jump(viewTrees, m.trees, m.ix.member[next].Tree)
}
