package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// heldBy is the admission lock as a script holds it.
func heldBy(f *fakeFleet, pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lock = fleet.LockInfo{State: "held", Holder: &fleet.LockHolder{Pid: pid, Program: "python3 dispatch.py", Since: day}}
}

// untilCancelled is a change that waits for the lock for ever.
func untilCancelled(ctx context.Context) error {
	<-ctx.Done()
	return fleet.Refuse(fleet.CodeLockBusy, "wait for the admission lock: %w", ctx.Err())
}

func TestActShowsWhomItWaitsForAndEscCancelsIt(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.act = untilCancelled
		l.press("j", "j", "s", "enter")
		l.wants("dispatch dev to ~/src/docs", "esc cancels")
		l.lacks("waiting for the admission lock")
		heldBy(l.f, 4242)
		l.pass(1200 * time.Millisecond)
		l.wants("waiting for the admission lock · held by pid 4242 (python3 dispatch.py)", "1.0 s · esc cancels")
		l.press("esc")
		l.lacks("esc cancels")
		l.wants("cancelled: refused: wait for the admission lock: context canceled")
		if l.m.assumed[home+"/src/docs"] != nil {
			t.Error("a refused dispatch is still assumed")
		}
		l.press("6")
		l.wants("cancelled: refused")
	})
}

func TestLockIsLookedAtOnlyWhileAnActIsUnderWay(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		looks := func() (n int) {
			for _, m := range l.seen {
				if _, ok := m.(lockMsg); ok {
					n++
				}
			}
			return n
		}
		l.pass(3 * time.Second)
		if n := looks(); n != 0 {
			t.Fatalf("the lock was looked at %d times with nothing under way", n)
		}
		l.f.act = untilCancelled
		l.press("j", "j", "s", "enter")
		l.pass(2100 * time.Millisecond)
		n := looks()
		if n != 8 {
			t.Fatalf("the lock was looked at %d times in 2.1 s, want 8", n)
		}
		l.press("esc")
		l.pass(3 * time.Second)
		if after := looks(); after > n+1 {
			t.Errorf("the lock was looked at %d times after the act had ended", after-n)
		}
	})
}

func TestOwnHoldOfTheLockIsNoWait(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.act = untilCancelled
		l.press("j", "j", "s", "enter")
		heldBy(l.f, l.m.pid)
		l.pass(time.Second)
		l.wants("dispatch dev to ~/src/docs")
		l.lacks("waiting for the admission lock")
	})
}

func TestDispatchIsAssumedUntilASnapshotSaysWhatTheTreeIs(t *testing.T) {
	tests := []struct {
		name  string
		after func(l *loop)
		want  string
	}{
		{"reserved in a snapshot", func(l *loop) {
			s := example(l.f.Now())
			s.Trees[2].Occupancy, s.Trees[2].Deadline = fleet.Reserved, fleet.DeadlineAfter(l.f.Now(), 90*time.Second)
			l.f.set(s)
			l.pass(100 * time.Millisecond)
		}, "reserved"},
		{"still free in a snapshot made later", func(l *loop) {
			l.pass(100 * time.Millisecond)
			l.f.set(example(l.f.Now()))
			l.pass(100 * time.Millisecond)
		}, "free"},
		{"still free in a snapshot made earlier", func(l *loop) {
			s := example(l.f.Now())
			s.At.Mono -= time.Second
			l.f.set(s)
			l.pass(100 * time.Millisecond)
		}, "dispatch…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inLoop(t, func(t *testing.T, l *loop) {
				l.press("j", "j", "s", "enter")
				l.wantCalls(`dispatch /home/kim/src/docs dev claude ""`)
				l.wants("dispatched dev on claude to ~/src/docs")
				if !strings.Contains(l.row("~/src/docs"), "dispatch…") {
					t.Fatalf("the row does not show the dispatch: %q", l.row("~/src/docs"))
				}
				tt.after(l)
				if got := l.row("~/src/docs"); !strings.Contains(got, tt.want) {
					t.Errorf("the row is %q, want %q in it", got, tt.want)
				}
			})
		})
	}
}

func TestAssumptionDoesNotOutliveWhatASnapshotShowed(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.act = untilCancelled
		l.press("j", "j", "s", "enter")
		s := example(l.f.Now())
		s.Trees[2].Occupancy, s.Trees[2].Deadline = fleet.Reserved, fleet.DeadlineAfter(l.f.Now(), 90*time.Second)
		l.f.set(s)
		l.pass(100 * time.Millisecond)
		l.f.set(example(l.f.Now())) // its launch has failed, and the answer is still on its way
		l.pass(100 * time.Millisecond)
		if got := l.row("~/src/docs"); !strings.Contains(got, "free") {
			t.Errorf("the row is %q, want it free", got)
		}
	})
}

func TestRefusalSaysWhyAndStaysUntilAKey(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.outcome = fleet.Outcome{
			Outcome: fleet.Refused, Code: fleet.CodeTreeReserved,
			Message: "~/src/docs is reserved by pid 5151 (python3 dispatch.py) for 27 s more", Hint: "wait, or release it",
		}
		l.press("j", "j", "s", "enter")
		l.pass(20 * time.Second)
		l.wants("refused: ~/src/docs is reserved by pid 5151 (python3 dispatch.py) for 27 s more · wait, or release it")
		if l.m.assumed[home+"/src/docs"] != nil {
			t.Error("a refused dispatch is still assumed")
		}
		l.press("k")
		l.press("6")
		l.wants("refused: ~/src/docs is reserved")
		l.press("1")
		if len(l.m.notices) != 0 {
			t.Errorf("%d notices are left after a key", len(l.m.notices))
		}
	})
}

func TestErrorIsNotWipedByAKeyAlreadyOnItsWay(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.outcome = fleet.Outcome{Outcome: fleet.Refused, Message: "no"}
		l.press("j", "j", "s", "enter", "k", "k")
		l.wants("! refused: no")
	})
}

func TestInfoNoticeExpires(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("j", "j", "s", "enter")
		l.pass(noticeTime - 100*time.Millisecond)
		l.wants("✓ dispatched")
		l.pass(200 * time.Millisecond)
		l.lacks("✓ dispatched")
	})
}

func TestNothingDestructiveHappensWithoutYes(t *testing.T) {
	tests := []struct {
		name string
		keys []string
		call string
		says string
	}{
		{"stop", []string{"X"}, "stop 01JEABCD0001", "Stop this member?"},
		{"stop from the roster", []string{"2", "j", "X"}, "stop 01JEABCD0002", "member 01JEABCD0002"},
		{"release", []string{"4", "R"}, "release /home/kim/src/search r5-01JEZZ", "by fleetdeck dispatch (pid 4242 on kite)"},
		{"release from the tree", []string{"G", "R"}, "release /home/kim/src/web r6-01JEZZ", "python3 dispatch.py"},
		{"prune", []string{"P"}, "prune", "Prune 1 reservation?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, no := range []string{"enter", "esc", "n", "space", "ctrl+d", "Y", tt.keys[len(tt.keys)-1]} {
				inLoop(t, func(t *testing.T, l *loop) {
					l.press(tt.keys...)
					l.wants(tt.says)
					l.pass(time.Second)
					l.press(no)
					l.wantCalls()
				})
			}
			inLoop(t, func(t *testing.T, l *loop) {
				l.press(tt.keys...)
				l.pass(time.Second)
				l.press("y")
				l.wantCalls(tt.call)
				if l.m.dialog != nil {
					t.Error("the dialog is still open")
				}
			})
		})
	}
}

func TestPlanThatComesUpByItselfSwallowsKeysForAMoment(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("P")
		l.wants("Prune 1 reservation?", "its grace ran out 8m ago", "2 entries stay")
		l.press("y")
		l.wantCalls()
		l.wants("Prune 1 reservation?")
		l.pass(quiet + 10*time.Millisecond)
		l.press("y")
		l.wantCalls("prune")
	})
}

func TestPruneSaysWhereItDroppedOtherThanWasShown(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.pruned = fleet.PruneReport{Kept: 3}
		l.press("P")
		l.pass(time.Second)
		l.press("y")
		l.wants("pruned 0 reservations, 3 kept (1 were shown: the file had changed meanwhile)")
	})
}

func TestBusyLockIsNoPrune(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.pruned = fleet.PruneReport{Lock: "busy"}
		l.press("P")
		l.pass(time.Second)
		l.press("y")
		l.wants("! prune: the admission lock stayed busy: nothing was changed")
	})
}

func TestMessageReachesTheSelectedMember(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("j", "m")
		l.wants("May I drop the column")
		l.typeText("yes q P X")
		l.send(tea.PasteMsg{Content: " please\x1b[2J\nnow"})
		l.press("enter")
		l.wantCalls(`send 01JEABCD0002 "yes q P X please now"`)
	})
}

func TestFailedActSaysWhatFailed(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.act = func(context.Context) error { return errors.New("the daemon is gone") }
		l.press("X", "y")
		l.wants("! stop 01JEABCD0001: the daemon is gone")
	})
}

func TestReadOnlyConsoleChangesNothing(t *testing.T) {
	inLoopOf(t, nil, Options{Home: home, ReadOnly: true}, func(t *testing.T, l *loop) {
		for _, k := range []string{"s", "m", "P", "R", "X", "enter", "a"} {
			l.press(k)
			if l.m.dialog != nil {
				t.Errorf("%s opens a dialog", k)
			}
			l.wants("read-only")
			l.pass(time.Second)
			l.press("y", "enter")
		}
		l.wantCalls()
	})
}

func TestQuitWaitsForActsUnderWay(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.act = untilCancelled
		l.press("X", "y", "q")
		if l.quit {
			t.Error("q quits while an act is under way")
		}
		l.wants("still under way")
		l.press("ctrl+c")
		if !l.quit {
			t.Error("ctrl+c does not quit")
		}
	})
}
