package tui

import (
	"fmt"
	"slices"
	"strings"
)

// cursor is a place in a list. It follows the identity of the row it is on, not the row's number: rows that come, go
// and move above it leave it where it is.
type cursor struct {
	at, top int
	id      string
	page    int // how many rows were drawn last
	follow  bool
}

func (c *cursor) paging() int { return max(c.page, 1) }

// move goes d rows down, or up.
func (c *cursor) move(d, n int) { c.at = max(min(c.at+d, n-1), 0) }

// kind is what the rows of a list are: how they are named, drawn, sorted and found.
type kind[T any] struct {
	title   string
	key     func(T) string            // the identity of a row
	text    func(T) string            // what the words of a filter look at
	fields  map[string]func(T) string // what `field:value` in a filter looks at
	look    func(T) look              // the glyph before the row
	columns []column[T]
	groups  []grouping[T]
	fault   func(T) bool     // something is wrong with the row
	empty   func() [2]string // what a list without rows says, and why
}

// grouping is a way to put rows together.
type grouping[T any] struct {
	name string
	of   func(T) string
}

// list is rows with a cursor, a filter, an order and marks.
type list[T any] struct {
	kind[T]
	cursor
	all, shown []T // in the order that is shown

	query  string
	terms  []term
	faults bool
	hay    map[string]string // text of rows in lower case by key, made while a filter is set

	cols    []column[T] // those that are chosen
	sorted  int         // in cols, or -1 for the order in which the rows come
	down    bool        // in descending order
	grouped int         // in groups, or -1
	widths  []int       // of cols as drawn last, 0 for one that is not shown
	natural []T         // the rows as they came

	marks  map[string]bool
	anchor string // the row that a range of marks begins at
}

func newList[T any](k kind[T]) *list[T] {
	return &list[T]{kind: k, cols: k.columns, sorted: -1, grouped: -1, marks: map[string]bool{}}
}

// lister is a list, whatever its rows are.
type lister interface {
	mover
	name() string
	filter(query string)
	filtered() string
	count() (shown, all int)
	goTo(id string) bool
	toggleFaults()
	faultsOnly() bool
	mark()
	markRange()
	markAll()
	unmark() bool
	marked() int
	choose(columns []string) string
	order(by string) string
	sortBy(d int) string
	reverse()
	regroup() string
	describe() string
	columnNames() []string
	clicked(line int) bool
}

func (l *list[T]) name() string            { return l.title }
func (l *list[T]) filtered() string        { return l.query }
func (l *list[T]) faultsOnly() bool        { return l.faults }
func (l *list[T]) count() (shown, all int) { return len(l.shown), len(l.all) }
func (l *list[T]) marked() int             { return len(l.marks) }

// set replaces the rows. Marks of rows that are gone go with them.
func (l *list[T]) set(rows []T) {
	l.natural, l.hay = rows, nil
	l.arrange()
	if len(l.marks) == 0 {
		return
	}
	there := make(map[string]bool, len(l.marks))
	for _, x := range rows {
		if k := l.key(x); l.marks[k] {
			there[k] = true
		}
	}
	l.marks = there
}

// arrange puts the rows in their order and filters them.
func (l *list[T]) arrange() {
	l.all = l.natural
	if by := l.comparing(); by != nil {
		l.all = slices.Clone(l.natural)
		slices.SortStableFunc(l.all, by)
	}
	l.refilter()
}

// comparing is the order that is asked for, nil where that is the one in which the rows come.
func (l *list[T]) comparing() func(a, b T) int {
	var by func(a, b T) int
	if l.sorted >= 0 {
		by = l.cols[l.sorted].by
		if l.down {
			up := by
			by = func(a, b T) int { return up(b, a) }
		}
	}
	if l.grouped < 0 {
		return by
	}
	of := l.groups[l.grouped].of
	return func(a, b T) int {
		if c := strings.Compare(of(a), of(b)); c != 0 || by == nil {
			return c
		}
		return by(a, b)
	}
}

// filter shows only the rows that every term of query agrees to.
func (l *list[T]) filter(query string) {
	l.query, l.terms = query, l.parse(query)
	l.refilter()
}

func (l *list[T]) toggleFaults() {
	l.faults = !l.faults && l.fault != nil
	l.refilter()
}

func (l *list[T]) refilter() {
	if len(l.terms) == 0 && !l.faults {
		l.shown = l.all
		l.find()
		return
	}
	l.shown = make([]T, 0, min(len(l.all), 256))
	for _, x := range l.all {
		if (!l.faults || l.fault(x)) && l.agrees(x) {
			l.shown = append(l.shown, x)
		}
	}
	l.find()
}

// find puts the cursor back on its row. Where that is gone, it stays at its number.
func (l *list[T]) find() {
	n := len(l.shown)
	if n == 0 {
		// The identity is kept: a filter that matches nothing for a moment must not lose the place.
		l.at = 0
		return
	}
	if l.follow && l.at == 0 {
		l.id = l.key(l.shown[0])
		return
	}
	if l.id == "" || l.at < n && l.key(l.shown[l.at]) == l.id {
		l.settle()
		return
	}
	for i, x := range l.shown {
		if l.key(x) == l.id {
			l.at = i
			return
		}
	}
	l.settle()
}

// settle makes the row under the cursor the one that it follows.
func (l *list[T]) settle() {
	l.move(0, len(l.shown))
	if len(l.shown) > 0 {
		l.id = l.key(l.shown[l.at])
	}
}

// step moves the cursor by d rows.
func (l *list[T]) step(d int) {
	l.move(d, len(l.shown))
	l.settle()
}

// goTo puts the cursor on the row named id, if it is shown.
func (l *list[T]) goTo(id string) bool {
	for i, x := range l.shown {
		if l.key(x) == id {
			l.at, l.id = i, id
			return true
		}
	}
	return false
}

// current is the row under the cursor.
func (l *list[T]) current() (x T, ok bool) {
	if l.at < len(l.shown) {
		return l.shown[l.at], true
	}
	return x, false
}

// chosen is what an act is about: the marked rows in their order, or else the one under the cursor.
func (l *list[T]) chosen() []T {
	var out []T
	if len(l.marks) > 0 {
		for _, x := range l.all {
			if l.marks[l.key(x)] {
				out = append(out, x)
			}
		}
	}
	if x, ok := l.current(); ok && len(out) == 0 {
		out = append(out, x)
	}
	return out
}

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
		if at == 0 || l.cols[at-1].by != nil {
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
	l.grouped++
	if l.grouped >= len(l.groups) {
		l.grouped = -1
	}
	l.arrange()
	return l.describe()
}

// describe says how the list is ordered and grouped.
func (l *list[T]) describe() string {
	s := "in its usual order"
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
