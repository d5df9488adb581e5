package tui

import "strings"

// column is a column of a list.
type column struct {
	title string
	w     int // its width, or the least where it stretches
	grow  int // its share of the width that is left over
	most  int // how far it stretches, 0 for no limit
	from  int // how wide the list must be for it to be shown
}

const (
	gap  = 2 // between columns
	lead = 3 // the mark of the selected row, a glyph and a space
)

// share divides a list of w cells among columns. A column that is not shown gets 0.
func share(cols []column, w int) []int {
	out := make([]int, len(cols))
	left := w - lead + gap
	for i, c := range cols {
		if w >= c.from {
			out[i] = c.w
			left -= c.w + gap
		}
	}
	// What one column cannot take goes to the others, so it is shared out a cell at a time.
	for given := true; left > 0 && given; {
		given = false
		for i, c := range cols {
			for range c.grow {
				if out[i] > 0 && left > 0 && (c.most == 0 || out[i] < c.most) {
					out[i]++
					left--
					given = true
				}
			}
		}
	}
	return out
}

// rowCell is one cell of a row: its text, already as wide as its column, and its style.
type rowCell struct {
	text  string
	paint paint
}

// row is a row of a list as exactly w cells. Where it is under the cursor of the focused pane it is one bar, so that
// no colour in it is hard to read.
func (m *Model) row(selected, focused bool, state look, cells []rowCell, w int) string {
	var b strings.Builder
	if selected && focused {
		b.WriteString("▌" + state.glyph)
		for i, c := range cells {
			b.WriteString(separator(i))
			b.WriteString(c.text)
		}
		return m.selected.of(fit(b.String(), w))
	}
	if selected {
		b.WriteString(m.accent.of("▌"))
	} else {
		b.WriteString(" ")
	}
	b.WriteString(state.paint.of(state.glyph))
	for i, c := range cells {
		b.WriteString(separator(i))
		p := c.paint
		if selected && p == "" {
			p = m.marked
		}
		b.WriteString(p.of(c.text))
	}
	return fit(b.String(), w)
}

func separator(i int) string {
	if i == 0 {
		return " "
	}
	return "  "
}

// heading is the line of column titles.
func (m *Model) heading(cols []column, ws []int, w int) string {
	s := "  "
	n := 0
	for i, c := range cols {
		if ws[i] > 0 {
			s += separator(n) + cell(c.title, ws[i])
			n++
		}
	}
	return m.faint.of(fit(s, w))
}

// table draws the visible rows of a list below its column titles.
func table[T any](m *Model, r *roll[T], w, h int, cols []column, row func(x T, selected bool, ws []int) string) []string {
	ws := share(cols, w)
	var out []string
	if h > 3 {
		out = append(out, m.heading(cols, ws, w))
		h--
	}
	top := r.scroll(len(r.shown), h)
	for i := top; i < min(top+h, len(r.shown)); i++ {
		out = append(out, row(r.shown[i], i == r.at, ws))
	}
	return out
}

// present drops the cells of columns that are not shown.
func present(ws []int, cells []rowCell) []rowCell {
	out := cells[:0]
	for i, c := range cells {
		if ws[i] > 0 {
			out = append(out, c)
		}
	}
	return out
}
