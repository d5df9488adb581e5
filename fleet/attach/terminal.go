package attach

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"fleetdeck/fleet/screen"
)

const (
	// Autowrap is off while painting, so that a full line stays one.
	enterScreen = "\x1b[?1049h\x1b[?7l\x1b[m\x1b[2J\x1b[H"
	leaveScreen = "\x1b[?2026l\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// terminal is the operator's, while it is taken over.
type terminal struct {
	in, out *os.File
	old     *term.State
	modes   screen.Modes // that were passed on
}

// openTerminal takes over the terminal.
func openTerminal(in, out *os.File) (*terminal, error) {
	if !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, errors.New("attach: standard input and output must be a terminal")
	}
	old, err := term.GetState(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	t := &terminal{in: in, out: out, old: old}
	if err := t.enter(); err != nil {
		return nil, errors.Join(err, t.restore())
	}
	return t, nil
}

// enter makes the terminal raw and shows an empty alternate screen.
func (t *terminal) enter() error {
	if _, err := term.MakeRaw(int(t.in.Fd())); err != nil {
		return fmt.Errorf("make the terminal raw: %w", err)
	}
	modes := t.modes
	t.modes = screen.Modes{}
	if err := t.write([]byte(enterScreen)); err != nil {
		return err
	}
	return t.setModes(modes)
}

// restore gives the terminal back as it was.
func (t *terminal) restore() error {
	err := t.setModes(screen.Modes{})
	err = errors.Join(err, t.write([]byte(leaveScreen)))
	if rerr := term.Restore(int(t.in.Fd()), t.old); rerr != nil {
		err = errors.Join(err, fmt.Errorf("restore the terminal: %w", rerr))
	}
	return err
}

func (t *terminal) write(p []byte) error {
	_, err := t.out.Write(p)
	return err
}

// setModes passes on the modes that concern what is typed, and no other.
func (t *terminal) setModes(want screen.Modes) error {
	var b strings.Builder
	set := func(on, was bool, enable, disable string) {
		switch {
		case on && !was:
			b.WriteString(enable)
		case !on && was:
			b.WriteString(disable)
		}
	}
	private := func(on, was bool, number int) {
		set(on, was, fmt.Sprintf("\x1b[?%dh", number), fmt.Sprintf("\x1b[?%dl", number))
	}
	was := t.modes
	private(want.AppCursorKeys, was.AppCursorKeys, 1)
	set(want.AppKeypad, was.AppKeypad, "\x1b=", "\x1b>")
	private(want.BracketedPaste, was.BracketedPaste, 2004)
	private(want.FocusEvents, was.FocusEvents, 1004)
	private(want.MouseSGR, was.MouseSGR, 1006)
	private(want.MouseX10, was.MouseX10, 9)
	private(want.MouseNormal, was.MouseNormal, 1000)
	private(want.MouseButton, was.MouseButton, 1002)
	private(want.MouseAny, was.MouseAny, 1003)
	t.modes = want
	if b.Len() == 0 {
		return nil
	}
	return t.write([]byte(b.String()))
}
