package embedded

import (
	"strings"
	"testing"
)

// modesOf feeds output to a filter and gives the modes that it notes.
func modesOf(outputs ...string) *modes {
	var f filter
	var m modes
	at := uint64(0)
	for _, s := range outputs {
		f.scan([]byte(s), winsize{80, 24}, sink{
			pass: func(p []byte) { at += uint64(len(p)) },
			ask:  func(query) {},
			mode: func(s string, ahead int) { m.note(s, at+uint64(ahead)) },
		})
	}
	return &m
}

func TestThePreludeGivesTheModesOfAPlace(t *testing.T) {
	const on, off = "\x1b[?1049h\x1b[?25l\x1b[?1;2004h\x1b=", "\x1b[?1049l\x1b[?25h\x1b>"
	tests := []struct {
		name    string
		outputs []string
		at      uint64
		want    string
	}{
		{"at the beginning", []string{on}, 0, ""},
		{"between", []string{on}, 8, "\x1b[?1049h"},
		{"after", []string{on, "text"}, 1000, "\x1b[?1h\x1b[?25l\x1b[?66h\x1b[?1049h\x1b[?2004h"},
		{"switched off again", []string{on, "text", off}, 1000, "\x1b[?1h\x1b[?2004h"},
		{"before it was switched off", []string{on, "text", off}, uint64(len(on) + 2), "\x1b[?1h\x1b[?25l\x1b[?66h\x1b[?1049h\x1b[?2004h"},
		{"full reset", []string{on, "\x1bc"}, 1000, ""},
		{"in pieces", strings.SplitAfter(on, "?"), 1000, "\x1b[?1h\x1b[?25l\x1b[?66h\x1b[?1049h\x1b[?2004h"},
		{"of no concern", []string{"\x1b[?2026h\x1b[?12h\x1b[4h"}, 1000, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := modesOf(tt.outputs...).prelude(tt.at); got != tt.want {
				t.Errorf("prelude(%d) = %q, want %q", tt.at, got, tt.want)
			}
		})
	}
}

func TestModesDoNotGrowWithoutBound(t *testing.T) {
	m := modesOf("\x1b[?1049h", strings.Repeat("\x1b[?25l\x1b[?25h", 10*maxModeChanges))
	if len(m.changes) > maxModeChanges {
		t.Errorf("%d changes are remembered, want at most %d", len(m.changes), maxModeChanges)
	}
	if got, want := m.prelude(1<<40), "\x1b[?1049h"; got != want {
		t.Errorf("prelude = %q, want %q", got, want)
	}
}
