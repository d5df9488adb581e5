package lockfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// scanner walks over JSON text once and checks all of it, as strictly as encoding/json does. It makes no copies. Its
// methods are called with pos at the first byte of what they are named after, and leave it behind the last.
type scanner struct {
	data []byte
	pos  int
}

// maxDepth is how deep values may nest. It is encoding/json's limit.
const maxDepth = 10000

// fault makes the error for what is wrong at pos.
func (s *scanner) fault(pos int, format string, args ...any) error {
	return &CorruptError{Line: lineAt(s.data, pos), Why: fmt.Sprintf(format, args...)}
}

// unexpected says that another thing should stand at the present place.
func (s *scanner) unexpected(want string) error {
	switch {
	case s.pos >= len(s.data):
		return s.fault(s.pos, "the text ends where %s should be", want)
	case s.data[s.pos] == 0:
		return s.fault(s.pos, "a NUL byte where %s should be", want)
	}
	return s.fault(s.pos, "%q where %s should be", rune(s.data[s.pos]), want)
}

// lineAt is the line of a place, from 1.
func lineAt(data []byte, pos int) int {
	return 1 + bytes.Count(data[:min(pos, len(data))], []byte{'\n'})
}

// peek is the byte at pos, or 0 at the end; a 0 within the text is valid nowhere either.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.data) && isSpace(s.data[s.pos]) {
		s.pos++
	}
}

// value passes one value of any type. depth is that of what encloses it.
func (s *scanner) value(depth int) error {
	switch c := s.peek(); {
	case c == '"':
		return s.str()
	case c == '{':
		return s.object(depth+1, nil)
	case c == '[':
		return s.array(depth + 1)
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case c == '-' || isDigit(c):
		return s.number()
	}
	return s.unexpected("a value")
}

// object passes an object and shows each of its members to see, if there is one: the key with its quotes, and the value.
func (s *scanner) object(depth int, see func(start int, key, value []byte) error) error {
	if depth > maxDepth {
		return s.fault(s.pos, "nested too deep")
	}
	s.pos++
	s.space()
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	for {
		start := s.pos
		if s.peek() != '"' {
			return s.unexpected("a key")
		}
		if err := s.str(); err != nil {
			return err
		}
		keyEnd := s.pos
		s.space()
		if s.peek() != ':' {
			return s.unexpected("a colon")
		}
		s.pos++
		s.space()
		from := s.pos
		if err := s.value(depth); err != nil {
			return err
		}
		if see != nil {
			// The capacity ends with each slice, so that an append cannot write into what follows.
			if err := see(start, s.data[start:keyEnd:keyEnd], s.data[from:s.pos:s.pos]); err != nil {
				return err
			}
		}
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
			s.space()
		case '}':
			s.pos++
			return nil
		default:
			return s.unexpected("a comma or a closing brace")
		}
	}
}

func (s *scanner) array(depth int) error {
	if depth > maxDepth {
		return s.fault(s.pos, "nested too deep")
	}
	s.pos++
	s.space()
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for {
		if err := s.value(depth); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
			s.space()
		case ']':
			s.pos++
			return nil
		default:
			return s.unexpected("a comma or a closing bracket")
		}
	}
}

// str passes a string. Most of the text is inside strings, so plain bytes go by eight at a time.
func (s *scanner) str() error {
	data, pos := s.data, s.pos+1
	for {
		for pos+8 <= len(data) {
			special := specialBytes(binary.LittleEndian.Uint64(data[pos:]))
			if special != 0 {
				pos += bits.TrailingZeros64(special) / 8
				break
			}
			pos += 8
		}
		if pos >= len(data) {
			return s.fault(pos, "the text ends inside a string")
		}
		switch c := data[pos]; {
		case c == '"':
			s.pos = pos + 1
			return nil
		case c == '\\':
			s.pos = pos
			if err := s.escape(); err != nil {
				return err
			}
			pos = s.pos
		case c == 0:
			return s.fault(pos, "a NUL byte inside a string")
		case c < ' ':
			return s.fault(pos, "an unescaped control character %q inside a string", rune(c))
		default:
			pos++
		}
	}
}

// specialBytes marks, by its highest bit, the first byte of w that is a quote, a backslash or a control character. Bytes
// behind that one may be marked wrongly.
func specialBytes(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & highs
}

func (s *scanner) escape() error {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
		s.pos++
		for range 4 {
			if !isHex(s.peek()) {
				return s.unexpected("a hexadecimal digit")
			}
			s.pos++
		}
		return nil
	}
	return s.unexpected("an escape character")
}

func (s *scanner) literal(word string) error {
	for i := range len(word) {
		if s.peek() != word[i] {
			return s.unexpected(word)
		}
		s.pos++
	}
	return nil
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if err := s.digits(); err != nil {
		return err
	}
	if s.peek() == '.' {
		s.pos++
		if err := s.digits(); err != nil {
			return err
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return nil
}

// digits passes one digit or more.
func (s *scanner) digits() error {
	if !isDigit(s.peek()) {
		return s.unexpected("a digit")
	}
	for isDigit(s.peek()) {
		s.pos++
	}
	return nil
}

// isSpace compares with the greatest of the four first: mostly that is the end of it.
func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r') }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
