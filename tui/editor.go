package tui

import (
	"strings"
	"unicode"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet/plain"
)

// editor is a text that is typed: one line, or several where it may be. It is what is before the cursor and what is
// after it, so that no position can lie outside the text or within a character.
//
// It has no clipboard of its own: a terminal's paste arrives as a message, and asking for more would start processes.
type editor struct {
	before, after string
	lines         bool   // it may have more than one line
	hint          string // shown while it is empty
}

// mostText bounds what can be typed or pasted, in bytes.
const mostText = 64 << 10

// The keys of an editor. They are those of readline, as far as they go.
var (
	editLeft      = bind("←", "left", "left", "ctrl+b")
	editRight     = bind("→", "right", "right", "ctrl+f")
	editWordLeft  = bind("alt+←", "word left", "alt+left", "ctrl+left", "alt+b")
	editWordRight = bind("alt+→", "word right", "alt+right", "ctrl+right", "alt+f")
	editUp        = bind("↑", "line up", "up")
	editDown      = bind("↓", "line down", "down")
	editHome      = bind("home", "start of the line", "home", "ctrl+a")
	editEnd       = bind("end", "end of the line", "end", "ctrl+e")
	editBack      = bind("backspace", "delete before", "backspace", "ctrl+h")
	editDelete    = bind("delete", "delete after", "delete", "ctrl+d")
	editBackWord  = bind("ctrl+w", "delete the word before", "ctrl+w", "alt+backspace")
	editBackLine  = bind("ctrl+u", "delete to the start of the line", "ctrl+u")
	editKillLine  = bind("ctrl+k", "delete to the end of the line", "ctrl+k")
)

func (e *editor) value() string { return e.before + e.after }

// set replaces the text and puts the cursor at its end.
func (e *editor) set(s string) { e.before, e.after = "", ""; e.insert(s) }

// insert puts s in at the cursor, without what cannot be printed.
func (e *editor) insert(s string) {
	s = ansi.Strip(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s))
	parts := strings.Split(s, "\n")
	for i, p := range parts {
		parts[i] = plain.Text(p)
	}
	sep := " "
	if e.lines {
		sep = "\n"
	}
	s = strings.Join(parts, sep)
	if room := mostText - len(e.before) - len(e.after); len(s) > room {
		s = strings.ToValidUTF8(s[:max(room, 0)], "")
	}
	e.before += s
}

// update takes a key or a paste.
func (e *editor) update(msg tea.Msg) {
	switch msg := msg.(type) {
	case tea.PasteMsg:
		e.insert(msg.Content)
	case tea.KeyPressMsg:
		e.press(msg)
	}
}

func (e *editor) press(k tea.KeyPressMsg) {
	is := func(b key.Binding) bool { return key.Matches(k, b) }
	switch {
	case is(editLeft):
		e.to(len(e.before) - len(last(e.before)))
	case is(editRight):
		e.to(len(e.before) + len(first(e.after)))
	case is(editWordLeft):
		e.to(wordStart(e.before))
	case is(editWordRight):
		e.to(len(e.before) + wordEnd(e.after))
	case is(editHome):
		e.to(lineStart(e.before))
	case is(editEnd):
		e.to(len(e.before) + lineEnd(e.after))
	case is(editBack):
		e.before = e.before[:len(e.before)-len(last(e.before))]
	case is(editDelete):
		e.after = e.after[len(first(e.after)):]
	case is(editBackWord):
		e.before = e.before[:wordStart(e.before)]
	case is(editBackLine):
		e.before = e.before[:lineStart(e.before)]
	case is(editKillLine):
		e.after = e.after[lineEnd(e.after):]
	case e.lines && is(keyNewline):
		e.insert("\n")
	case e.lines && is(editUp):
		e.vertical(-1)
	case e.lines && is(editDown):
		e.vertical(1)
	case k.Text != "":
		e.insert(k.Text)
	}
}

// to puts the cursor at byte i of the text.
func (e *editor) to(i int) {
	s := e.value()
	i = max(min(i, len(s)), 0)
	e.before, e.after = s[:i], s[i:]
}

// vertical moves the cursor to the line above or below, as near to its column as can be.
func (e *editor) vertical(d int) {
	col := width(e.before[lineStart(e.before):])
	start := lineStart(e.before)
	if d < 0 {
		if start == 0 {
			e.to(0)
			return
		}
		start = lineStart(e.before[:start-1])
	} else {
		end := lineEnd(e.after)
		if end == len(e.after) {
			e.to(len(e.value()))
			return
		}
		start = len(e.before) + end + 1
	}
	rest := e.value()[start:]
	rest = rest[:lineEnd(rest)]
	e.to(start + len(ansi.Truncate(rest, col, "")))
}

// view is the text on h lines of w cells, scrolled so that the cursor is in sight. The cursor is drawn where focused.
func (e *editor) view(m *Model, w, h int, focused bool) []string {
	if w < 2 || h < 1 {
		return nil
	}
	if e.value() == "" {
		l := m.faint.of(cut(e.hint, w))
		if focused {
			l = m.cursor.of(" ") + m.faint.of(cut(e.hint, w-1))
		}
		return block([]string{l}, w, h)
	}
	var out []string
	at := 0 // the row of the cursor
	var row strings.Builder
	used := 0
	end := func() {
		out = append(out, row.String())
		row.Reset()
		used = 0
	}
	put := func(c string, under bool) {
		n := width(c)
		if used+n > w {
			end()
		}
		if under {
			at = len(out)
			c = m.cursor.of(c)
		}
		row.WriteString(c)
		used += n
	}
	for s := e.before; s != ""; {
		c := first(s)
		s = s[len(c):]
		if c == "\n" {
			end()
			continue
		}
		put(c, false)
	}
	under := focused
	for s := e.after; s != ""; {
		c := first(s)
		s = s[len(c):]
		if c == "\n" {
			if under {
				put(" ", true)
			}
			end()
		} else {
			put(c, under)
		}
		under = false
	}
	if under {
		put(" ", true)
	}
	end()
	top := max(min(at-h+1, len(out)-h), 0)
	return block(out[top:], w, h)
}

// first is the first character of s as people count them.
func first(s string) string {
	if s == "" {
		return ""
	}
	c, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	return c
}

// last is the last character of s.
func last(s string) string {
	// Characters are only found forwards; a line is as far back as one has to look.
	c := s[lineStart(s):]
	if c == "" {
		return s[max(len(s)-1, 0):] // the line break itself
	}
	for {
		n := first(c)
		if len(n) == len(c) {
			return c
		}
		c = c[len(n):]
	}
}

func lineStart(before string) int { return strings.LastIndexByte(before, '\n') + 1 }

func lineEnd(after string) int {
	if i := strings.IndexByte(after, '\n'); i >= 0 {
		return i
	}
	return len(after)
}

func wordStart(before string) int {
	s := strings.TrimRightFunc(before, unicode.IsSpace)
	return strings.LastIndexFunc(s, unicode.IsSpace) + 1
}

func wordEnd(after string) int {
	s := strings.TrimLeftFunc(after, unicode.IsSpace)
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		i = len(s)
	}
	return len(after) - len(s) + i
}
