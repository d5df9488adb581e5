package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
)

func TestCellsAreAsWideAsTheyMustBe(t *testing.T) {
	texts := []string{"", "a", "plain", "漢字漢字", "漢a漢", evil, "👩‍👩‍👧👩‍👩‍👧", "\x1b[31mred\x1b[m and more", strings.Repeat("x", 1<<20), strings.Repeat("\x1b[31m", 5000) + "late"}
	for _, s := range texts {
		for w := range 20 {
			for name, f := range map[string]func(string, int) string{"cell": cell, "tail": tail, "screenLine": screenLine} {
				got := f(s, w)
				if n := ansi.StringWidth(got); n != w {
					t.Errorf("%s(%.20q, %d) = %q, %d cells", name, s, w, got, n)
				}
				if !onlyColours(got) {
					t.Errorf("%s(%.20q, %d) = %q, which is not safe to draw", name, s, w, got)
				}
			}
		}
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	if got, want := tail("/home/kim/src/api", 8), "…src/api"; got != want {
		t.Errorf("tail = %q, want %q", got, want)
	}
}

func TestScreenLineKeepsColoursAndNothingElse(t *testing.T) {
	tests := []struct {
		name, line string
		coloured   bool
	}{
		{"plain", "text", false},
		{"colour", "\x1b[31mred\x1b[m", true},
		{"256 and true colour", "\x1b[38;5;12;48:2::1:2:3mx\x1b[0m", true},
		{"cursor", "\x1b[31mred\x1b[2J", false},
		{"title", "\x1b]0;x\x07red", false},
		{"unfinished", "red\x1b[31", false},
		{"private", "\x1b[?25lred", false},
		{"C1", "\x1b[31mred\u009b2J", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := screenLine(tt.line, 12)
			if has := strings.Contains(got, "\x1b["); has != tt.coloured {
				t.Errorf("screenLine(%q) = %q, coloured = %v, want %v", tt.line, got, has, tt.coloured)
			}
			if tt.coloured && !strings.HasSuffix(got, ansi.ResetStyle) {
				t.Errorf("screenLine(%q) = %q does not end its colours", tt.line, got)
			}
		})
	}
}

func TestTimesForPeople(t *testing.T) {
	tests := []struct {
		d                 time.Duration
		countdown, span   string
		secs, agoes, left string
	}{
		{-time.Hour, "0:00", "<1m", "0.0 s", "", ""},
		{0, "0:00", "<1m", "0.0 s", "0 s ago", ""},
		{time.Millisecond, "0:01", "<1m", "0.0 s", "0 s ago", ""},
		{72 * time.Second, "1:12", "1m", "72 s", "1m ago", ""},
		{3720 * time.Second, "1h02m", "1h02m", "1h02m", "1h02m ago", ""},
		{76 * time.Hour, "76h00m", "3d4h", "3d4h", "3d4h ago", ""},
	}
	for _, tt := range tests {
		if got := countdown(tt.d); got != tt.countdown {
			t.Errorf("countdown(%v) = %q, want %q", tt.d, got, tt.countdown)
		}
		if got := span(tt.d); got != tt.span {
			t.Errorf("span(%v) = %q, want %q", tt.d, got, tt.span)
		}
		if got := seconds(tt.d); got != tt.secs {
			t.Errorf("seconds(%v) = %q, want %q", tt.d, got, tt.secs)
		}
		if got := ago(tt.d); tt.agoes != "" && got != tt.agoes {
			t.Errorf("ago(%v) = %q, want %q", tt.d, got, tt.agoes)
		}
	}
}

func TestColumnsFillTheListAndGiveWay(t *testing.T) {
	m := New(nil, Options{})
	taken(t, m.trees)
	taken(t, m.members)
	taken(t, m.slots)
	taken(t, m.entries)
	taken(t, m.queue)
	taken(t, m.events)
	taken(t, m.history)
}

// taken fails where the columns of a list take more than there is, or none of them is shown.
func taken[T any](t *testing.T, l *list[T]) {
	t.Helper()
	for w := minWidth; w < 220; w++ {
		sum, shown := lead-gap, 0
		for _, c := range share(l.columns, w, true) {
			if c > 0 {
				sum += c + gap
				shown++
			}
		}
		if sum > w || shown < 2 {
			t.Errorf("%s: %d columns of a list of %d cells take %d", l.title, shown, w, sum)
		}
	}
}

func TestEveryStateHasAGlyphAndAWord(t *testing.T) {
	s := newStyles("", true, false)
	var all []look
	for _, o := range []fleet.Occupied{fleet.Free, fleet.Reserved, fleet.Taken, fleet.Foreign, "", "new"} {
		all = append(all, s.occupancy(o))
	}
	for _, st := range []fleet.State{fleet.StateWorking, fleet.StateIdle, fleet.StateWaiting, fleet.StateDone, fleet.StateExited, fleet.StateUnknown, ""} {
		all = append(all, s.member(st))
	}
	for _, v := range []fleet.Verdict{fleet.VerdictPending, fleet.VerdictListed, fleet.VerdictExpired, fleet.VerdictInvalid} {
		all = append(all, s.verdict(v))
	}
	for _, l := range all {
		if ansi.StringWidth(l.glyph) != 1 || l.word == "" && l.glyph != "?" {
			t.Errorf("look %+v", l)
		}
		if strings.Contains(string(l.paint), "3") {
			t.Errorf("%s has a colour without colours: %q", l.word, string(l.paint))
		}
	}
}
