package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet/plain"
)

// cell is foreign text s as exactly w cells.
func cell(s string, w int) string {
	if w <= 0 {
		return ""
	}
	return pad(cut(s, w), w)
}

// tail is foreign text s as exactly w cells that keep its end, which is what tells paths and ids apart.
func tail(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if n := len(s) - most(w); n > 0 {
		s = strings.ToValidUTF8(s[n:], "")
	}
	s = plain.Clean(s, -1)
	if over := width(s) - w; over > 0 {
		s = ansi.TruncateLeft(s, over+1, "…")
	}
	return fit(s, w)
}

// clean is foreign text s as one printable line, a few screens long at most.
func clean(s string) string {
	const screens = 4096
	if len(s) <= screens && ascii(s) {
		return s
	}
	return plain.Clean(s[:min(len(s), screens)], -1)
}

// cut is foreign text s as at most w cells.
func cut(s string, w int) string {
	w = max(w, 0)
	if len(s) <= w && ascii(s) {
		return s
	}
	return plain.Clean(s[:min(len(s), most(w))], w)
}

// width is how many cells s takes. Most text is plain ASCII, where that is its length.
func width(s string) int {
	if ascii(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// ascii reports whether s is printable ASCII only.
func ascii(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// most is how many bytes of a text are looked at to fill w cells. Whoever writes a megabyte into a branch name must not
// be able to slow the console down; escapes and marks that take more room than this cost the text its end.
func most(w int) int { return 16*w + 256 }

// pad fills s with spaces to w cells. It does not cut.
func pad(s string, w int) string {
	if n := w - width(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// fit is s, which may be styled, as exactly w cells.
func fit(s string, w int) string {
	if w <= 0 {
		return ""
	}
	n := width(s)
	switch {
	case n > w:
		// A wide character on the edge leaves a cell over.
		return pad(ansi.Truncate(s, w, "…"), w)
	case n < w:
		return s + strings.Repeat(" ", w-n)
	}
	return s
}

// block is lines as exactly h lines of w cells.
func block(lines []string, w, h int) []string {
	out := make([]string, max(h, 0))
	for i := range out {
		if i < len(lines) {
			out[i] = fit(lines[i], w)
		} else {
			out[i] = strings.Repeat(" ", max(w, 0))
		}
	}
	return out
}

// spread is left and right as exactly w cells with the space between them. What does not fit is cut from left.
func spread(left, right string, w int) string {
	rw := width(right)
	if rw+1 >= w {
		return fit(left, w)
	}
	return fit(left, w-rw-1) + " " + right
}

// wrap is foreign text s as lines of at most w cells.
func wrap(s string, w int) []string {
	if w <= 0 {
		return nil
	}
	return strings.Split(ansi.Wrap(clean(s), w, " /·"), "\n")
}

// screenLine is one line of an agent's terminal as exactly w cells. The line was made safe where it was made; a line
// that holds anything but colours all the same is stripped to its text, for it would reach the operator's terminal.
func screenLine(s string, w int) string {
	if strings.ContainsRune(s, ansi.ESC) {
		if !onlyColours(s) {
			return cell(s, w)
		}
		return pad(ansi.Truncate(s, w, ""), w) + ansi.ResetStyle
	}
	return pad(ansi.Truncate(clean(s), w, ""), w)
}

// onlyColours reports whether s consists of printable text and SGR sequences.
func onlyColours(s string) bool {
	for len(s) > 0 {
		i := strings.IndexByte(s, ansi.ESC)
		if i < 0 {
			i = len(s)
		}
		if text := s[:i]; plain.Text(text) != text {
			return false
		}
		if s = s[i:]; s == "" {
			break
		}
		if len(s) < 3 || s[1] != '[' {
			return false
		}
		end := 2
		for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == ';' || s[end] == ':') {
			end++
		}
		if end == len(s) || s[end] != 'm' {
			return false
		}
		s = s[end+1:]
	}
	return true
}

// countdown is what is left of a grace: "1:12", "0:05", "1h02m". A deadline that has passed is "0:00".
func countdown(d time.Duration) string {
	// Rounding up keeps "0:00" for what is over.
	s := int64((max(d, 0) + time.Second - 1) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// span is how long something has lasted, to the minute, so that an idle screen stays as it is: "<1m", "12m", "2h14m", "3d4h".
func span(d time.Duration) string {
	m := int64(max(d, 0) / time.Minute)
	switch {
	case m < 1:
		return "<1m"
	case m < 60:
		return fmt.Sprintf("%dm", m)
	case m < 24*60:
		return fmt.Sprintf("%dh%02dm", m/60, m%60)
	}
	return fmt.Sprintf("%dd%dh", m/(24*60), m/60%24)
}

// seconds is a short wait or age: "0.4 s", "1.2 s", "42 s", "3m".
func seconds(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return span(d)
}

// plural is "1 tree" or "3 trees".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
