package tui

import (
	"fmt"
	"slices"
	"strings"
)

// choose shows these columns in this order. It says what is wrong with them.
func (l *list[T]) choose(names []string) string {
	var cols []column[T]
	for _, n := range names {
		i := slices.IndexFunc(l.columns, func(c column[T]) bool { return strings.EqualFold(c.title, n) })
		if i < 0 {
			return unknown("column", n, l.columnNames())
		}
		cols = append(cols, l.columns[i])
	}
	if len(cols) == 0 {
		return "a list without columns shows nothing: name one or more of " + strings.Join(l.columnNames(), ", ")
	}
	l.cols, l.sorted = cols, -1
	return ""
}

func (l *list[T]) columnNames() []string {
	out := make([]string, len(l.columns))
	for i, c := range l.columns {
		out[i] = strings.ToLower(c.title)
	}
	return out
}

// draws reports whether the column was drawn last time.
func (l *list[T]) draws(title string) bool {
	for i, c := range l.cols {
		if c.title == title {
			return i < len(l.widths) && l.widths[i] > 0
		}
	}
	return false
}

// order sorts by the column named by, in descending order where a minus stands before it. It says what is wrong with it.
func (l *list[T]) order(by string) string {
	name, down := strings.CutPrefix(by, "-")
	i := slices.IndexFunc(l.cols, func(c column[T]) bool { return strings.EqualFold(c.title, name) })
	if i < 0 || l.cols[i].by == nil {
		var there []string
		for _, c := range l.cols {
			if c.by != nil {
				there = append(there, strings.ToLower(c.title))
			}
		}
		return unknown("column to sort by", name, there)
	}
	l.sorted, l.down = i, down
	l.arrange()
	return ""
}

// sortBy goes d columns further, over the order in which the rows come. It says what it sorts by then.
func (l *list[T]) sortBy(d int) string {
	n := len(l.cols) + 1
	at := l.sorted + 1 // 0 is the order in which they come
	for range n {
		at = (at + d + n) % n
		if at == 0 || l.cols[at-1].by != nil && (l.many || !l.cols[at-1].many) {
			break
		}
	}
	l.sorted, l.down = at-1, false
	l.arrange()
	return l.describe()
}

// reverse turns the order around.
func (l *list[T]) reverse() {
	if l.sorted < 0 {
		for i, c := range l.cols {
			if c.by != nil {
				l.sorted, l.down = i, false
				break
			}
		}
	}
	l.down = !l.down
	l.arrange()
}

// regroup puts the rows together by the next thing, or not at all. It says by what.
func (l *list[T]) regroup() string {
	for l.grouped++; l.grouped < len(l.groups) && l.groups[l.grouped].many && !l.many; l.grouped++ {
	}
	if l.grouped >= len(l.groups) {
		l.grouped = -1
	}
	l.arrange()
	return l.describe()
}

// describe says how the list is ordered and grouped.
func (l *list[T]) describe() string {
	s := "in the usual order"
	if l.sorted >= 0 {
		s = "by " + strings.ToLower(l.cols[l.sorted].title)
		if l.down {
			s += ", descending"
		}
	}
	if l.grouped >= 0 {
		s += fmt.Sprintf(", grouped by %s", l.groups[l.grouped].name)
	}
	return s
}
