// Package screen shows an agent's terminal as somebody would see it.
//
// A [Screen] is an emulator fed with the agent's output. A [Mirror] keeps one up to date while somebody looks, from
// whatever holds the terminal. What agents print is hostile: a [fleet.Screen] made here holds printable text and
// colours only, so that it can be drawn on the operator's own terminal, and no output, however odd, stops the program
// or holds it up.
//
// It depends on the domain, on package launch for the terminal to mirror, and on the emulator
// github.com/charmbracelet/x/vt.
package screen

import (
	"io"
	"reflect"
	"sync"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"

	"fleetdeck/fleet"
	"fleetdeck/fleet/plain"
)

// maxTitle bounds a title, in cells.
const maxTitle = 200

// Screen is an emulated terminal. Its methods may be called at the same time.
//
// It answers no question of the agent's: whoever holds the terminal does.
type Screen struct {
	mu         sync.Mutex // guards all below, and the emulator, which has no lock of its own
	em         *vt.Emulator
	cols, rows int
	title      string
	modes      Modes
	titles     titles
}

// Modes are the terminal modes that concern whoever types into the terminal or draws it.
type Modes struct {
	AppCursorKeys  bool
	AppKeypad      bool
	BracketedPaste bool
	FocusEvents    bool
	MouseX10       bool // presses only
	MouseNormal    bool // presses and releases
	MouseButton    bool // and motion while a button is down
	MouseAny       bool // and all motion
	MouseSGR       bool // reported in decimal
	AltScreen      bool
	CursorHidden   bool
	// Sync says that the agent is in the middle of an update that it wants to be seen as a whole.
	Sync bool
}

// mode is the place of the mode with this number in m, or nil for one that concerns nobody.
func (m *Modes) mode(number int) *bool {
	switch number {
	case 1:
		return &m.AppCursorKeys
	case 9:
		return &m.MouseX10
	case 25:
		return &m.CursorHidden
	case 47, 1047, 1049:
		return &m.AltScreen
	case 66:
		return &m.AppKeypad
	case 1000:
		return &m.MouseNormal
	case 1002:
		return &m.MouseButton
	case 1003:
		return &m.MouseAny
	case 1004:
		return &m.FocusEvents
	case 1006:
		return &m.MouseSGR
	case 2004:
		return &m.BracketedPaste
	case 2026:
		return &m.Sync
	}
	return nil
}

// New makes an empty screen. It must be closed.
func New(cols, rows int) *Screen {
	s := &Screen{}
	s.reset(max(1, cols), max(1, rows))
	return s
}

// reset puts a fresh emulator in place. s.mu is held, or s is not shared yet.
func (s *Screen) reset(cols, rows int) {
	if s.em != nil {
		s.release()
	}
	s.cols, s.rows, s.title, s.modes = cols, rows, "", Modes{}
	em := vt.NewEmulator(cols, rows)
	em.SetScrollbackSize(1) // 0 would mean the default of 10,000 lines
	em.SetCallbacks(vt.Callbacks{
		EnableMode:  func(mode ansi.Mode) { s.setMode(mode, true) },
		DisableMode: func(mode ansi.Mode) { s.setMode(mode, false) },
	})
	s.limit(em)
	slim(em)
	// The emulator's own answers would block it if nobody took them.
	go io.Copy(io.Discard, em)
	s.em = em
}

// longest is how much of a string sequence, such as a title, is kept. What is longer is cut.
const longest = 16 << 10

// slim takes the 4 MB that an emulator sets aside for one string sequence, four fifths of what it is. It does not show its
// parser; where it keeps none by that name it stays as large as it is.
func slim(em *vt.Emulator) {
	f := reflect.ValueOf(em).Elem().FieldByName("parser")
	if f.IsValid() && f.Type() == reflect.TypeFor[*ansi.Parser]() && !f.IsNil() {
		(*ansi.Parser)(f.UnsafePointer()).SetDataSize(longest)
	}
}

// limit bounds what one short sequence can make the emulator do: it obeys "repeat 99999999 times" to the letter.
func (s *Screen) limit(em *vt.Emulator) {
	for _, final := range []int{'b', 'X', 'I', 'Z'} {
		em.RegisterCsiHandler(final, func(params ansi.Params) bool {
			if len(params) > 0 && params[0].Param(1) > s.cols {
				params[0] = ansi.Param(s.cols)
			}
			return false // on to the emulator's handler, with what is now in params
		})
	}
}

func (s *Screen) setMode(mode ansi.Mode, on bool) {
	dec, ok := mode.(ansi.DECMode)
	if !ok {
		return
	}
	if place := s.modes.mode(dec.Mode()); place != nil {
		*place = on != (place == &s.modes.CursorHidden)
	}
}

// writeUnit is how much is parsed under the lock at once: some milliseconds' worth.
const writeUnit = 4 << 10

// Write feeds the screen with output of the agent. It never fails.
func (s *Screen) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), writeUnit)
		s.write(p[:k])
		p = p[k:]
	}
	return n, nil
}

func (s *Screen) write(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		// One agent's output must not take everybody's daemon down. The agent's next repaint fills the new screen.
		if recover() != nil {
			s.reset(s.cols, s.rows)
		}
	}()
	s.em.Write(s.titles.filter(p, func(title string) { s.title = title }))
}

// Resize gives the screen a new size. What is on it stays where it is; the agent's repaint does the rest.
func (s *Screen) Resize(cols, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cols, rows = max(1, cols), max(1, rows)
	if cols == s.cols && rows == s.rows {
		return
	}
	s.cols, s.rows = cols, rows
	s.em.Resize(cols, rows)
}

// Cursor gives the place of the cursor, from 0,0.
func (s *Screen) Cursor() (x, y int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor()
}

func (s *Screen) cursor() (x, y int) {
	pos := s.em.CursorPosition()
	return max(0, min(pos.X, s.cols-1)), max(0, min(pos.Y, s.rows-1))
}

// Modes gives the modes that are set.
func (s *Screen) Modes() Modes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.modes
}

// Snapshot gives what is on the screen.
func (s *Screen) Snapshot() fleet.Screen {
	s.mu.Lock()
	defer s.mu.Unlock()
	shot := fleet.Screen{
		Cols: s.cols, Rows: s.rows, Title: plain.Clean(s.title, maxTitle),
		Lines: make([]string, s.rows), Styled: make([]string, s.rows),
	}
	for y := range s.rows {
		shot.Lines[y], shot.Styled[y] = renderLine(s.cols, func(x int) *uv.Cell { return s.em.CellAt(x, y) })
	}
	shot.Cursor.X, shot.Cursor.Y = s.cursor()
	shot.Cursor.Visible = !s.modes.CursorHidden
	return shot
}

// Close frees the emulator. The screen must not be written to after.
func (s *Screen) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
	return nil
}

// release ends the goroutine that takes the emulator's answers. The emulator's own Close would race with it.
func (s *Screen) release() {
	if pipe, ok := s.em.InputPipe().(io.Closer); ok {
		pipe.Close()
	}
}
