package attach

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
	"fleetdeck/fleet/plain"
)

// painter draws an agent's screen and the bottom line into a window. It draws only what changed.
type painter struct {
	cols, rows int
	shot       fleet.Screen
	bar        bar
	drawn      []string // what each line of the window shows; nil before anything is drawn
}

// bar is the bottom line.
type bar struct {
	name, state, key string
}

// setSize takes a new size of the window, which then shows nothing that could be relied on.
func (p *painter) setSize(cols, rows int) {
	p.cols, p.rows, p.drawn = cols, rows, nil
}

// viewRows is how many lines the agent gets. A window of one line has no bottom line.
func (p *painter) viewRows() int { return max(1, p.rows-1) }

// paint gives the bytes that bring the window up to date.
func (p *painter) paint() []byte {
	var b bytes.Buffer
	b.WriteString("\x1b[?2026h\x1b[?25l")
	if p.drawn == nil {
		b.WriteString("\x1b[m\x1b[2J")
		p.drawn = make([]string, p.rows)
	}
	// A screen that is taller than the window, as somebody else's may have made it, is shown where its cursor is.
	top := max(0, min(p.shot.Cursor.Y, len(p.shot.Styled)-1)-p.viewRows()+1)
	for y := range p.rows {
		line := ""
		switch {
		case y == p.viewRows():
			line = p.bar.line(p.cols)
		case top+y < len(p.shot.Styled):
			line = ansi.Truncate(p.shot.Styled[top+y], p.cols, "")
		}
		if line != p.drawn[y] {
			p.drawn[y] = line
			// Erased first: at the end of a full line the cursor stands on its last character.
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[m\x1b[2K%s\x1b[m", y+1, line)
		}
	}
	if c := p.shot.Cursor; c.Visible && c.X < p.cols {
		fmt.Fprintf(&b, "\x1b[%d;%dH\x1b[?25h", c.Y-top+1, c.X+1)
	}
	b.WriteString("\x1b[?2026l")
	return b.Bytes()
}

// line gives the bottom line, in reverse, which is no colour and stays under NO_COLOR.
func (b bar) line(cols int) string {
	left := fmt.Sprintf(" %s  %s", plain.Clean(b.name, 60), plain.Clean(b.state, 200))
	right := b.key + " detaches "
	left = ansi.Truncate(left, max(0, cols-ansi.StringWidth(right)-2), "…")
	gap := max(1, cols-ansi.StringWidth(left)-ansi.StringWidth(right))
	return "\x1b[7m" + ansi.Truncate(left+strings.Repeat(" ", gap)+right, cols, "") + "\x1b[m"
}
