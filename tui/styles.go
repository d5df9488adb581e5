package tui

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
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
	ok, warn, danger, removed         paint
	warnBar, dangerBar, infoBar       paint
	key, cursor                       paint

	dark, colour bool
}

// newStyles makes the styles of a theme for a dark or light background. "dark" and "light" settle what the background
// is, "plain" does without colours, and "colour-blind" tells states apart by blue and orange instead of red and green.
func newStyles(theme string, dark, colour bool) styles {
	switch theme {
	case "dark", "light":
		dark = theme == "dark"
	case "plain":
		colour = false
	}
	pick := lipgloss.LightDark(dark)
	style := lipgloss.NewStyle()
	in := func(onLight, onDark color.Color) lipgloss.Style {
		if !colour {
			return style
		}
		return style.Foreground(pick(onLight, onDark))
	}
	red, green, yellow := in(lipgloss.Red, lipgloss.BrightRed), in(lipgloss.Green, lipgloss.Green), in(lipgloss.Yellow, lipgloss.Yellow)
	cyan, magenta := in(lipgloss.Blue, lipgloss.Cyan), in(lipgloss.Magenta, lipgloss.BrightMagenta)
	if theme == "colour-blind" {
		red, green = in(lipgloss.Magenta, lipgloss.BrightMagenta), in(lipgloss.Blue, lipgloss.BrightBlue)
		magenta = in(lipgloss.Cyan, lipgloss.Cyan)
	}
	bold, faint, reverse := style.Bold(true), style.Faint(true), style.Reverse(true)
	s := styles{
		dark: dark, colour: colour,
		strong: painted(bold), faint: painted(faint),
		accent: painted(cyan.Bold(true)), rule: painted(faint),
		brand: painted(cyan.Bold(true)), tab: painted(bold.Underline(true)),
		marked: painted(bold), selected: painted(reverse),
		free: "", reserved: painted(yellow), occupied: painted(green), foreign: painted(magenta),
		working: painted(green), waiting: painted(yellow.Bold(true)), done: painted(cyan), gone: painted(faint),
		ok: painted(green), warn: painted(yellow), danger: painted(red.Bold(true)), removed: painted(red),
		warnBar: painted(yellow.Bold(true).Reverse(true)), dangerBar: painted(red.Bold(true).Reverse(true)), infoBar: painted(bold),
		key: painted(cyan.Bold(true)), cursor: painted(reverse),
	}
	if colour {
		s.selected = painted(bold.Foreground(lipgloss.BrightWhite).Background(lipgloss.Blue))
	}
	return s
}

// painted is the sequence that starts a style. Rows are made of many short pieces: rendering each through a style of its
// own costs more than all the rest of a frame.
func painted(s lipgloss.Style) paint {
	start, _, _ := strings.Cut(s.UnderlineSpaces(false).Render("x"), "x")
	return paint(start)
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
	case fleet.Unsure:
		return look{"?", "unknown", s.warn}
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
	case fleet.StateLost:
		return look{"◇", "lost", s.warn}
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
	case slotUnsure:
		return look{"?", slotUnsure, s.warn}
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
