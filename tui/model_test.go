package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

func TestSelectionFollowsTheTreeNotItsPlace(t *testing.T) {
	s := example(instant(0))
	m := still(s, 120, 40, Options{Home: home})
	typed(m, "j", "j", "j")
	if got := m.selectedTree(); got != home+"/src/fleet-core" {
		t.Fatalf("selected = %q", got)
	}
	more := example(instant(0))
	more.Trees = append([]fleet.TreeRow{{Tree: home + "/src/aaa"}, {Tree: home + "/src/aab"}}, more.Trees[1:]...)
	m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(more)})
	if got := m.selectedTree(); got != home+"/src/fleet-core" {
		t.Errorf("after rows came and went above it, selected = %q", got)
	}
	typed(m, "j")
	if got := m.selectedTree(); !strings.HasPrefix(got, home+"/src/legacy") {
		t.Errorf("one further down, selected = %q", got)
	}
}

func TestSelectionOfATreeThatGoesStaysAtItsPlace(t *testing.T) {
	s := example(instant(0))
	m := still(s, 120, 40, Options{Home: home})
	typed(m, "j", "j")
	s.Trees = slices.Delete(s.Trees, 2, 3)
	m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(s)})
	if got := m.selectedTree(); got != home+"/src/fleet-core" {
		t.Errorf("selected = %q, want the next tree", got)
	}
	typed(m, "G")
	s.Trees = s.Trees[:3]
	m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(s)})
	if got := m.selectedTree(); got != home+"/src/fleet-core" {
		t.Errorf("selected = %q, want the last that is left", got)
	}
	s.Trees = nil
	m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(s)})
	typed(m, "j", "k", "G", "X", "R", "m")
	if got := m.selectedTree(); got != "" {
		t.Errorf("selected = %q in an empty list", got)
	}
}

func TestConfirmationActsOnWhatItNamed(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("X")
		s := example(l.f.Now())
		s.Trees = s.Trees[3:]
		s.Members = s.Members[1:]
		l.f.set(s)
		l.pass(time.Second)
		l.press("y")
		l.wantCalls("stop 01JEABCD0001")
	})
}

func TestFilter(t *testing.T) {
	tests := []struct {
		query string
		want  int
	}{
		{"", 9}, {"main", 5}, {"MAIN", 5}, {"main !free", 3}, {"waiting", 1}, {"src api", 1}, {"dirty", 3},
		{"!", 9}, {"nothing-like-it", 0}, {"claude", 3}, {"reserved", 2},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			m := still(example(instant(0)), 120, 40, Options{Home: home})
			typed(m, "/")
			for _, r := range tt.query {
				m.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
			if got := len(m.trees.shown); got != tt.want {
				t.Errorf("filter %q shows %d trees, want %d", tt.query, got, tt.want)
			}
			m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(example(instant(0)))})
			if got := len(m.trees.shown); got != tt.want {
				t.Errorf("after a snapshot filter %q shows %d trees, want %d", tt.query, got, tt.want)
			}
			typed(m, "enter", "esc")
			if got := len(m.trees.shown); got != 9 {
				t.Errorf("esc leaves %d trees", got)
			}
		})
	}
}

func TestFilterKeepsTheSelectionThroughNoMatch(t *testing.T) {
	m := still(example(instant(0)), 120, 40, Options{Home: home})
	typed(m, "j", "j", "j", "/", "z", "z", "esc")
	if got := m.selectedTree(); got != home+"/src/fleet-core" {
		t.Errorf("selected = %q", got)
	}
}

func TestCursorStaysInSightWhenTheScreenChanges(t *testing.T) {
	m := still(crowd(200, 20), 120, 40, Options{Home: home})
	typed(m, "G")
	for _, h := range []int{40, 10, 24, 60, 11} {
		m.Update(tea.WindowSizeMsg{Width: 80, Height: h})
		if !strings.Contains(m.View().Content, "repository-00199") {
			t.Errorf("at height %d the selected row is out of sight", h)
		}
	}
	typed(m, "g", "ctrl+d")
	if m.trees.at == 0 || m.trees.at > 20 {
		t.Errorf("ctrl+d goes to row %d", m.trees.at)
	}
}

func TestPasteOutsideTextDoesNothing(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.send(tea.PasteMsg{Content: "Xy\nPyq"})
		l.settle()
		l.wants("paste ignored")
		l.press("X")
		l.send(tea.PasteMsg{Content: "y"})
		l.settle()
		l.wantCalls()
		if l.m.dialog == nil {
			t.Error("a paste closed the dialog")
		}
	})
}

func TestSpawnFormDispatchesWhatItSays(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("j", "j", "s")
		l.typeText("Fix q it")
		l.press("alt+enter")
		l.send(tea.PasteMsg{Content: "line two\nline three"})
		l.press("shift+tab", "shift+tab", "right", "shift+tab", "space", "shift+tab", "shift+tab")
		l.typeText("mob")
		l.press("tab", "enter", "enter") // over the further trees to the task
		l.wantCalls(fmt.Sprintf("dispatch %s/src/mobile architect shell %q", home, "Fix q it\nline two\nline three"))
		l.pass(time.Second)
		l.press("s", "enter", "enter") // mobile is taken to be on its way; docs is still under the cursor
		l.f.mu.Lock()
		defer l.f.mu.Unlock()
		if got, want := l.f.calls[len(l.f.calls)-1], `dispatch /home/kim/src/docs architect shell ""`; got != want {
			t.Errorf("the next dispatch is %s, want the role and profile remembered: %s", got, want)
		}
	})
}

func TestSpawnFormOnATakenTreeAsksForAnother(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("s")
		if d := l.m.dialog.(*spawnDialog); d.field != fieldTree {
			t.Fatalf("the form opens on field %d", d.field)
		}
		l.typeText("~/other/place")
		l.press("enter", "enter")
		l.wantCalls(`dispatch /home/kim/other/place dev claude ""`)
	})
}

func TestEnterOnAnEventGoesToItsTree(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("6", "j", "enter")
		if got := l.m.selectedTree(); l.m.view != viewTrees || got != home+"/src/docs" {
			t.Errorf("view %d, selected %q", l.m.view, got)
		}
	})
}

func TestTabGoesThroughThePanesOnTheScreen(t *testing.T) {
	tests := []struct {
		w, h int
		keys string
		want []pane
	}{
		{120, 40, "1", []pane{paneDetail, paneReservations, paneEvents, paneList}},
		{80, 24, "1", []pane{paneDetail, paneReservations, paneList}},
		{40, 10, "1", []pane{paneList, paneList}},
		{120, 40, "2", []pane{paneDetail, paneList}},
		{120, 40, "6", []pane{paneDetail, paneList}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%dx%d view %s", tt.w, tt.h, tt.keys), func(t *testing.T) {
			m := typed(still(example(instant(0)), tt.w, tt.h, Options{}), tt.keys)
			for i, want := range tt.want {
				if typed(m, "tab"); m.pane != want {
					t.Fatalf("after %d tabs the focus is on pane %d, want %d", i+1, m.pane, want)
				}
			}
		})
	}
}

func TestEscUndoesTheLatestThingOnly(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.act = untilCancelled
		l.press("2", "/", "d", "enter", "X", "y", "?")
		for _, want := range []string{"dialog", "act", "filter", "view"} {
			l.press("esc")
			state := map[string]bool{
				"dialog": l.m.dialog == nil, "act": len(l.m.acts) == 0,
				"filter": l.m.members.query == "", "view": l.m.view == viewTrees,
			}
			if !state[want] {
				t.Fatalf("esc did not undo the %s: %v", want, state)
			}
		}
	})
}

func TestTooSmallAScreenTakesNoActs(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.send(tea.WindowSizeMsg{Width: 39, Height: 10})
		l.wants("fleetdeck needs 40x10", "this is 39x10")
		l.press("X", "y", "s", "enter")
		l.wantCalls()
		l.press("q")
		if !l.quit {
			t.Error("q does not quit")
		}
	})
}

func TestDaemonAndFileTroubleCannotBeOverlooked(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *fleet.Snapshot)
		after  time.Duration
		want   string
	}{
		{"daemon down", func(s *fleet.Snapshot) { s.Daemon = fleet.DaemonInfo{Error: "connection refused"} }, 0, "DAEMON DOWN · dispatches are refused · `fleetdeck up` starts it · connection refused"},
		{"file broken", func(s *fleet.Snapshot) { s.File.Error = "line 3: not closed" }, 0, "RESERVATION FILE BROKEN · dispatches are refused · line 3: not closed"},
		{"old data", func(*fleet.Snapshot) {}, 20 * time.Second, "STALE · what is shown is"},
		{"charter mismatch", func(s *fleet.Snapshot) { s.Members[2].CharterMismatch = true }, 0, "CHARTER MISMATCH · 1 member holds a charter"},
		{"lock held for long", func(s *fleet.Snapshot) {
			s.Lock = fleet.LockInfo{State: "held", Holder: &fleet.LockHolder{Pid: 4242, Program: "python3 dispatch.py", Since: s.At.Wall}}
		}, 6 * time.Second, "LOCK HELD · by pid 4242 (python3 dispatch.py) for 6."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inLoop(t, func(t *testing.T, l *loop) {
				l.lacks("DOWN", "BROKEN", "STALE", "MISMATCH", "LOCK HELD")
				s := example(l.f.Now())
				tt.change(&s)
				l.f.set(s)
				l.pass(100*time.Millisecond + tt.after)
				l.wants(tt.want)
			})
		})
	}
}

func TestFailedPollIsSaidAndTriedAgain(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.mu.Lock()
		l.f.err = fmt.Errorf("watch: too many open files")
		l.f.mu.Unlock()
		l.press("r")
		l.wants("NO NEWS OF THE FLEET", "too many open files", "~/src/api")
		l.f.mu.Lock()
		l.f.err = nil
		l.f.mu.Unlock()
		l.pass(retry + 100*time.Millisecond)
		l.lacks("NO NEWS")
	})
}

func TestCountdownIsDerivedFromTheDeadline(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		if got := l.row("~/src/web"); !strings.Contains(got, "0:27 left") {
			t.Fatalf("row = %q", got)
		}
		l.pass(10 * time.Second)
		if got := l.row("~/src/web"); !strings.Contains(got, "0:17 left") {
			t.Errorf("10 s later the row is %q", got)
		}
		l.pass(30 * time.Second)
		if got := l.row("~/src/web"); !strings.Contains(got, "0:00 left") {
			t.Errorf("once it is over the row is %q", got)
		}
	})
}

func TestNothingTicksWhereNothingCountsDownOrNobodyLooks(t *testing.T) {
	ticks := func(l *loop) (n int) {
		for _, m := range l.seen {
			if _, ok := m.(tickMsg); ok {
				n++
			}
		}
		return n
	}
	t.Run("counting", func(t *testing.T) {
		inLoop(t, func(t *testing.T, l *loop) {
			l.pass(5 * time.Second)
			if n := ticks(l); n < 4 || n > 5 {
				t.Errorf("%d ticks in 5 s", n)
			}
		})
	})
	t.Run("without focus", func(t *testing.T) {
		inLoop(t, func(t *testing.T, l *loop) {
			l.send(tea.BlurMsg{})
			l.pass(5 * time.Second)
			if n := ticks(l); n > 1 {
				t.Errorf("%d ticks in 5 s", n)
			}
			l.send(tea.FocusMsg{})
			l.pass(3 * time.Second)
			if n := ticks(l); n < 2 {
				t.Errorf("the clock does not start again: %d ticks", n)
			}
		})
	})
	t.Run("nothing to count", func(t *testing.T) {
		calm := func(f *fakeFleet) {
			f.snap.Trees = f.snap.Trees[:7]
			f.snap.Reservations, f.snap.Launches = nil, nil
		}
		inLoopOf(t, calm, Options{Home: home}, func(t *testing.T, l *loop) {
			l.pass(200 * time.Millisecond) // until the screen of the selected member is there
			before := l.screen()
			l.pass(9 * time.Second)
			if n := ticks(l); n != 0 {
				t.Errorf("%d ticks", n)
			}
			if l.screen() != before {
				t.Error("an idle screen changed")
			}
		})
	})
}

func TestOnlyTheSelectedMembersScreenIsAskedFor(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.pass(200 * time.Millisecond)
		l.wants("return c.durable()")
		old := l.m.screen.gen
		l.press("j")
		l.lacks("return c.durable()")
		l.send(screenMsg{gen: old, screen: fleet.Screen{Styled: []string{"late"}, Lines: []string{"late"}}})
		l.lacks("late")
		l.press("j")
		l.pass(time.Second)
		if l.m.screen.member != "" {
			t.Errorf("the screen of %q is watched with a free tree selected", l.m.screen.member)
		}
		l.press("k", "k")
		l.wants("waiting for its screen…")
		l.pass(200 * time.Millisecond)
		l.wants("return c.durable()")
	})
}

func TestNewAlarmIsShownOnceAndOldOnesAreNot(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		if len(l.m.notices) != 0 {
			t.Fatalf("an alarm from before is shown: %q", l.m.notices[0].text)
		}
		s := example(l.f.Now())
		s.Events = append(s.Events, fleet.Event{Seq: 6, Time: s.At.Wall, Level: levelAlarm, Kind: "launch_failed", Tree: home + "/src/web", Message: "sh ended during boot"})
		l.f.set(s)
		l.pass(100 * time.Millisecond)
		l.wants("! ~/src/web: sh ended during boot")
		l.pass(time.Second)
		l.press("k")
		l.f.set(s)
		l.pass(100 * time.Millisecond)
		l.lacks("! ~/src/web: sh ended")
	})
}
