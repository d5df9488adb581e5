package tui

// headed reports whether a line with the group's name stands before row i, and gives the name.
func (l *list[T]) headed(i int) (group string, ok bool) {
	if l.grouped < 0 {
		return "", false
	}
	of := l.groups[l.grouped].of
	group = of(l.shown[i])
	return group, i == 0 || of(l.shown[i-1]) != group
}

// height is how many lines row i takes, with the line over it.
func (l *list[T]) height(i int) int {
	if _, ok := l.headed(i); ok {
		return 2
	}
	return 1
}

// scroll gives the first row to draw so that the cursor is among h lines.
func (l *list[T]) scroll(h int) int {
	l.page = max(h, 1)
	n := len(l.shown)
	if l.grouped < 0 {
		if l.at < l.top {
			l.top = l.at
		}
		if l.at >= l.top+h {
			l.top = l.at - h + 1
		}
		l.top = max(min(l.top, n-h), 0)
		return l.top
	}
	l.top = max(min(l.top, l.at), 0)
	// From the cursor upwards, as many rows as there is room for: the list begins there at the earliest.
	first, room := l.at, h
	for i := l.at; i >= 0 && n > 0; i-- {
		if room -= l.height(i); room < 0 {
			break
		}
		first = i
	}
	l.top = max(l.top, first)
	return l.top
}

// clicked puts the cursor on the row at a line of what was drawn last, counted from the first row's.
func (l *list[T]) clicked(line int) bool {
	for i := l.top; i < len(l.shown) && line >= 0; i++ {
		if line -= l.height(i); line < 0 {
			l.at = i
			l.settle()
			return true
		}
	}
	return false
}
