package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// shape is what the frame follows from at present.
func (m *Model) shape() shape {
	return shape{
		w: m.width, h: m.height, view: m.view, alerts: len(m.alertLines(m.width)), notices: len(m.noticeLines(m.width)),
		strip: len(m.ix.slots) > 0 && m.width < oneLineHeader, entries: len(m.ix.reservations) > 0, place: m.place, zoomed: m.zoomed, pane: m.pane, share: m.share,
	}
}

// frame is where everything is at the present size.
func (m *Model) frame() frame { return arrange(m.shape()) }

// draw makes the frame of the present moment. On the way it finds out whether anything on it changes by itself.
func (m *Model) draw() {
	m.counting = false
	f := m.frame()
	if f.tooSmall {
		m.drawn = strings.Join(tooSmall(m.width, m.height), "\n")
		return
	}
	c := newCanvas(m.width, m.height)
	c.put(f.header, m.header(f.header.w, f.header.h))
	c.put(f.alerts, m.alertLines(f.alerts.w))
	if !f.list.empty() {
		p := paneList
		if m.zoomed {
			p = m.pane
		}
		c.put(f.list, m.listPane(f.list, m.shownIn(p), p))
	}
	c.put(f.detail, m.detailPane(f.detail))
	if !f.reservations.empty() {
		c.put(f.reservations, m.listPane(f.reservations, viewReservations, paneReservations))
	}
	if !f.events.empty() {
		c.put(f.events, m.listPane(f.events, viewEvents, paneEvents))
	}
	if f.beside {
		m.divide(c, f)
	}
	notices := m.noticeLines(f.notices.w)
	c.put(f.notices, notices[max(len(notices)-f.notices.h, 0):])
	c.put(f.footer, []string{m.footer(f.footer.w)})
	lines := c.lines()
	if m.dialog != nil {
		m.overlay(lines)
	}
	m.drawn = strings.Join(lines, "\n")
}

// divide draws the line between the panes at the left and at the right.
func (m *Model) divide(c *canvas, f frame) {
	x := f.detail.x - between
	for y := f.list.y; y < f.list.y+f.list.h+f.reservations.h; y++ {
		s := " │ "
		switch y {
		case f.list.y:
			s = "─┬─"
		case f.reservations.y:
			s = "─┼─"
		}
		c.put(rect{x, y, between, 1}, []string{m.rule.of(s)})
	}
}

// boxed is a pane: its title in a rule, and its body below.
func (m *Model) boxed(r rect, focused bool, title, note string, body func(w, h int) []string) []string {
	if r.empty() {
		return nil
	}
	p := m.strong
	if focused {
		p = m.accent
	}
	title = ansi.Truncate(title, r.w-6, "…")
	head := m.rule.of("─ ") + p.of(title) + " "
	free := r.w - width(title) - 3
	if n := width(note); n > 0 && n+4 <= free {
		head += m.rule.of(strings.Repeat("─", free-n-3)) + " " + note + m.rule.of(" ─")
	} else {
		head += m.rule.of(strings.Repeat("─", max(free, 0)))
	}
	return append([]string{fit(head, r.w)}, block(body(r.w, r.h-1), r.w, r.h-1)...)
}

// overlay draws the dialog over the middle of the frame.
func (m *Model) overlay(lines []string) {
	box := m.dialogBox(m.width, len(lines))
	if len(box) == 0 {
		return
	}
	w := width(box[0])
	x, y := (m.width-w)/2, (len(lines)-len(box))/2
	for i, l := range lines {
		// What is behind a dialog cannot be acted on, and steps back.
		under := ansi.Strip(l)
		if i < y || i >= y+len(box) {
			lines[i] = m.faint.of(under)
			continue
		}
		lines[i] = m.faint.of(fit(ansi.Truncate(under, x, ""), x)) + box[i-y] +
			m.faint.of(fit(ansi.TruncateLeft(under, x+w, ""), m.width-x-w))
	}
}

// tooSmall is the frame of a screen that nothing fits on.
func tooSmall(w, h int) []string {
	if w <= 0 || h <= 0 {
		return nil
	}
	text := []string{
		fmt.Sprintf("fleetdeck needs %dx%d,", minWidth, minHeight),
		fmt.Sprintf("this is %dx%d", w, h),
		"q quits",
	}
	return block(text, w, h)
}

// canvas is a screen that is put together from places.
type canvas struct {
	w    int
	rows [][]piece
}

type piece struct {
	x, w int
	s    string
}

func newCanvas(w, h int) *canvas { return &canvas{w, make([][]piece, h)} }

// put writes lines, which are r.w cells wide each, at r.
func (c *canvas) put(r rect, lines []string) {
	for i, l := range lines {
		if y := r.y + i; i < r.h && y < len(c.rows) {
			c.rows[y] = append(c.rows[y], piece{r.x, r.w, l})
		}
	}
}

// lines is the screen, each line exactly as wide as it.
func (c *canvas) lines() []string {
	out := make([]string, len(c.rows))
	for y, row := range c.rows {
		slices.SortFunc(row, func(a, b piece) int { return a.x - b.x })
		var b strings.Builder
		x := 0
		for _, s := range row {
			b.WriteString(strings.Repeat(" ", max(s.x-x, 0)))
			b.WriteString(s.s)
			x = s.x + s.w
		}
		b.WriteString(strings.Repeat(" ", max(c.w-x, 0)))
		out[y] = b.String()
	}
	return out
}
