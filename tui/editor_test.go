package tui

import (
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

func TestEditor(t *testing.T) {
	tests := []struct {
		name  string
		lines bool
		text  string
		keys  []string
		want  string // with | for the cursor
	}{
		{"types at the end", false, "ab", []string{"c"}, "abc|"},
		{"space is text", false, "a", []string{"space", "b"}, "a b|"},
		{"left and insert", false, "ab", []string{"left", "x"}, "ax|b"},
		{"left at the start stays", false, "a", []string{"left", "left", "x"}, "x|a"},
		{"backspace", false, "abc", []string{"backspace"}, "ab|"},
		{"backspace takes a whole character", false, "a🇩🇪", []string{"backspace"}, "a|"},
		{"left goes over a combined character", false, "xe\u0301", []string{"left", "y"}, "xy|e\u0301"},
		{"delete", false, "abc", []string{"home", "delete"}, "|bc"},
		{"word back", false, "one two  ", []string{"ctrl+w"}, "one |"},
		{"line back", true, "one\ntwo", []string{"ctrl+u"}, "one\n|"},
		{"line forward", true, "one\ntwo", []string{"up", "home", "ctrl+k"}, "|\ntwo"},
		{"home is of the line", true, "one\ntwo", []string{"home", "x"}, "one\nx|two"},
		{"new line", true, "one", []string{"alt+enter", "x"}, "one\nx|"},
		{"no new line in one line", false, "one", []string{"alt+enter", "x"}, "onex|"},
		{"backspace joins lines", true, "one\n", []string{"backspace"}, "one|"},
		{"up keeps the column", true, "abcd\nef\nghij", []string{"up", "up", "x"}, "abx|cd\nef\nghij"},
		{"up from the first goes to the start", true, "abc", []string{"up"}, "|abc"},
		{"down", true, "abc\nde", []string{"home", "up", "right", "down", "x"}, "abc\ndx|e"},
		{"ctrl+d in a text deletes a character only", false, "abc", []string{"home", "ctrl+d"}, "|bc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := editor{lines: tt.lines}
			e.set(tt.text)
			for _, k := range tt.keys {
				e.update(keyOf(k))
			}
			if got := e.before + "|" + e.after; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEditorTakesNoControlCharacters(t *testing.T) {
	for _, lines := range []bool{false, true} {
		e := editor{lines: lines}
		e.update(tea.PasteMsg{Content: evil})
		for _, l := range strings.Split(e.value(), "\n") {
			if !onlyColours(l) || strings.ContainsRune(l, ansi.ESC) {
				t.Errorf("lines = %v: %q", lines, l)
			}
		}
		if n := strings.Count(e.value(), "\n"); lines != (n == 1) {
			t.Errorf("lines = %v: %d line breaks", lines, n)
		}
	}
}

func TestEditorHoldsNoMoreThanItMay(t *testing.T) {
	var e editor
	for range 3 {
		e.insert(strings.Repeat("漢", mostText/4))
	}
	if len(e.value()) > mostText {
		t.Errorf("it holds %d bytes", len(e.value()))
	}
}

// drawnCursor is a character in reverse.
var drawnCursor = regexp.MustCompile("\x1b\\[7m[^\x1b]+\x1b\\[m")

func FuzzEditorCursorIsAlwaysInSight(f *testing.F) {
	f.Add("one\ntwo 漢字 three", "lluudd", 7, 2)
	f.Add("123456789", "", 7, 0)
	f.Fuzz(func(t *testing.T, text, moves string, w, h int) {
		w, h = 2+w&63, 1+h&7
		if len(text) > 2000 || len(moves) > 200 {
			t.Skip()
		}
		m := &Model{styles: newStyles("", true, false)}
		e := editor{lines: true}
		e.set(text)
		whole := e.value()
		keys := map[rune]string{'l': "left", 'r': "right", 'u': "up", 'd': "down", 'h': "home", 'e': "end"}
		for _, r := range moves {
			if k, ok := keys[r]; ok {
				e.update(keyOf(k))
			}
		}
		if e.value() != whole {
			t.Fatalf("moving changed %q into %q", whole, e.value())
		}
		view := e.view(m, w, h, true)
		if len(view) != h {
			t.Fatalf("%d lines, want %d", len(view), h)
		}
		for _, l := range view {
			if n := ansi.StringWidth(l); n != w {
				t.Fatalf("%q is %d cells wide, want %d", l, n, w)
			}
		}
		if !drawnCursor.MatchString(strings.Join(view, "")) {
			t.Fatalf("the cursor is not in sight: %q", view)
		}
	})
}
