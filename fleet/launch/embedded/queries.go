package embedded

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// filter takes the questions that an agent asks its terminal out of what it prints. Somebody must answer them also
// while nobody looks, and nobody may answer them twice; so the holder does, and no emulator ever sees one.
//
// A question that arrives in pieces is found too: the filter keeps back an escape sequence that may still become one.
type filter struct {
	held []byte
}

// query is a question of the agent.
type query struct {
	// cursor says that the cursor's position is asked for; private is the form with a question mark.
	cursor, private bool
	// reply is the answer to anything else. It may be empty: some questions are best left unanswered.
	reply string
}

// sink is what a filter hands on, in order. Nobody may keep the bytes.
type sink struct {
	pass func([]byte) // output
	ask  func(query)  // a question
	// mode gets what sets modes: a control sequence without its introducer, or fullReset. It ends ahead bytes after what
	// was passed so far, and is passed itself with the rest.
	mode func(seq string, ahead int)
}

// scan sorts p. What is output is handed on in as few pieces as can be.
func (f *filter) scan(p []byte, size winsize, to sink) {
	if len(f.held) > 0 {
		p = append(f.held, p...)
		f.held = nil
	}
	from := 0 // what comes before was handed on
	for at := 0; ; {
		i := bytes.IndexByte(p[at:], 0x1b)
		if i < 0 {
			break
		}
		at += i
		n, q, more := classify(p[at:], size)
		if more {
			f.held = bytes.Clone(p[at:])
			p = p[:at]
			break
		}
		seq := p[at : at+n]
		at += n
		if q != nil {
			if run := p[from : at-n]; len(run) > 0 {
				to.pass(run)
			}
			from = at
			to.ask(*q)
		} else if m := modeSequence(seq); m != "" {
			to.mode(m, at-from)
		}
	}
	if from < len(p) {
		to.pass(p[from:])
	}
}

// modeSequence gives what a filter tells of an escape sequence that sets modes, and nothing for any other.
func modeSequence(seq []byte) string {
	n := len(seq)
	switch {
	case n > 4 && seq[1] == '[' && seq[2] == '?' && (seq[n-1] == 'h' || seq[n-1] == 'l'):
		return string(seq[2:])
	case n != 2:
	case seq[1] == '=': // the keypad has a form of its own
		return "?66h"
	case seq[1] == '>':
		return "?66l"
	case seq[1] == 'c':
		return fullReset
	}
	return ""
}

// flush passes what was kept back.
func (f *filter) flush(pass func([]byte)) {
	if held := f.held; len(held) > 0 {
		f.held = nil
		pass(held)
	}
}

const (
	maxControl = 64   // the longest control sequence that may be a question
	maxString  = 1024 // the same of a control string
)

// classify looks at the escape sequence that p begins with: it is n bytes long, and q if it is a question; or it needs
// more bytes to tell. What cannot be a question is passed in as few bytes as are certain.
func classify(p []byte, size winsize) (n int, q *query, more bool) {
	if len(p) < 2 {
		return 0, nil, true
	}
	switch p[1] {
	case '[':
		return classifyControl(p, size)
	case ']':
		return classifyString(p, colourQuestion, answerColours)
	case 'P':
		return classifyString(p, capabilityQuestion, answerCapability)
	case 'Z': // DECID, the old form of DA1
		return 2, &query{reply: deviceAttributes}, false
	case 0x1b:
		return 1, nil, false
	}
	return 2, nil, false
}

func classifyControl(p []byte, size winsize) (n int, q *query, more bool) {
	for i := 2; i < len(p) && i < maxControl; i++ {
		switch c := p[i]; {
		case 0x20 <= c && c <= 0x3f:
		case 0x40 <= c && c <= 0x7e:
			return i + 1, answerControl(string(p[2:i+1]), size), false
		default:
			return i, nil, false
		}
	}
	if len(p) < maxControl {
		return 0, nil, true
	}
	return maxControl, nil, false
}

// classifyString finds the end of a control string, as long as could reports that its beginning may become a question.
func classifyString(p []byte, could func(string) bool, answer func(string) *query) (n int, q *query, more bool) {
	for i := 2; i < len(p); i++ {
		switch {
		case p[i] == 0x07 && p[1] == ']':
			return i + 1, answer(string(p[2:i])), false
		case p[i] == 0x1b && i+1 == len(p):
			return 0, nil, true
		case p[i] == 0x1b && p[i+1] == '\\':
			return i + 2, answer(string(p[2:i])), false
		case p[i] == 0x1b || i > maxString || !could(string(p[2:min(i+1, 2+16)])) || p[1] == ']' && !colourByte(p[i]):
			return i, nil, false
		}
	}
	return 0, nil, true
}

const deviceAttributes = "\x1b[?62;22c" // a VT220 with colours

// answerControl answers a control sequence, given without its introducer, or returns nil if it is no question.
func answerControl(s string, size winsize) *query {
	body, final := s[:len(s)-1], s[len(s)-1]
	switch final {
	case 'c':
		switch body {
		case "", "0":
			return &query{reply: deviceAttributes}
		case ">", ">0":
			return &query{reply: "\x1b[>1;10;0c"}
		case "=", "=0":
			return &query{reply: "\x1bP!|00000000\x1b\\"}
		}
	case 'n':
		switch body {
		case "5":
			return &query{reply: "\x1b[0n"}
		case "6", "?6":
			return &query{cursor: true, private: body[0] == '?'}
		case "?996": // dark or light
			return &query{reply: "\x1b[?997;1n"}
		}
		if strings.HasPrefix(body, "?") {
			return &query{} // printers, locators and the like: there are none
		}
	case 'q':
		if body == ">" || body == ">0" {
			return &query{reply: "\x1bP>|fleetdeck\x1b\\"}
		}
	case 'p':
		if mode, ok := strings.CutSuffix(body, "$"); ok {
			return answerMode(mode)
		}
	case 'u':
		if body == "?" {
			return &query{} // the kitty keyboard: silence says that there is none
		}
	case 'S':
		if item, _, ok := strings.Cut(body, ";"); ok && strings.HasPrefix(item, "?") {
			return &query{reply: "\x1b[" + item + ";3;0S"} // graphics: failed
		}
	case 't':
		return answerWindow(body, size)
	}
	return nil
}

// answerMode answers DECRQM. A holder keeps no modes; all that it can say is that synchronised output is understood
// and that autowrap is what it is at the start.
func answerMode(mode string) *query {
	state := 0 // not recognised
	if mode == "?2026" {
		state = 2 // reset
	}
	return &query{reply: fmt.Sprintf("\x1b[%s;%d$y", mode, state)}
}

// The pixels of a cell, for agents that ask.
const cellWidth, cellHeight = 10, 20

func answerWindow(body string, size winsize) *query {
	op, _, _ := strings.Cut(body, ";")
	switch op {
	case "11": // not minimised
		return &query{reply: "\x1b[1t"}
	case "13":
		return &query{reply: "\x1b[3;0;0t"}
	case "14":
		return &query{reply: fmt.Sprintf("\x1b[4;%d;%dt", size.rows*cellHeight, size.cols*cellWidth)}
	case "15":
		return &query{reply: fmt.Sprintf("\x1b[5;%d;%dt", size.rows*cellHeight, size.cols*cellWidth)}
	case "16":
		return &query{reply: fmt.Sprintf("\x1b[6;%d;%dt", cellHeight, cellWidth)}
	case "18":
		return &query{reply: fmt.Sprintf("\x1b[8;%d;%dt", size.rows, size.cols)}
	case "19":
		return &query{reply: fmt.Sprintf("\x1b[9;%d;%dt", size.rows, size.cols)}
	case "20", "21": // the title: whoever reads its own title back as input can be fooled
		return &query{}
	}
	return nil
}

// colourQuestion reports whether an OSC string that begins so may ask for colours.
func colourQuestion(begin string) bool {
	for _, p := range []string{"4;", "10;", "11;", "12;"} {
		if strings.HasPrefix(begin, p) || strings.HasPrefix(p, begin) {
			return true
		}
	}
	return false
}

// colourByte reports whether c can stand in a question for colours: no colour that is set can be written with these.
func colourByte(c byte) bool { return '0' <= c && c <= '9' || c == ';' || c == '?' }

func answerColours(s string) *query {
	number, rest, _ := strings.Cut(s, ";")
	args := strings.Split(rest, ";")
	var reply strings.Builder
	switch first, _ := strconv.Atoi(number); number {
	case "10", "11", "12":
		// More than one argument goes on to the next colour.
		for i, arg := range args {
			if arg != "?" || first+i > 12 {
				return nil
			}
			fmt.Fprintf(&reply, "\x1b]%d;%s\x1b\\", first+i, [...]string{"rgb:d0d0/d0d0/d0d0", "rgb:1414/1414/1414", "rgb:d0d0/d0d0/d0d0"}[first+i-10])
		}
	case "4":
		for i := 0; i+1 < len(args); i += 2 {
			n, err := strconv.Atoi(args[i])
			if err != nil || n < 0 || n > 255 || args[i+1] != "?" {
				return nil
			}
			r, g, b := indexedColour(n)
			fmt.Fprintf(&reply, "\x1b]4;%d;rgb:%04x/%04x/%04x\x1b\\", n, r*0x101, g*0x101, b*0x101)
		}
	default:
		return nil
	}
	return &query{reply: reply.String()}
}

// indexedColour is xterm's palette.
func indexedColour(n int) (r, g, b int) {
	switch {
	case n == 7:
		return 0xe5, 0xe5, 0xe5
	case n == 8:
		return 0x7f, 0x7f, 0x7f
	case n < 16:
		level := 0xcd
		if n > 8 {
			level = 0xff
		}
		return n & 1 * level, n >> 1 & 1 * level, n >> 2 & 1 * level
	case n < 232:
		step := func(v int) int {
			if v == 0 {
				return 0
			}
			return 55 + 40*v
		}
		return step((n - 16) / 36), step((n - 16) / 6 % 6), step((n - 16) % 6)
	}
	grey := 8 + 10*(n-232)
	return grey, grey, grey
}

// capabilityQuestion reports whether a DCS string that begins so may be XTGETTCAP or DECRQSS.
func capabilityQuestion(begin string) bool {
	return strings.HasPrefix(begin, "+q") || strings.HasPrefix(begin, "$q") || begin == "+" || begin == "$"
}

func answerCapability(s string) *query {
	switch {
	case strings.HasPrefix(s, "+q"):
		return &query{reply: "\x1bP0+r\x1b\\"}
	case strings.HasPrefix(s, "$q"):
		return &query{reply: "\x1bP0$r\x1b\\"}
	}
	return nil
}
