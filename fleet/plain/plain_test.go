package plain_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet/plain"
)

func TestClean(t *testing.T) {
	tests := []struct {
		name, in string
		width    int
		want     string
	}{
		{"plain", "fix the tests", 20, "fix the tests"},
		{"no limit", strings.Repeat("x", 500), -1, strings.Repeat("x", 500)},
		{"no room", "x", 0, ""},
		{"cut", "abcdefgh", 5, "abcd…"},
		{"wide characters are cut by cells", "日本語テキスト", 5, "日本…"},
		{"colour", "\x1b[31mred\x1b[0m", 20, "red"},
		{"clear and home", "a\x1b[2J\x1b[Hb", 20, "ab"},
		{"title", "a\x1b]0;owned\x07b", 20, "ab"},
		{"clipboard", "a\x1b]52;c;ZXZpbA==\x1b\\b", 20, "ab"},
		{"device control", "a\x1bPq#0\x1b\\b", 20, "ab"},
		{"C1 bytes", "a\x9b31mb", 20, "ab"},
		{"C1 characters", "a\u009bb\u0090c", 20, "abc"},
		{"lone escape at the end", "a\x1b", 20, "a"},
		{"controls", "a\x00\x07\x08\x7fb", 20, "ab"},
		{"line breaks", "a\nb\r\nc\rd\u2028e", 20, "a⏎b⏎c⏎d⏎e"},
		{"tab", "a\tb", 20, "a b"},
		{"direction override", "abc\u202Etxt.exe\u2066x\u200f", 20, "abctxt.exex"},
		{"zero width", "a\u200bb\u2060c\ufeffd\u200de", 20, "abcde"},
		{"tag characters", "a\U000E0041\U000E007Fb", 20, "ab"},
		{"stacked marks", "a" + strings.Repeat("\u0301", 50) + "b", 20, "a\u0301\u0301\u0301b"},
		{"not UTF-8", "a\xffb", 20, "ab"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := plain.Clean(tt.in, tt.width); got != tt.want {
				t.Errorf("Clean(%q, %d) = %q, want %q", tt.in, tt.width, got, tt.want)
			}
		})
	}
}

func FuzzCleanIsOnePrintableLineWithinItsWidth(f *testing.F) {
	for _, s := range []string{"a\x1b[31m", "\x1b]8;;http://x\x07link", "日本\u202e", "\x9b\xc2\x9b", "e\u0301\u20dd", "\x1b\x1b[\x18m"} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, in string, width int) {
		width = max(0, width%200)
		got := plain.Clean(in, width)
		if w := ansi.StringWidth(got); w > width {
			t.Errorf("Clean(%q, %d) = %q, %d cells wide", in, width, got, w)
		}
		if !utf8.ValidString(got) {
			t.Errorf("Clean(%q, %d) = %q: not UTF-8", in, width, got)
		}
		for _, r := range got {
			if !plain.Printable(r) {
				t.Errorf("Clean(%q, %d) = %q holds %U", in, width, got, r)
			}
		}
	})
}
