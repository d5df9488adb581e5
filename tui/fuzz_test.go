package tui

import (
	"fmt"
	"testing"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// anyKeys are keys that no rune stands for.
var anyKeys = []tea.KeyPressMsg{
	{Code: tea.KeyEnter}, {Code: tea.KeyEscape}, {Code: tea.KeyTab}, {Code: tea.KeyTab, Mod: tea.ModShift}, {Code: tea.KeyUp}, {Code: tea.KeyDown},
	{Code: tea.KeyLeft}, {Code: tea.KeyRight}, {Code: tea.KeyHome}, {Code: tea.KeyEnd}, {Code: tea.KeyBackspace}, {Code: tea.KeyDelete},
	{Code: tea.KeyPgUp}, {Code: tea.KeyPgDown}, {Code: tea.KeySpace, Text: " "}, {Code: tea.KeyEnter, Mod: tea.ModAlt}, {Code: tea.KeyF1},
}

// FuzzNoInputBreaksTheConsole feeds a console with keys, sizes, clicks, pastes and news of the fleet in any order: it goes on, and each of
// its frames is inside its screen and safe to draw.
func FuzzNoInputBreaksTheConsole(f *testing.F) {
	for _, s := range []string{
		"?jjks\rX y", "/api\x1b[A", "1234567890", "\x01\x18\x05sFix\r", "\x02\x03\x03\x04\x04\x04", "P\x05\x06R\x05\x07m hello\r", "\x00\x00\x00\x1f\x1f\x1fs", "::\x10\x11\x12\x13\x14\x15\x16\x17",
	} {
		f.Add([]byte(s))
	}
	snaps := []fleet.Snapshot{example(instant(0)), hostile(), {At: instant(0)}}
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 200 {
			return // more of the same
		}
		m := still(example(instant(0)), 100, 30, Options{Home: home, Config: Config{Mouse: true}})
		w, h := 100, 30
		next := func() (b byte) {
			if len(input) > 0 {
				b, input = input[0], input[1:]
			}
			return b
		}
		for step := 0; len(input) > 0; step++ {
			b := next()
			var msg tea.Msg
			switch {
			case b >= ' ' && b < 0x7f:
				msg = tea.KeyPressMsg{Code: rune(b), Text: string(rune(b))}
			case b == 0:
				w, h = int(next())%160, int(next())%60
				msg = tea.WindowSizeMsg{Width: w, Height: h}
			case b == 1:
				msg = tea.PasteMsg{Content: evil[:int(next())%len(evil)]}
			case b == 2:
				s := snaps[int(next())%len(snaps)]
				s.Rev = m.serial + uint64(step) + 2
				msg = snapshotMsg{gen: m.polling.gen, ix: newIndex(s)}
			case b == 3:
				msg = screenMsg{gen: m.screen.gen, screen: fleet.Screen{Lines: []string{evil}, Styled: []string{evil}, Title: evil, Rev: uint64(step), Cursor: fleet.Cursor{X: int(next()) - 9, Y: int(next()) - 9, Visible: true}}}
			case b == 4:
				msg = tea.MouseClickMsg(mouseAt(int(next())-9, int(next())-9, tea.MouseLeft))
			case b == 5:
				msg = tea.MouseWheelMsg(mouseAt(int(next()), int(next()), tea.MouseWheelDown))
			case b == 6:
				msg = tickMsg{}
			case b < ' ':
				msg = tea.KeyPressMsg{Code: rune('a' + b - 1), Mod: tea.ModCtrl}
			case b < 0xc0:
				msg = anyKeys[int(b)%len(anyKeys)]
			default:
				msg = tea.KeyPressMsg{Code: rune(b) << 8, Text: string(rune(b)<<8) + "\u0301\u202e"}
			}
			m.Update(msg)
			what := fmt.Sprintf("step %d, %#v", step, msg)
			fits(t, m, w, h, what)
			safe(t, m, what)
		}
	})
}
