package tui

import (
	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
)

// paint is a style as the sequence that starts it. The zero paint leaves text as it is.
type paint string

// of is s in the style.
func (p paint) of(s string) string {
	if p == "" || s == "" {
		return s
	}
	return string(p) + s + ansi.ResetStyle
}

// styles are the looks of the console by what they mean. They use the terminal's own 16 colours and its default
// foreground and background, so that they follow the operator's theme. A glyph and a word always stand beside a
// colour: without colours nothing is lost.
type styles struct {
	text, strong, faint paint
	accent, rule        paint // the focused pane's title; lines between panes
	brand, tab          paint // the program's name; the view that is shown
	selected            paint // the row under the cursor in the focused pane
	marked              paint // the row under the cursor elsewhere

	free, reserved, occupied, foreign paint
	working, waiting, done, gone      paint
	ok, warn, danger                  paint
	warnBar, dangerBar, infoBar       paint
	key, cursor                       paint

	dark, colour bool
}

// newStyles makes the styles for a dark or light background.
func newStyles(dark, colour bool) styles {
	pick := func(onDark, onLight ansi.BasicColor) ansi.Style {
		if !colour {
			return ansi.Style{}
		}
		if dark {
			return ansi.Style{}.ForegroundColor(onDark)
		}
		return ansi.Style{}.ForegroundColor(onLight)
	}
	p := func(s ansi.Style) paint {
		if len(s) == 0 {
			return ""
		}
		return paint(s.String())
	}
	red, yellow, green := pick(ansi.BrightRed, ansi.Red), pick(ansi.Yellow, ansi.Yellow), pick(ansi.Green, ansi.Green)
	cyan, magenta := pick(ansi.Cyan, ansi.Blue), pick(ansi.BrightMagenta, ansi.Magenta)
	s := styles{
		dark: dark, colour: colour,
		strong: p(ansi.Style{}.Bold()), faint: p(ansi.Style{}.Faint()),
		accent: p(cyan.Bold()), rule: p(ansi.Style{}.Faint()),
		brand: p(cyan.Bold()), tab: p(ansi.Style{}.Bold().Underline(true)),
		marked: p(ansi.Style{}.Bold()), selected: p(ansi.Style{}.Reverse(true)),
		free: "", reserved: p(yellow), occupied: p(green), foreign: p(magenta),
		working: p(green), waiting: p(yellow.Bold()), done: p(cyan), gone: p(ansi.Style{}.Faint()),
		ok: p(green), warn: p(yellow), danger: p(red.Bold()),
		warnBar: p(yellow.Bold().Reverse(true)), dangerBar: p(red.Bold().Reverse(true)), infoBar: p(ansi.Style{}.Bold()),
		key: p(cyan.Bold()), cursor: p(ansi.Style{}.Reverse(true)),
	}
	if colour {
		s.selected = p(ansi.Style{}.Bold().ForegroundColor(ansi.BrightWhite).BackgroundColor(ansi.Blue))
	}
	return s
}

// look is a state as people read it: glyph, word and style.
type look struct {
	glyph, word string
	paint       paint
}

// String is glyph and word in the style.
func (l look) String() string { return l.paint.of(l.glyph + " " + l.word) }

// occupancy is the look of a tree.
func (s *styles) occupancy(o fleet.Occupied) look {
	switch o {
	case fleet.Free:
		return look{"○", "free", s.free}
	case fleet.Reserved:
		return look{"◐", "reserved", s.reserved}
	case fleet.Taken:
		return look{"●", "occupied", s.occupied}
	case fleet.Foreign:
		return look{"◆", "foreign", s.foreign}
	}
	return look{"?", cut(string(o), 9), s.faint}
}

// member is the look of a member's state.
func (s *styles) member(st fleet.State) look {
	switch st {
	case fleet.StateWorking:
		return look{"●", "working", s.working}
	case fleet.StateIdle:
		return look{"○", "idle", s.text}
	case fleet.StateWaiting:
		return look{"!", "waiting", s.waiting}
	case fleet.StateDone:
		return look{"✓", "done", s.done}
	case fleet.StateExited:
		return look{"×", "exited", s.gone}
	case fleet.StateUnknown, "":
		return look{"?", "unknown", s.faint}
	}
	return look{"?", cut(string(st), 9), s.faint}
}

// slot is the look of a slot.
func (s *styles) slot(state string) look {
	switch state {
	case fleet.SlotFree:
		return look{"○", "free", s.free}
	case fleet.SlotReserved:
		return look{"◐", "reserved", s.reserved}
	case fleet.SlotBound:
		return look{"●", "bound", s.occupied}
	}
	return look{"?", cut(state, 8), s.faint}
}

// verdict is the look of a reservation.
func (s *styles) verdict(v fleet.Verdict) look {
	switch v {
	case fleet.VerdictPending:
		return look{"◐", "pending", s.reserved}
	case fleet.VerdictListed:
		return look{"✓", "listed", s.ok}
	case fleet.VerdictExpired:
		return look{"×", "expired", s.gone}
	case fleet.VerdictInvalid:
		return look{"!", "invalid", s.danger}
	}
	return look{"?", cut(string(v), 9), s.faint}
}

// level is the look of an event.
func (s *styles) level(l string) look {
	switch l {
	case levelAlarm:
		return look{"!", "alarm", s.danger}
	case levelWarn:
		return look{"▲", "warn", s.warn}
	}
	return look{"·", "info", s.faint}
}
