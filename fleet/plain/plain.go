// Package plain makes foreign text safe to draw.
//
// What an agent prints, what a file is called and what an error quotes are all written by others. [Clean] turns any
// of it into one line that holds printable characters only, so that it can neither move the cursor, nor change the
// terminal, nor reorder or hide what stands beside it.
//
// It is a leaf that everything may use.
package plain

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// maxMarks is how many combining marks one character keeps: enough for any script, too few to paint over other lines.
const maxMarks = 3

// Clean gives s as one printable line at most width cells wide, ending in "…" where it was cut. A negative width
// means no limit.
//
// Escape sequences are removed with their contents, as are control, formatting, zero-width and direction characters.
// So are bytes that are not UTF-8. A line break becomes "⏎", a tab a space.
func Clean(s string, width int) string {
	s = Text(ansi.Strip(lines.Replace(s)))
	if width < 0 {
		return s
	}
	return ansi.Truncate(s, width, "…")
}

var lines = strings.NewReplacer("\r\n", "⏎", "\n", "⏎", "\r", "⏎", "\u2028", "⏎", "\u2029", "⏎", "\u0085", "⏎")

// Text removes from s every character that [Printable] does not let pass, and keeps the rest as it stands. A tab
// becomes a space. It knows nothing of escape sequences: without its ESC the rest of one stays as text.
func Text(s string) string {
	if simple(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	marks := 0
	for _, r := range s {
		switch {
		case r == '\t':
			r = ' '
		case !Printable(r):
			continue
		case unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks > maxMarks {
				continue
			}
			b.WriteRune(r)
			continue
		}
		marks = 0
		b.WriteRune(r)
	}
	return b.String()
}

// Printable reports whether r may be drawn: it is no control character, and it shows where it stands.
func Printable(r rune) bool {
	// Cf holds the direction overrides, the zero-width ones and the invisible tags.
	return r >= ' ' && !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs, unicode.Zl, unicode.Zp)
}

// simple reports whether s is plain ASCII, as most text is.
func simple(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
