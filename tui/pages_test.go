package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

func TestOneKeyExplainsWhatIsSelected(t *testing.T) {
	tests := []struct {
		name string
		keys []string
		want string
	}{
		{"a tree", []string{"x"}, "Why ~/src/api is as it is"},
		{"its member, from there", []string{"x", "x"}, "Who says what of dev in ~/src/api"},
		{"and back", []string{"x", "x", "x"}, "Why ~/src/api is as it is"},
		{"the screen of its member", []string{"tab", "x"}, "Who says what of dev in ~/src/api"},
		{"a tree without a member", []string{"j", "j", "tab", "x", "x"}, "Why ~/src/docs is as it is"},
		{"a member", []string{"2", "j", "x"}, "Who says what of dev in ~/src/billing"},
		{"a slot's member", []string{"3", "x"}, "Who says what of architect in ~/src/fleet-core"},
		{"a slot's tree", []string{"3", "G", "x"}, "Why ~/src/search is as it is"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inLoop(t, func(t *testing.T, l *loop) {
				l.f.page, l.f.witnesses = "because", "hook      working"
				l.press(tt.keys...)
				l.wants(tt.want)
			})
		})
	}
}

func TestExplanationRenewsWhileSomebodyReadsIt(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		say := func(s string) {
			l.f.mu.Lock()
			defer l.f.mu.Unlock()
			l.f.witnesses = s
		}
		asked := func() int {
			l.f.mu.Lock()
			defer l.f.mu.Unlock()
			return len(l.f.calls)
		}
		say("hook      working")
		l.press("2", "x")
		l.wants("hook      working")
		say("hook      waiting: which one?")
		l.pass(1500 * time.Millisecond)
		l.wants("hook      waiting: which one?")
		l.send(tea.BlurMsg{})
		l.pass(1500 * time.Millisecond) // what was under way
		before := asked()
		l.pass(10 * time.Second)
		if n := asked(); n != before {
			t.Errorf("it was asked %d times while nobody looked", n-before)
		}
		say("hook      idle")
		l.send(tea.FocusMsg{})
		l.pass(1500 * time.Millisecond)
		l.wants("hook      idle")
		l.press("esc")
		l.pass(1500 * time.Millisecond)
		before = asked()
		l.pass(10 * time.Second)
		if n := asked(); n != before {
			t.Errorf("it was asked %d times after it was closed", n-before)
		}
	})
}

func TestDiffTurnsBetweenWhatIsNotCommittedAndAllSinceTheBranchBegan(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.f.page = exampleDiff
		l.press("d")
		l.wants("Diff of ~/src/api ", "d since its branch began", "c.durable()")
		l.lacks("commit 1a2b3c4")
		l.press("d")
		l.wants("Diff of ~/src/api since its branch began", "commit 1a2b3c4 Resume the import", "d what is not committed")
		l.press("d", "esc")
		if l.m.dialog != nil {
			t.Errorf("%T is open", l.m.dialog)
		}
	})
}
