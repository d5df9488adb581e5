package tui

import "strings"

// cursor is a place in a list. It follows the identity of the row it is on, not the row's number: rows that come, go
// and move above it leave it where it is.
type cursor struct {
	at, top int
	id      string
	page    int // how many rows were drawn last
	follow  bool
}

// move goes d rows down, or up.
func (c *cursor) move(d, n int) { c.at = max(min(c.at+d, n-1), 0) }

// scroll gives the first row to draw so that the cursor is among h rows.
func (c *cursor) scroll(n, h int) int {
	c.page = max(h, 1)
	if c.at < c.top {
		c.top = c.at
	}
	if c.at >= c.top+h {
		c.top = c.at - h + 1
	}
	c.top = max(min(c.top, n-h), 0)
	return c.top
}

// roll is a list of rows with a cursor and a filter.
type roll[T any] struct {
	cursor
	all, shown []T
	key        func(T) string // the identity of a row
	text       func(T) string // what a filter looks at

	query string
	words []string
	hay   []string // text of all in lower case, made when a filter is set
}

// set replaces the rows.
func (r *roll[T]) set(all []T) {
	r.all, r.hay = all, nil
	r.refilter()
}

// filter shows only the rows that hold every word of query, and none of its words that start with "!".
func (r *roll[T]) filter(query string) {
	r.query, r.words = query, strings.Fields(strings.ToLower(query))
	r.refilter()
}

func (r *roll[T]) refilter() {
	if len(r.words) == 0 {
		r.shown = r.all
		r.find()
		return
	}
	if r.hay == nil {
		r.hay = make([]string, len(r.all))
		for i, row := range r.all {
			r.hay[i] = strings.ToLower(r.text(row))
		}
	}
	r.shown = make([]T, 0, min(len(r.all), 256))
	for i, row := range r.all {
		if matches(r.hay[i], r.words) {
			r.shown = append(r.shown, row)
		}
	}
	r.find()
}

// find puts the cursor back on its row. Where that is gone, it stays at its number.
func (r *roll[T]) find() {
	n := len(r.shown)
	if n == 0 {
		// The identity is kept: a filter that matches nothing for a moment must not lose the place.
		r.at = 0
		return
	}
	if r.follow && r.at == 0 {
		r.id = r.key(r.shown[0])
		return
	}
	if r.id == "" || r.at < n && r.key(r.shown[r.at]) == r.id {
		r.settle()
		return
	}
	for i, row := range r.shown {
		if r.key(row) == r.id {
			r.at = i
			return
		}
	}
	r.settle()
}

// settle makes the row under the cursor the one that it follows.
func (r *roll[T]) settle() {
	r.move(0, len(r.shown))
	if len(r.shown) > 0 {
		r.id = r.key(r.shown[r.at])
	}
}

// step moves the cursor by d rows.
func (r *roll[T]) step(d int) {
	r.move(d, len(r.shown))
	r.settle()
}

// goTo puts the cursor on the row named id, if it is shown.
func (r *roll[T]) goTo(id string) bool {
	for i, row := range r.shown {
		if r.key(row) == id {
			r.at, r.id = i, id
			return true
		}
	}
	return false
}

// current is the row under the cursor.
func (r *roll[T]) current() (row T, ok bool) {
	if r.at < len(r.shown) {
		return r.shown[r.at], true
	}
	return row, false
}

// matches reports whether hay, in lower case, holds every word and none of those that start with "!".
func matches(hay string, words []string) bool {
	for _, w := range words {
		if not, ok := strings.CutPrefix(w, "!"); ok {
			if not != "" && strings.Contains(hay, not) {
				return false
			}
		} else if !strings.Contains(hay, w) {
			return false
		}
	}
	return true
}
