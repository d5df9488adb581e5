package tui

import "slices"

// mark marks the row under the cursor, or takes its mark away, and goes on to the next.
func (l *list[T]) mark() {
	x, ok := l.current()
	if !ok {
		return
	}
	k := l.key(x)
	if l.marks[k] {
		delete(l.marks, k)
	} else {
		l.marks[k] = true
	}
	l.anchor = k
	l.step(1)
}

// markRange marks all rows from the last that was marked by itself to the one under the cursor.
func (l *list[T]) markRange() {
	from := slices.IndexFunc(l.shown, func(x T) bool { return l.key(x) == l.anchor })
	if len(l.shown) == 0 {
		return
	}
	if from < 0 {
		from = l.at
		l.anchor = l.key(l.shown[l.at])
	}
	for i := min(from, l.at); i <= max(from, l.at); i++ {
		l.marks[l.key(l.shown[i])] = true
	}
}

// markAll marks every row that is shown, or takes all marks away where all have one.
func (l *list[T]) markAll() {
	all := true
	for _, x := range l.shown {
		all = all && l.marks[l.key(x)]
	}
	if all {
		l.unmark()
		return
	}
	for _, x := range l.shown {
		l.marks[l.key(x)] = true
	}
}

// unmark takes all marks away, and reports whether there were any.
func (l *list[T]) unmark() bool {
	had := len(l.marks) > 0
	l.marks, l.anchor = map[string]bool{}, ""
	return had
}
