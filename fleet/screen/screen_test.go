package screen_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/plain"
	"fleetdeck/fleet/screen"
)

func show(t *testing.T, cols, rows int, output string) fleet.Screen {
	t.Helper()
	s := screen.New(cols, rows)
	defer s.Close()
	s.Write([]byte(output))
	return s.Snapshot()
}

func TestSnapshotShowsWhatWasPrinted(t *testing.T) {
	tests := []struct {
		name, output string
		lines        []string
		styled       string // of the first line
	}{
		{"text", "hello\r\nworld", []string{"hello", "world", ""}, "hello"},
		{"colour", "\x1b[31mred\x1b[m plain", []string{"red plain", "", ""}, "\x1b[31mred\x1b[m plain"},
		{"coloured blanks stay", "\x1b[44m  \x1b[m  ", []string{"", "", ""}, "\x1b[44m  \x1b[m"},
		{"wide", "日本x", []string{"日本x", "", ""}, "日本x"},
		{"emoji", "a🚀b", []string{"a🚀b", "", ""}, "a🚀b"},
		{"emoji joined by invisible characters keep their place", "👨\u200d👩\u200d👧x", []string{"👨x", "", ""}, "👨x"},
		{"link is dropped, its text stays", "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", []string{"text", "", ""}, "text"},
		{"direction override", "a\u202eb", []string{"ab", "", ""}, "ab"},
		{"clipboard", "a\x1b]52;c;ZXZpbA==\x07b", []string{"ab", "", ""}, "ab"},
		{"line drawing", "\x1b(0qx\x1b(B", []string{"─│", "", ""}, "─│"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			shot := show(t, 20, 3, tt.output)
			if diff := cmp.Diff(tt.lines, shot.Lines); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if shot.Styled[0] != tt.styled {
				t.Errorf("styled = %q, want %q", shot.Styled[0], tt.styled)
			}
		})
	}
}

// The last byte of a character may be the one that ends a command where only bytes count.
func TestTitleIsReadWholeWhereverItsBytesAreCut(t *testing.T) {
	const stream = "A\x1b]0;✳ Claude Code\aB\x1b]2;✦ Gemini\x1b\\C\x1b[31mred\x1b[m\x1b]8;;http://x/✳\x1b\\link\x1b]8;;\x1b\\\x1b]1;icon\aD"
	for cut := range len(stream) {
		s := screen.New(40, 2)
		var titles []string
		for _, part := range []string{stream[:cut], stream[cut:]} {
			s.Write([]byte(part))
			titles = append(titles, s.Snapshot().Title)
		}
		shot := s.Snapshot()
		if got := strings.TrimRight(shot.Lines[0], " "); got != "ABCredlinkD" || shot.Title != "✦ Gemini" {
			t.Fatalf("cut at %d: %q, titles %q", cut, got, titles)
		}
		s.Close()
	}
}

func TestTitleAndCursorAreTold(t *testing.T) {
	shot := show(t, 20, 3, "\x1b]0;a\u202etitle\x07ab\x1b[?25l")
	if shot.Title != "atitle" {
		t.Errorf("title = %q", shot.Title)
	}
	if want := (fleet.Cursor{X: 2, Y: 0, Visible: false}); shot.Cursor != want {
		t.Errorf("cursor = %+v, want %+v", shot.Cursor, want)
	}
}

func TestModesAreTold(t *testing.T) {
	s := screen.New(20, 3)
	defer s.Close()
	if got := s.Modes(); got != (screen.Modes{}) {
		t.Errorf("a new screen has modes %+v", got)
	}
	s.Write([]byte("\x1b[?1h\x1b[?2004h\x1b[?1003;1006h\x1b[?1004h\x1b[?1049h\x1b[?25l\x1b[?2026h"))
	want := screen.Modes{AppCursorKeys: true, BracketedPaste: true, MouseAny: true, MouseSGR: true, FocusEvents: true,
		AltScreen: true, CursorHidden: true, Sync: true}
	if diff := cmp.Diff(want, s.Modes()); diff != "" {
		t.Errorf("modes (-want +got):\n%s", diff)
	}
	s.Write([]byte("\x1bc"))
	s.Write([]byte("\x1b[?1049l\x1b[?2026l"))
	if got := s.Modes(); got != (screen.Modes{}) {
		t.Errorf("after a reset there are modes %+v", got)
	}
}

func TestResizeKeepsWhatIsThere(t *testing.T) {
	s := screen.New(20, 3)
	defer s.Close()
	s.Write([]byte("one\r\ntwo"))
	s.Resize(10, 5)
	shot := s.Snapshot()
	if want := []string{"one", "two", "", "", ""}; shot.Cols != 10 || !cmp.Equal(shot.Lines, want) {
		t.Errorf("%dx%d %q, want 10x5 %q", shot.Cols, shot.Rows, shot.Lines, want)
	}
}

// safe matches what a styled line may hold beside printable characters.
var safe = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

// check fails the test if a snapshot could do more than show text.
func check(t *testing.T, shot fleet.Screen) {
	t.Helper()
	if len(shot.Lines) != shot.Rows || len(shot.Styled) != shot.Rows {
		t.Fatalf("%d lines, %d styled, want %d", len(shot.Lines), len(shot.Styled), shot.Rows)
	}
	for i, styled := range shot.Styled {
		for _, r := range safe.ReplaceAllString(styled, "") + shot.Lines[i] + shot.Title {
			if !plain.Printable(r) {
				t.Fatalf("line %d holds %U: %q", i, r, styled)
			}
		}
		if w := ansi.StringWidth(styled); w > shot.Cols {
			t.Fatalf("line %d is %d cells wide, want at most %d: %q", i, w, shot.Cols, styled)
		}
		if s := safe.FindAllString(styled, -1); len(s) > 0 && s[len(s)-1] != "\x1b[m" {
			t.Fatalf("line %d leaves a style behind: %q", i, styled)
		}
	}
	if c := shot.Cursor; c.X < 0 || c.Y < 0 || c.X >= shot.Cols || c.Y >= shot.Rows {
		t.Fatalf("the cursor is at %d,%d of %dx%d", c.X, c.Y, shot.Cols, shot.Rows)
	}
}

func FuzzASnapshotIsSafeToDraw(f *testing.F) {
	for _, s := range []string{
		"\x1b[31mred", "\x1b]8;;x\x07a", "日\x1b[1;80H本", "\x9b31m\xc2\x9b", "e\u0301\u0301\u0301\u0301\u0301", "👨‍👩‍👧❤️🇩🇪",
		"\x1b[99999999b", "\x1b[5;2r\x1b[99L\x1b[99M\x1bM", "\x1b[?69h\x1b[5;2s\x1bD", "\x1b#8\x1b(0\x1b[?1049h\x1b[?47l", "\x1b[8;1;1t\x1bc", "\x1bPq\x1b_G\x1b^x",
	} {
		f.Add([]byte(s), 80, 24)
	}
	f.Fuzz(func(t *testing.T, output []byte, cols, rows int) {
		s := screen.New(1+max(0, cols%100), 1+max(0, rows%40))
		defer s.Close()
		s.Write(output)
		check(t, s.Snapshot())
		s.Resize(1+max(0, rows%50), 1+max(0, cols%50))
		s.Write(output)
		check(t, s.Snapshot())
	})
}

// The emulator alone takes 45 seconds for the first of these. There is no time limit here but the test's own.
func TestNoShortSequenceHoldsTheProgramUp(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, s := range []string{"x\x1b[99999999b", "\x1b[99999999X", "\x1b[99999999I", "\x1b[99999999Z", "\x1b[2147483647b"} {
			check(t, show(t, 80, 24, strings.Repeat(s, 50)))
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("fifty short sequences take longer than a minute")
	}
}

// A daemon may have hundreds of screens.
func TestAScreenIsSmall(t *testing.T) {
	const count, most = 16, 2 << 20
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	var screens []*screen.Screen
	for range count {
		s := screen.New(120, 40)
		defer s.Close()
		screens = append(screens, s)
	}
	if n := (max(live(), before) - before) / count; n > most {
		t.Errorf("a screen of 120x40 takes %d bytes, want at most %d", n, most)
	}
	s := screens[0]
	s.Write([]byte("\x1b]2;" + strings.Repeat("x", 1<<20) + "\x07after a title of a megabyte"))
	s.Write([]byte("\r\n\x1bP" + strings.Repeat("y", 1<<20) + "\x1b\\after a picture"))
	if got := s.Snapshot().Lines; !strings.HasPrefix(got[0], "after a title") || !strings.HasPrefix(got[1], "after a picture") {
		t.Errorf("after long sequences the screen shows %q", got[:2])
	}
}
