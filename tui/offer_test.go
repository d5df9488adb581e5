package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet"
)

// refusing lets the next dispatch into docs be refused because the tree is held.
func refusing(l *loop) {
	l.f.outcome = fleet.Outcome{Outcome: fleet.Refused, Code: fleet.CodeTreeReserved, Message: "docs is reserved by python3, 27 s left"}
	l.press("j", "j", "s")
	l.typeText("Fix it.")
	l.press("enter")
	l.f.mu.Lock()
	l.f.outcome, l.f.calls = fleet.Outcome{Outcome: fleet.Accepted}, nil
	l.f.mu.Unlock()
	l.wants("Refused", "docs is reserved by python3, 27 s left", "w wait for the tree", "n queue it", "t take a new worktree")
	l.pass(time.Second)
}

func TestRefusalOffersToWaitAndDispatchesOnceTheTreeIsFree(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		taken := example(l.f.Now())
		taken.Trees[2].Occupancy, taken.Trees[2].Member = fleet.Taken, "01JEABCD0001"
		refusing(l)
		l.f.set(taken)
		l.pass(100 * time.Millisecond)
		l.press("w")
		l.wants("wait for ~/src/docs", "esc cancels")
		l.pass(time.Minute)
		l.wantCalls()
		l.f.set(example(l.f.Now()))
		l.pass(time.Second)
		l.wantCalls(`dispatch /home/kim/src/docs dev claude "Fix it."`)
		l.lacks("esc cancels")
	})
}

func TestWaitForATreeCanBeCancelled(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		taken := example(l.f.Now())
		taken.Trees[2].Occupancy, taken.Trees[2].Member = fleet.Taken, "01JEABCD0001"
		refusing(l)
		l.f.set(taken)
		l.pass(100 * time.Millisecond)
		l.press("w", "esc")
		l.f.set(example(l.f.Now()))
		l.pass(time.Minute)
		l.wantCalls()
	})
}

func TestRefusalOffersTheQueue(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		refusing(l)
		l.press("n")
		l.wantCalls(`enqueue /home/kim/src/docs dev claude "Fix it."`)
		l.wants("queued for ~/src/docs")
	})
}

func TestRefusalOffersANewWorktree(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		refusing(l)
		l.press("t")
		l.typeText("fix/links")
		l.press("enter")
		l.wantCalls(`dispatch /home/kim/src/docs dev claude "Fix it." branch "fix/links"`)
		if l.m.assumed[home+"/src/docs"] != nil {
			t.Error("the tree itself shows a dispatch that goes to a worktree of it")
		}
	})
}

func TestForeignAgentIsNamedAndCanBeWorkedBeside(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("j", "j", "j", "j")
		l.wants("claude", "3141", "26m ago", "did not start runs here")
		l.f.outcome = fleet.Outcome{Outcome: fleet.Refused, Code: fleet.CodeTreeForeign, Message: "claude works there"}
		l.press("s", "enter")
		l.pass(time.Second)
		l.wants("Refused", "B dispatch beside it")
		l.press("b")
		l.press("B")
		l.settle()
		if got, want := l.f.calls[len(l.f.calls)-1], `dispatch /home/kim/src/legacy-importer-with-a-long-name dev claude "" beside`; got != want {
			t.Errorf("the dispatch is %s, want %s", got, want)
		}
	})
}

func TestOfferThatComesUpByItselfSwallowsKeysForAMoment(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.outcome = fleet.Outcome{Outcome: fleet.Refused, Code: fleet.CodeTreeOccupied, Message: "taken"}
		l.press("j", "j", "s")
		l.typeText("Fix it.")
		l.press("enter", "n", "t", "w")
		l.wantCalls(`dispatch /home/kim/src/docs dev claude "Fix it."`)
		l.wants("Refused")
	})
}

func TestRefusalThatIsNotAboutTheTreeOffersNothing(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.outcome = fleet.Outcome{Outcome: fleet.Refused, Code: fleet.CodeSlotUnavailable, Message: "every slot is taken"}
		l.press("j", "j", "s", "enter")
		if l.m.dialog != nil {
			t.Errorf("%T is open", l.m.dialog)
		}
		l.wants("! refused: every slot is taken")
	})
}

func TestTaskIsQueuedFromItsForm(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("n", "enter")
		l.wants("what is to be queued?")
		l.typeText("Write the notes.")
		l.press("enter")
		l.wantCalls(`enqueue /home/kim/src/api dev claude "Write the notes."`)
		s := example(l.f.Now())
		s.Keeper = fleet.KeeperInfo{OnDemand: true}
		l.f.set(s)
		l.pass(100 * time.Millisecond)
		l.wants("keeper ready")
		l.press("n")
		l.typeText("x")
		l.press("enter")
		l.wants("✓ queued for")
		l.lacks("nobody sends it")
		s.Keeper = fleet.KeeperInfo{}
		l.f.set(s)
		l.pass(100 * time.Millisecond)
		l.press("n")
		l.typeText("x")
		l.press("enter")
		l.wants("no keeper runs: nobody sends it until one does")
	})
}

func TestTaskLeavesTheQueueAfterAYes(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("D")
		l.wants("tasks are taken out in the queue")
		l.press("5", "D")
		l.wants("Take this task out of the queue?", "Write the release notes.")
		l.press("enter")
		l.wantCalls()
		l.press("D", "y")
		l.wantCalls("unqueue 01JEQQQQ0001")
	})
}

func TestDispatchRemembersWhatWasChosenForTheTree(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("j", "j", "s", "shift+tab", "shift+tab", "right", "enter") // docs on shell
		l.pass(time.Second)
		l.f.set(example(l.f.Now()))
		l.pass(time.Second)
		l.press("j", "j", "j", "s", "shift+tab", "shift+tab", "left", "enter") // mobile on claude
		l.pass(time.Second)
		l.f.set(example(l.f.Now()))
		l.pass(time.Second)
		l.press("k", "k", "k", "s", "enter") // docs again
		l.wantCalls(`dispatch /home/kim/src/docs dev shell ""`, `dispatch /home/kim/src/mobile dev claude ""`, `dispatch /home/kim/src/docs dev shell ""`)
	})
}

func TestRestartAsksAndSaysWhatBecameOfIt(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("T")
		l.wants("Restart this member?", "dev on claude in ~/src/api", "an admission like any other")
		l.press("y")
		l.wantCalls("restart 01JEABCD0001")
		l.wants("dispatched dev on claude to ~/src/api: it is booting")
	})
}

func TestAnswerShowsTheQuestionAndSendsADigitAtOnce(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("i") // nobody waits in api: the next who does is in billing
		l.wants("Answer", "May I drop the column invoices.legacy_ref?")
		l.lacks("choose at once")
		l.press("esc")
		l.f.mu.Lock()
		menu := []string{"May I drop it?", "❯ 1. Yes", "  2. Yes, and do not ask again", "  3. No"}
		l.f.screens["01JEABCD0002"] = fleet.Screen{Rev: 9, Lines: menu, Styled: menu}
		l.f.mu.Unlock()
		l.press("r")
		l.pass(3 * time.Second)
		l.press("i")
		l.wants("1…9 choose at once")
		l.press("2", "3", "X") // what comes right behind is no command
		l.wantCalls(`send 01JEABCD0002 "2" without enter`)
		if l.m.dialog != nil {
			t.Errorf("%T is open", l.m.dialog)
		}
		l.pass(2 * time.Second)
		l.press("i")
		l.typeText("no, keep 1")
		l.press("enter")
		l.wantCalls(`send 01JEABCD0002 "2" without enter`, `send 01JEABCD0002 "no, keep 1"`)
		s := example(l.f.Now())
		s.Members[1].State = fleet.StateWorking
		l.f.set(s)
		l.pass(100 * time.Millisecond)
		l.press("i")
		l.wants("nobody waits for you")
		l.press("w")
		if l.m.dialog != nil {
			t.Error("an answer is asked for where nobody waits")
		}
	})
}

func TestNextThatWaitsIsGoneTo(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		s := example(l.f.Now())
		s.Members[2].State = fleet.StateWaiting
		l.f.set(s)
		l.pass(100 * time.Millisecond)
		for _, want := range []string{"billing", "fleet-core", "billing"} {
			if l.press("w"); l.m.selectedTree() != home+"/src/"+want {
				t.Fatalf("w leads to %s, want %s", l.m.selectedTree(), want)
			}
		}
		l.press("2", "w")
		if x, _ := l.m.members.current(); l.m.view != viewMembers || x.State != fleet.StateWaiting {
			t.Errorf("among the members w leads to %v", x)
		}
	})
}

func TestDiffAndExplanationAreShownAndCanBeLeft(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.page = exampleDiff
		l.press("d")
		l.wants("Diff of ~/src/api", "return c.durable()")
		l.press("esc")
		l.f.page, l.f.pageErr = "", errors.New("git: not found")
		l.press("x")
		l.wants("git: not found")
		l.press("q")
		if l.m.dialog != nil || l.quit {
			t.Error("q does not close the text only")
		}
		l.f.pageErr = nil
		l.press("d")
		l.wants("everything is committed")
	})
}

func TestPaletteFindsAnActByNameAndDoesIt(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press(":")
		l.typeText("reserv")
		l.wants("reservations")
		l.press("enter")
		if l.m.view != viewReservations || l.m.dialog != nil {
			t.Errorf("view %d, dialog %T", l.m.view, l.m.dialog)
		}
		l.press("ctrl+p")
		l.typeText("zzzz")
		l.wants("no act is called so")
		l.press("enter")
		l.press(":")
		l.typeText("stop")
		l.press("enter")
		l.wants("Stop this launch?", "on its way to ~/src/search")
	})
}

func TestProgramsThatTakeTheTerminalAreThoseOfTheSelection(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("j", "a", "!", "e")
		l.wantCalls("attach 01JEABCD0002", "shell /home/kim/src/billing", "edit /home/kim/src/billing")
		l.wants("shell: not in this test")
		l.press("j", "s")
		l.typeText("Fix it")
		l.press("ctrl+o")
		l.wantCalls("attach 01JEABCD0002", "shell /home/kim/src/billing", "edit /home/kim/src/billing", `edit text "Fix it"`)
		l.send(editedMsg{text: "Fix it\nin two lines"})
		l.press("enter")
		l.settle()
		if got, want := l.f.calls[len(l.f.calls)-1], `dispatch /home/kim/src/docs dev claude "Fix it\nin two lines"`; got != want {
			t.Errorf("the dispatch is %s, want %s", got, want)
		}
	})
}

func TestFinderShowsFreeTreesFirstAndAPathIsMeantAsTyped(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("s")
		l.lacks("● occupied by dev")
		l.wants("free ones only")
		l.typeText("bill")
		l.wants("no such tree is free")
		l.press("ctrl+t")
		l.wants("~/src/billing")
		for range 4 {
			l.press("backspace")
		}
		l.typeText("/docs")
		l.wants("~/src/docs")
		l.press("enter", "enter")
		l.wantCalls(`dispatch /docs dev claude ""`)
	})
}

func TestLaunchIsStoppedByTheKeyThatStopsMembers(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("G", "k", "X") // search, where a launch is under way
		l.wants("Stop this launch?", "launch l5 · booting")
		l.press("y")
		l.wantCalls("stop l5")
		l.press("G", "k", "R")
		l.wants("The daemon has accepted its launch")
	})
}

func TestAcceptedDispatchThatCameToNothingIsTold(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.settled = func(o fleet.Outcome) fleet.Outcome {
			o.Outcome, o.Message = fleet.Refused, "it exited with code 3 while booting"
			return o
		}
		l.press("j", "j", "s", "enter")
		l.pass(time.Second)
		l.wants("! ~/src/docs: the dispatch came to nothing: it exited with code 3 while booting")
	})
}

func TestTaskOfARefusedDispatchIsKeptForTheNextTry(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.outcome = fleet.Outcome{Outcome: fleet.Refused, Code: fleet.CodeLockBusy, Message: "the lock is busy"}
		l.press("j", "j", "s")
		l.typeText("A long task.")
		l.press("enter")
		l.wants("the lock is busy")
		l.f.mu.Lock()
		l.f.outcome, l.f.calls = fleet.Outcome{Outcome: fleet.Accepted}, nil
		l.f.mu.Unlock()
		l.press("s", "enter")
		l.wantCalls(`dispatch /home/kim/src/docs dev claude "A long task."`)
		l.pass(time.Second)
		l.f.set(example(l.f.Now()))
		l.pass(time.Second)
		l.press("s")
		l.lacks("A long task.")
	})
}

func TestRecordingIsNotTakenForThePresent(t *testing.T) {
	m := still(example(instant(0)), 120, 40, Options{Home: home, ReadOnly: true, Recorded: true})
	frame := plainFrame(m)
	if !strings.Contains(frame, "recorded 2026-11-30") || strings.Contains(frame, "live") {
		t.Errorf("the header does not say that it is a recording:\n%s", frame)
	}
}
