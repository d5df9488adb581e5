package screen

import "unicode/utf8"

// maxCommand bounds what is kept of a command, in bytes.
const maxCommand = 4 << 10

// titles takes the operating system commands that set a title out of a stream. The emulator would end one at byte 0x9C, also
// where that is part of a character, and draw the rest of the title on the screen. Other commands pass, without what is not ASCII.
type titles struct {
	state titleState
	text  []byte // of the command so far, without its ESC ]
	over  bool   // text is longer than is kept
}

type titleState int

const (
	inGround titleState = iota
	inEscape
	inCommand
	inCommandEscape
)

// filter gives what of p is for the emulator, and calls each with every title that ends in it.
func (t *titles) filter(p []byte, each func(string)) []byte {
	out := make([]byte, 0, len(p))
	for _, c := range p {
		switch t.state {
		case inGround:
			if c == '\x1b' {
				t.state = inEscape // whether it is for the emulator is known with the next byte
				continue
			}
			out = append(out, c)
		case inEscape:
			switch c {
			case ']':
				t.state, t.text, t.over = inCommand, t.text[:0], false
			case '\x1b':
				out = append(out, '\x1b')
			default:
				t.state = inGround
				out = append(out, '\x1b', c)
			}
		case inCommand:
			switch {
			case c == '\a':
				out = t.end(out, "\a", each)
			case c == '\x1b':
				t.state = inCommandEscape
			case c == '\x18' || c == '\x1a': // cancelled
				t.state = inGround
			case len(t.text) < maxCommand:
				t.text = append(t.text, c)
			default:
				t.over = true
			}
		case inCommandEscape:
			if c == '\\' {
				out = t.end(out, "\x1b\\", each)
				continue
			}
			// An escape ends the command, and begins something else.
			t.state = inEscape
			if c == ']' {
				t.state, t.text, t.over = inCommand, t.text[:0], false
				continue
			}
			t.state = inGround
			out = append(out, '\x1b', c)
		}
	}
	return out
}

// end ends a command: a title is told, another goes to the emulator.
func (t *titles) end(out []byte, terminator string, each func(string)) []byte {
	t.state = inGround
	text := t.text
	if title, ok := titleOf(text); ok {
		if text[0] != '1' { // which is an icon's name
			each(string(trimBroken(title)))
		}
		return out
	}
	if t.over {
		return out
	}
	ascii := make([]byte, 0, len(text))
	for _, c := range text {
		if c < utf8.RuneSelf {
			ascii = append(ascii, c)
		}
	}
	if _, ok := titleOf(ascii); ok {
		return out // the emulator would take for a title what is none
	}
	out = append(append(out, '\x1b', ']'), ascii...)
	return append(out, terminator...)
}

// titleOf gives the title that a command sets, if it sets one.
func titleOf(text []byte) (title []byte, ok bool) {
	if len(text) > 1 && (text[0] == '0' || text[0] == '1' || text[0] == '2') && text[1] == ';' {
		return text[2:], true
	}
	return nil, false
}

// trimBroken drops the part of a character at the end, where the text was cut.
func trimBroken(text []byte) []byte {
	for n := len(text); n > 0 && n > len(text)-utf8.UTFMax; n-- {
		if r, size := utf8.DecodeLastRune(text[:n]); r != utf8.RuneError || size > 1 {
			return text[:n]
		}
	}
	return text
}
