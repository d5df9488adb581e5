package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestExplanationIsBrokenAndADiffIsCut(t *testing.T) {
	long := strings.Repeat("word ", 40) + "the end"
	for _, tt := range []struct {
		key   string
		whole bool
	}{{"x", true}, {"d", false}} {
		inLoopOf(t, func(f *fakeFleet) { f.page = long }, Options{Home: home}, func(t *testing.T, l *loop) {
			l.send(tea.WindowSizeMsg{Width: 80, Height: 24})
			l.press(tt.key)
			if got := strings.Contains(l.screen(), "the end"); got != tt.whole {
				t.Errorf("%s: the end is shown: %v, want %v\n%s", tt.key, got, tt.whole, l.screen())
			}
		})
	}
}
