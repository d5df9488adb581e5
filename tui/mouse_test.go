package tui

import (
	"testing"

	tea "charm.land/bubbletea/v2"
)

func mouseAt(x, y int, b tea.MouseButton) tea.Mouse { return tea.Mouse{X: x, Y: y, Button: b} }

func TestMouseIsOffUnlessItIsAskedFor(t *testing.T) {
	if m := still(example(instant(0)), 120, 40, Options{}); m.View().MouseMode != tea.MouseModeNone {
		t.Error("the mouse is taken from the terminal")
	}
	if m := still(example(instant(0)), 120, 40, Options{Config: Config{Mouse: true}}); m.View().MouseMode == tea.MouseModeNone {
		t.Error("the mouse is not taken although it is asked for")
	}
}

func TestClickGoesToThePaneAndTheRow(t *testing.T) {
	m := still(example(instant(0)), 120, 40, Options{Home: home, Config: Config{Mouse: true}})
	f := m.frame()
	click := func(x, y int) { m.Update(tea.MouseClickMsg(mouseAt(x, y, tea.MouseLeft))) }
	click(5, f.list.y+2+3)
	if got := m.selectedTree(); got != home+"/src/fleet-core" {
		t.Errorf("a click on the fourth row goes to %q", got)
	}
	click(5, f.list.y+2+20)
	if got := m.selectedTree(); got != home+"/src/fleet-core" {
		t.Errorf("a click below all rows goes to %q", got)
	}
	click(f.detail.x+3, f.detail.y+4)
	if m.pane != paneDetail {
		t.Errorf("a click on the detail gives pane %d the focus", m.pane)
	}
	click(5, f.reservations.y+3)
	if e, _ := m.entries.current(); m.pane != paneReservations || e.ID != "r6-01JEZZ" {
		t.Errorf("a click on the second reservation: pane %d, entry %v", m.pane, e)
	}
	click(26, 0) // "2 members"
	if m.view != viewMembers {
		t.Errorf("a click on a tab shows view %d", m.view)
	}
	m.Update(tea.MouseClickMsg(mouseAt(5, f.list.y+4, tea.MouseRight)))
	if m.dialog != nil || m.members.at != 0 {
		t.Error("a click of another button does something")
	}
}

func TestWheelScrollsThePaneUnderTheMouse(t *testing.T) {
	m := still(crowd(200, 0), 120, 40, Options{Home: home, Config: Config{Mouse: true}})
	f := m.frame()
	m.Update(tea.MouseWheelMsg(mouseAt(5, f.list.y+5, tea.MouseWheelDown)))
	if m.trees.at != wheelStep {
		t.Errorf("the wheel goes to row %d", m.trees.at)
	}
	m.Update(tea.MouseWheelMsg(mouseAt(f.events.x+3, f.events.y+3, tea.MouseWheelDown)))
	if m.trees.at != wheelStep || m.events.at != wheelStep {
		t.Errorf("the wheel over the events: tree row %d, event row %d", m.trees.at, m.events.at)
	}
	typed(m, "?")
	m.Update(tea.MouseWheelMsg(mouseAt(5, f.list.y+5, tea.MouseWheelUp)))
	if m.trees.at != wheelStep {
		t.Error("the wheel moves what lies behind a dialog")
	}
}

func TestDividerCanBeDragged(t *testing.T) {
	for _, size := range []struct{ w, h int }{{120, 40}, {80, 30}} {
		m := still(example(instant(0)), size.w, size.h, Options{Home: home, Config: Config{Mouse: true}})
		before := m.frame()
		x, y := before.detail.x-2, before.detail.y+3
		if !before.beside {
			x, y = 10, before.detail.y
		}
		m.Update(tea.MouseClickMsg(mouseAt(x, y, tea.MouseLeft)))
		m.Update(tea.MouseMotionMsg(mouseAt(x+8, y+4, tea.MouseLeft)))
		m.Update(tea.MouseReleaseMsg(mouseAt(x+8, y+4, tea.MouseLeft)))
		m.Update(tea.MouseMotionMsg(mouseAt(2, 2, tea.MouseNone)))
		after := m.frame()
		if after.beside && after.detail.w >= before.detail.w || !after.beside && after.detail.h >= before.detail.h {
			t.Errorf("at %dx%d: the detail was %+v and is %+v", size.w, size.h, before.detail, after.detail)
		}
		fits(t, m, size.w, size.h, "dragged")
	}
}
