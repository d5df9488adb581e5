package attach

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
)

func TestTheDetachKeyIsFound(t *testing.T) {
	const key = "\x1d"
	tests := []struct {
		name  string
		reads []string
		want  string // passed on
		found bool
	}{
		{"alone", []string{key}, "", true},
		{"at the end", []string{"abc" + key}, "abc", true},
		{"in the middle", []string{"abc" + key + "def"}, "abc", true},
		{"absent", []string{"abc\x1b[A", "def"}, "abc\x1b[Adef", false},
		{"inside a paste", []string{pasteBegin + "a" + key + "b" + pasteEnd}, pasteBegin + "a" + key + "b" + pasteEnd, false},
		{"after a paste", []string{pasteBegin + "a" + pasteEnd + key}, pasteBegin + "a" + pasteEnd, true},
		{"the marks are split", []string{"\x1b[2", "00~a", key, "b\x1b[20", "1~", "c" + key}, pasteBegin + "a" + key + "b" + pasteEnd + "c", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := keys{detach: DefaultDetach}
			var got strings.Builder
			found := false
			for _, read := range tt.reads {
				var p []byte
				p, found = k.take([]byte(read), time.Unix(1000, 0))
				got.Write(p)
			}
			if got.String() != tt.want || found != tt.found {
				t.Errorf("passed %q, found %v, want %q, %v", got.String(), found, tt.want, tt.found)
			}
		})
	}
}

func TestAPasteWithoutEndDoesNotTakeTheDetachKey(t *testing.T) {
	k := keys{detach: DefaultDetach}
	at := time.Unix(1000, 0)
	k.take([]byte(pasteBegin+"lost"), at)
	if _, found := k.take([]byte{DefaultDetach}, at.Add(2*pasteGap)); !found {
		t.Error("the detach key does nothing, seconds after a paste whose end was lost")
	}
}

func TestOnlyChangedLinesArePainted(t *testing.T) {
	p := painter{bar: bar{name: "api", state: "running", key: "ctrl-]"}}
	p.setSize(20, 4)
	p.shot = fleet.Screen{Cols: 20, Rows: 3, Styled: []string{"one", "two", "three"}}
	first := string(p.paint())
	for _, text := range []string{"one", "two", "three", "detaches"} {
		if !strings.Contains(first, text) {
			t.Errorf("the first painting lacks %q", text)
		}
	}
	p.shot.Styled = []string{"one", "TWO", "three"}
	second := string(p.paint())
	if !strings.Contains(second, "TWO") || strings.Contains(second, "one") || strings.Contains(second, "detaches") {
		t.Errorf("the second painting is %q, want the changed line only", second)
	}
	p.setSize(20, 5)
	if third := string(p.paint()); !strings.Contains(third, "one") || !strings.Contains(third, "detaches") {
		t.Errorf("after a new size it painted %q, want everything", third)
	}
}

func TestPaintingStaysInTheWindow(t *testing.T) {
	styled := make([]string, 40)
	for i := range styled {
		styled[i] = "\x1b[31m" + strings.Repeat("日本", 60) + "\x1b[m"
	}
	for cols := range 30 {
		for rows := range 8 {
			p := painter{bar: bar{name: strings.Repeat("n", 80), state: "running", key: "ctrl-]"}}
			p.setSize(cols+1, rows+1)
			p.shot = fleet.Screen{Cols: 120, Rows: 40, Styled: styled, Cursor: fleet.Cursor{X: 3, Y: 39, Visible: true}}
			p.paint()
			if len(p.drawn) != rows+1 {
				t.Fatalf("%d lines in a window of %d", len(p.drawn), rows+1)
			}
			for y, line := range p.drawn {
				if w := ansi.StringWidth(line); w > cols+1 {
					t.Fatalf("line %d is %d cells wide in a window of %d: %q", y, w, cols+1, line)
				}
			}
		}
	}
}
