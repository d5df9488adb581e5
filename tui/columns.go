package tui

import "strings"

// column is a column of a list.
type column[T any] struct {
	title string
	w     int  // its width, or the least where it stretches
	grow  int  // its share of the width that is left over
	most  int  // how far it stretches, 0 for no limit
	from  int  // how wide the list must be for it to be shown
	many  bool // it is for a fleet of many hosts
	end   bool // what does not fit is cut from the start, as in paths and ids
	// cell is its text in a row, which may be anybody's, and its style. w is how wide it will be.
	cell func(x T, w int) (string, paint)
	// by orders rows by it, nil where that makes no sense.
	by func(a, b T) int
}

// widthOf is how wide the column named title is: most cells, of which it can do without those over least.
func (l *list[T]) widthOf(title string, most, least int) {
	for i := range l.cols {
		if c := &l.cols[i]; c.title == title {
			c.w, c.most, c.grow = min(most, least), most, 0
			if most > least {
				c.grow = 1
			}
		}
	}
}

const (
	gap  = 2 // between columns
	lead = 3 // the mark of the row, a glyph and a space
)

// share divides a list of w cells, of many hosts or of one, among columns. A column that is not shown gets 0.
func share[T any](cols []column[T], w int, many bool) []int {
	out := make([]int, len(cols))
	left := w - lead + gap
	for i, c := range cols {
		if w >= c.from && (many || !c.many) && c.w+gap <= left {
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

// table draws the visible rows below the column titles.
func (l *list[T]) table(m *Model, w, h int, focused, showSelected bool) []string {
	ws := share(l.cols, w, l.many)
	l.widths = ws
	var out []string
	if h > 3 {
		out = append(out, l.heading(m, ws, w))
		h--
	}
	top := l.scroll(h)
	for i := top; i < len(l.shown) && len(out) < h+1; i++ {
		if group, ok := l.headed(i); ok {
			if group == "" {
				group = "none"
			}
			out = append(out, m.strong.of(fit(" "+cut(group, w-2), w)))
		}
		out = append(out, l.row(m, l.shown[i], i == l.at && (focused || showSelected), focused && m.dialog == nil, ws, w))
	}
	return out
}

// row is a row as exactly w cells. Where it is under the cursor of the focused pane it is one bar, so that no colour in
// it is hard to read.
func (l *list[T]) row(m *Model, x T, selected, focused bool, ws []int, w int) string {
	state := l.look(x)
	marked := len(l.marks) > 0 && l.marks[l.key(x)]
	var b strings.Builder
	bar := selected && focused
	put := func(p paint, s string) {
		if bar {
			p = ""
		}
		b.WriteString(p.of(s))
	}
	switch {
	case selected && marked:
		put(m.accent, "▐")
	case selected:
		put(m.accent, "▌")
	case marked:
		put(m.accent, "+")
	default:
		b.WriteByte(' ')
	}
	put(state.paint, state.glyph)
	n := 0
	for i, c := range l.cols {
		if ws[i] == 0 {
			continue
		}
		b.WriteString(separator(n))
		n++
		text, p := c.cell(x, ws[i])
		if c.end {
			text = tail(text, ws[i])
		} else {
			text = cell(text, ws[i])
		}
		if selected && p == "" {
			p = m.marked
		}
		put(p, text)
	}
	s := fit(b.String(), w)
	if bar {
		return m.selected.of(s)
	}
	return s
}

func separator(i int) string {
	if i == 0 {
		return " "
	}
	return "  "
}

// heading is the line of column titles, with an arrow at the one that the list is sorted by.
func (l *list[T]) heading(m *Model, ws []int, w int) string {
	s := "  "
	n := 0
	for i, c := range l.cols {
		if ws[i] == 0 {
			continue
		}
		title := c.title
		if i == l.sorted {
			arrow := "↑"
			if l.down {
				arrow = "↓"
			}
			title = cut(title, ws[i]-1) + arrow
		}
		s += separator(n) + cell(title, ws[i])
		n++
	}
	return m.faint.of(fit(s, w))
}
