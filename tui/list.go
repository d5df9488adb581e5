package tui

import (
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
	many bool // for a fleet of many hosts
}

// list is rows with a cursor, a filter, an order and marks.
type list[T any] struct {
	kind[T]
	cursor
	all, shown []T  // in the order that is shown
	many       bool // the rows are of many hosts

	query  string
	terms  []term
	faults bool
	hay    []string // the text of each of all in lower case, made while a filter looks for words

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
	l.natural = rows
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
	l.all, l.hay = l.natural, nil
	if l.sorted >= 0 {
		by := l.cols[l.sorted].by
		if l.down {
			up := by
			by = func(a, b T) int { return up(b, a) }
		}
		l.all = slices.Clone(l.natural)
		slices.SortStableFunc(l.all, by)
	}
	if l.grouped >= 0 {
		l.all = together(l.all, l.groups[l.grouped].of)
	}
	l.refilter()
}

// together is rows with those of each group one after the other. It asks for the group of each row once.
func together[T any](rows []T, of func(T) string) []T {
	type member struct {
		group string
		row   T
	}
	all := make([]member, len(rows))
	for i, x := range rows {
		all[i] = member{of(x), x}
	}
	slices.SortStableFunc(all, func(a, b member) int { return strings.Compare(a.group, b.group) })
	out := make([]T, len(rows))
	for i, x := range all {
		out[i] = x.row
	}
	return out
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
	for i, x := range l.all {
		if (!l.faults || l.fault(x)) && l.agrees(i) {
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
