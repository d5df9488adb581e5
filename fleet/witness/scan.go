package witness

import (
	"bytes"
	"strings"
)

// Kind is what a signal is.
type Kind int

// The kinds of signals.
const (
	SetTitle Kind = iota // OSC 0 or 2: Text is the title
	Busy                 // OSC 9;4 with a state, or 7501 with one: Text is "working", or what the agent calls it
	NotBusy              // OSC 9;4;0: no progress any more
	Notice               // OSC 9, 777 or 99: Text is what it tells
	Bell                 // BEL
	Cleared              // OSC 7501 with state=clear: the agent says nothing of itself
)

// Signal is something that an agent tells whoever owns its terminal.
type Signal struct {
	Kind Kind
	Text string
}

// maxString bounds the text of one sequence. A longer one is cut off: it is no title.
const maxString = 2 << 10

// Scanner finds signals in what an agent prints. It is no emulator: bytes that are no signal cost next to nothing. The zero
// value is ready.
type Scanner struct {
	state scanState
	osc   bool // the string is an OSC; of others nothing is kept
	text  []byte
}

type scanState int

const (
	inGround scanState = iota
	inEscape
	inString
	inStringEscape
)

// Feed calls each with the signals that end in p.
func (s *Scanner) Feed(p []byte, each func(Signal)) {
	for len(p) > 0 {
		switch s.state {
		case inGround:
			i := bytes.IndexAny(p, "\x1b\a")
			if i < 0 {
				return
			}
			if p[i] == '\a' {
				each(Signal{Kind: Bell})
			} else {
				s.state = inEscape
			}
			p = p[i+1:]
		case inEscape:
			s.state = inGround
			switch p[0] {
			case ']', 'P', '_', '^', 'X':
				s.state, s.osc, s.text = inString, p[0] == ']', s.text[:0]
			case '\x1b':
				s.state = inEscape
			}
			p = p[1:]
		case inString:
			i := bytes.IndexAny(p, "\x1b\a\x18\x1a")
			if i < 0 {
				s.keep(p)
				return
			}
			s.keep(p[:i])
			switch {
			case p[i] == '\x1b':
				s.state = inStringEscape
			case p[i] == '\a' && s.osc:
				s.end(each)
			case p[i] != '\a':
				s.state = inGround // cancelled
			}
			p = p[i+1:]
		case inStringEscape:
			if p[0] == '\\' {
				s.end(each)
				p = p[1:]
				continue
			}
			s.state = inEscape // another sequence began: the string is lost
		}
	}
}

func (s *Scanner) keep(p []byte) {
	if s.osc {
		s.text = append(s.text, p[:min(len(p), maxString-len(s.text))]...)
	}
}

// end reads a whole string.
func (s *Scanner) end(each func(Signal)) {
	s.state = inGround
	if !s.osc {
		return
	}
	code, rest, _ := strings.Cut(strings.ToValidUTF8(string(s.text), ""), ";")
	switch code {
	case "0", "2":
		each(Signal{SetTitle, rest})
	case "9":
		s.osc9(rest, each)
	case "777":
		if kind, text, _ := strings.Cut(rest, ";"); kind == "notify" {
			each(Signal{Notice, strings.TrimSpace(strings.Replace(text, ";", ": ", 1))})
		}
	case "99":
		if meta, text, _ := strings.Cut(rest, ";"); text != "" && !strings.Contains(meta, "p=?") {
			each(Signal{Notice, text})
		}
	case "7501":
		for _, field := range strings.FieldsFunc(rest, func(r rune) bool { return r == ':' || r == ';' }) {
			switch state, ok := strings.CutPrefix(field, "state="); {
			case ok && state == "clear":
				each(Signal{Kind: Cleared})
			case ok:
				each(Signal{Busy, state})
			}
		}
	}
}

// osc9 reads a notification, or one of the sequences that a number sets apart from it.
func (s *Scanner) osc9(rest string, each func(Signal)) {
	number, value, more := strings.Cut(rest, ";")
	switch {
	case number == "4" && more:
		if state, _, _ := strings.Cut(value, ";"); state == "0" || state == "" {
			each(Signal{Kind: NotBusy})
		} else {
			each(Signal{Busy, "working"})
		}
	case more && len(number) < 3 && strings.Trim(number, "0123456789") == "":
		// a command of some terminal's own
	case rest != "":
		each(Signal{Notice, rest})
	}
}
