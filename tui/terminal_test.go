package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// raw is what the console wrote to the terminal beside its frames.
func (l *loop) raw() (out []string) {
	for _, m := range l.seen {
		if r, ok := m.(tea.RawMsg); ok {
			out = append(out, fmt.Sprint(r.Msg))
		}
	}
	return out
}

func TestTerminalIsToldOnceThatAMemberBeganToWait(t *testing.T) {
	for notify, want := range map[string]string{
		"": "\a", "bell": "\a", "none": "",
		"osc9":   "\x1b]9;dev in ~/src/api waits for you: Shall I?\x07",
		"osc777": "\x1b]777;notify;fleetdeck;dev in ~/src/api waits for you: Shall I?\a",
	} {
		t.Run(notify, func(t *testing.T) {
			inLoopOf(t, nil, Options{Home: home, Config: Config{Notify: notify}}, func(t *testing.T, l *loop) {
				if got := l.raw(); len(got) > 0 {
					t.Fatalf("told of what waited already: %q", got)
				}
				for range 2 {
					s := example(l.f.Now())
					s.Members[0].State, s.Members[0].StateMessage = fleet.StateWaiting, "Shall I?\x1b[31m"
					l.f.set(s)
					l.pass(time.Second)
				}
				if got := strings.Join(l.raw(), "|"); got != want {
					t.Errorf("told %q, want %q", got, want)
				}
			})
		})
	}
}

func TestProgramStatusSaysWhetherAPersonIsWaitedFor(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		if s := l.m.View().ProgramStatus; s.State != tea.ProgramStateBlocked || s.Message != "1 agent waits for you" {
			t.Errorf("status %+v", s)
		}
		calm := example(l.f.Now())
		calm.Members[1].State = fleet.StateIdle
		l.f.set(calm)
		l.pass(100 * time.Millisecond)
		if s := l.m.View().ProgramStatus; s.State != tea.ProgramStateIdle {
			t.Errorf("with nobody waiting: %+v", s)
		}
		l.f.act = untilCancelled
		l.press("X", "y")
		if s := l.m.View().ProgramStatus; s.State != tea.ProgramStateWorking {
			t.Errorf("with an act under way: %+v", s)
		}
	})
}

func TestDetailPaneIsPlacedZoomedAndClosed(t *testing.T) {
	m := still(example(instant(0)), 120, 40, Options{Home: home})
	at := func() frame { return m.frame() }
	if !at().beside {
		t.Fatal("on a wide screen the detail is not beside the list")
	}
	if typed(m, "p"); !at().beside { // where there is room → beside
		t.Error("asked for beside, it is not")
	}
	if typed(m, "p"); at().beside || at().detail.empty() {
		t.Error("asked for below, it is not")
	}
	if typed(m, "tab", "p"); !at().detail.empty() || m.pane != paneList {
		t.Errorf("closed, it is at %+v, the focus on pane %d", at().detail, m.pane)
	}
	if typed(m, "p"); at().detail.empty() {
		t.Error("it does not come back")
	}
	if typed(m, "tab", "z"); !at().list.empty() || at().detail.w != 120 {
		t.Errorf("zoomed, the list is at %+v and the detail at %+v", at().list, at().detail)
	}
	if typed(m, "esc"); at().list.empty() {
		t.Error("esc does not end the zoom")
	}
	if typed(m, "tab", "z"); at().list.w != 120 || !strings.Contains(plainFrame(m), "Reservations") {
		t.Errorf("the zoomed lesser pane is at %+v", at().list)
	}
}

func TestPruneCanBeCopiedAsACommand(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("P")
		l.wants("The same by hand: fleetdeck prune")
		l.pass(time.Second)
		l.press("c")
		l.wants("copied the command: fleetdeck prune", "Prune 1 reservation?")
		l.press("esc", "y", "c")
		l.wants("copied its id: 01JEABCD0001")
		l.press("7", "c")
		l.wants("copied its command: fleetdeck dispatch")
		l.wantCalls()
	})
}
