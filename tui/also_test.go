package tui

import (
	"testing"
	"time"

	"fleetdeck/fleet"
)

func TestFormSendsOneAgentOverSeveralTrees(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("j", "j", "s", "tab", "tab") // from the task over the tree to the further ones
		l.wants("none; type to find one, or a path")
		l.typeText("mob")
		l.press("enter")
		l.typeText("old")
		l.press("enter")
		l.typeText("~/elsewhere")
		l.press("enter", "backspace") // the last is taken out again
		l.wants("▌Also", "~/src/mobile", "~/src/old")
		l.lacks("~/elsewhere")
		l.press("enter") // nothing is typed: on to the task
		l.typeText("Fix it.")
		l.press("enter")
		l.wantCalls(`dispatch /home/kim/src/docs dev claude "Fix it." also [/home/kim/src/mobile /home/kim/src/old]`)
		l.wants("dispatched dev on claude to ~/src/docs and 2 more trees")
		for _, tree := range []string{"~/src/docs", "~/src/mobile", "~/src/old"} {
			if l.m.assumed[home+tree[1:]] == nil {
				t.Errorf("the row of %s does not show the dispatch", tree)
			}
		}
	})
}

func TestFurtherTreeIsNeitherTheTreeItselfNorOneTwice(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("j", "j", "s", "tab", "tab")
		l.typeText("mob")
		l.press("enter")
		for _, typed := range []string{"docs", "mobile", "~/src/docs", "~/src/mobile"} {
			l.typeText(typed)
			l.press("enter")
			l.wants("▌Also", "no further tree")
			l.press("ctrl+u")
		}
		if d := l.m.dialog.(*spawnDialog); len(d.also) != 1 || d.also[0] != home+"/src/mobile" {
			t.Errorf("also = %q", d.also)
		}
	})
}

func TestMarkedTreesGetAnAgentEachOrOneOverAll(t *testing.T) {
	for _, over := range []bool{false, true} {
		inLoop(t, func(t *testing.T, l *loop) {
			l.press("j", "j", "space", "j", "j", "space", "s", "tab", "tab")
			l.wants("Agents", "one in each", "one over all")
			if over {
				l.press("right")
			}
			l.press("enter")
			if over {
				l.wantCalls(`dispatch /home/kim/src/docs dev claude "" also [/home/kim/src/mobile]`)
				return
			}
			l.f.mu.Lock()
			defer l.f.mu.Unlock()
			if len(l.f.calls) != 2 {
				t.Errorf("calls = %q, want a dispatch into each", l.f.calls)
			}
		})
	}
}

func TestWorkBesideAForeignAgentIsOfferedOnlyThereAndDefaultsToNo(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("j", "j", "s")
		l.lacks("Beside")
		l.press("esc", "j", "j", "s") // on the foreign one
		l.wants("▌Beside", "claude (pid 3141, for 26m) works in ")
		l.press("enter")
		l.press("esc") // what came up by itself
		l.pass(time.Second)
		l.press("s", "right", "enter")
		l.wantCalls(`dispatch /home/kim/src/legacy-importer-with-a-long-name dev claude ""`,
			`dispatch /home/kim/src/legacy-importer-with-a-long-name dev claude "" beside`)
	})
}

func TestYesToOneForeignAgentIsNoYesToAnother(t *testing.T) {
	two := example(instant(0))
	two.Trees[5].Occupancy, two.Trees[5].Foreign = fleet.Foreign, fleet.ForeignRow{Agent: "codex", Pid: 99}
	inLoopOf(t, func(f *fakeFleet) { f.snap = two }, Options{Home: home}, func(t *testing.T, l *loop) {
		l.press("j", "j", "j", "j", "s", "right", "shift+tab", "ctrl+t")
		l.typeText("mob")
		l.press("enter", "tab", "tab", "tab")
		l.wants("codex (pid 99) works in ~/src/mobile", " no ")
		if d := l.m.dialog.(*spawnDialog); d.beside.value() != no {
			t.Errorf("beside is %q after another tree was added", d.beside.value())
		}
	})
}

func TestRefusalOverSeveralTreesNamesEachAndWaitsForAll(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.outcome = fleet.Outcome{Outcome: fleet.Refused, Code: fleet.CodeTreeOccupied, Message: "/home/kim/src/mobile is occupied by member 01JEABCD0001"}
		l.press("j", "j", "s", "tab", "tab")
		l.typeText("mob")
		l.press("enter", "enter", "enter")
		l.pass(time.Second)
		l.wants("Refused", "~/src/docs and ~/src/mobile", "/home/kim/src/mobile is occupied", "~/src/docs is now", "~/src/mobile is now", "until all")
		l.lacks("n queue it")
		taken := example(l.f.Now())
		taken.Trees[5].Occupancy, taken.Trees[5].Member = fleet.Taken, "01JEABCD0001"
		l.f.set(taken)
		l.f.mu.Lock()
		l.f.outcome, l.f.calls = fleet.Outcome{Outcome: fleet.Accepted}, nil
		l.f.mu.Unlock()
		l.pass(time.Second)
		l.press("n", "w")
		l.pass(time.Minute)
		l.wantCalls()
		l.f.set(example(l.f.Now()))
		l.pass(time.Second)
		l.wantCalls(`dispatch /home/kim/src/docs dev claude "" also [/home/kim/src/mobile]`)
	})
}

func TestQueuedTaskHasNeitherFurtherTreesNorANewWorktree(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("j", "j", "s", "tab", "tab")
		l.typeText("mob")
		l.press("enter", "ctrl+r")
		l.lacks("Also", "Worktree")
		l.typeText("Later.")
		l.press("enter")
		l.wantCalls(`enqueue /home/kim/src/docs dev claude "Later."`)
	})
}
