package embedded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxModeChanges bounds the remembered changes; older ones pass into the state before them.
const maxModeChanges = 4096

// modes knows which private modes the agent had set at any place that the ring still holds. An emulator that starts in
// the middle of the output needs them: a full-screen agent repaints when it is told to, but does not say again that
// it is on the alternate screen and wants the mouse.
type modes struct {
	base    map[int]bool // at the beginning of changes
	changes []modeChange // in the order of their places
	now     map[int]bool
}

type modeChange struct {
	at   uint64
	mode int
	set  bool
}

// keptModes are the modes that matter: cursor keys, wrap, cursor, alternate screens, keypad, mouse, focus, paste.
var keptModes = []int{1, 7, 9, 25, 47, 66, 1000, 1002, 1003, 1004, 1006, 1047, 1049, 2004}

// initially reports whether a mode is set when a terminal is new.
func initially(mode int) bool { return mode == 7 || mode == 25 }

// fullReset stands for RIS, which puts every mode back.
const fullReset = "c"

// note takes a control sequence that sets or resets modes, given without its introducer, and ends at offset at.
func (m *modes) note(s string, at uint64) {
	if s == fullReset {
		for mode := range m.now {
			m.change(mode, initially(mode), at)
		}
		return
	}
	final := s[len(s)-1]
	body, private := strings.CutPrefix(s[:len(s)-1], "?")
	if !private || final != 'h' && final != 'l' {
		return
	}
	for field := range strings.SplitSeq(body, ";") {
		if mode, err := strconv.Atoi(field); err == nil && slices.Contains(keptModes, mode) {
			m.change(mode, final == 'h', at)
		}
	}
}

// change notes that a mode was set or reset, if it was not already.
func (m *modes) change(mode int, set bool, at uint64) {
	if old, known := m.now[mode]; known && old == set || !known && set == initially(mode) {
		return
	}
	if m.now == nil {
		m.now, m.base = map[int]bool{}, map[int]bool{}
	}
	m.now[mode] = set
	m.changes = append(m.changes, modeChange{at, mode, set})
	if over := len(m.changes) - maxModeChanges; over > 0 {
		m.forget(m.changes[over-1].at)
	}
}

// forget lets the changes up to offset at pass into the state before them.
func (m *modes) forget(at uint64) {
	n := 0
	for ; n < len(m.changes) && m.changes[n].at <= at; n++ {
		m.base[m.changes[n].mode] = m.changes[n].set
	}
	m.changes = slices.Delete(m.changes, 0, n)
}

// prelude gives the sequences that bring a new terminal into the modes that were set at offset at.
func (m *modes) prelude(at uint64) string {
	state := map[int]bool{}
	for mode, set := range m.base {
		state[mode] = set
	}
	for _, c := range m.changes {
		if c.at > at {
			break
		}
		state[c.mode] = c.set
	}
	var b strings.Builder
	for _, mode := range keptModes {
		set, known := state[mode]
		switch {
		case !known || set == initially(mode):
		case set:
			fmt.Fprintf(&b, "\x1b[?%dh", mode)
		default:
			fmt.Fprintf(&b, "\x1b[?%dl", mode)
		}
	}
	return b.String()
}
