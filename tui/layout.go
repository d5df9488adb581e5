package tui

// The smallest screen that the console draws on.
const (
	minWidth  = 40
	minHeight = 10
)

// wideWidth is the width from which panes stand side by side.
const wideWidth = 110

// rect is a place on the screen.
type rect struct{ x, y, w, h int }

// empty reports whether nothing can be drawn in r.
func (r rect) empty() bool { return r.w <= 0 || r.h <= 0 }

// frame is where the parts of the console are. A part that has no room has an empty rect. Every pane's first line is
// its title.
type frame struct {
	tooSmall bool
	wide     bool

	header, alerts, notices, footer rect
	list                            rect // the list of the view
	detail                          rect // what is selected in the list
	reservations, events            rect // home only
}

// arrange gives the places of a view on a screen of w by h cells that has to show so many lines of alerts and of
// notices. It is a pure function; no two places overlap, and none reaches over the edge.
func arrange(w, h int, v view, alerts, notices int) frame {
	if w < minWidth || h < minHeight {
		return frame{tooSmall: true}
	}
	f := frame{wide: w >= wideWidth}
	top := 1
	if h >= 16 {
		top = 2
	}
	f.header = rect{0, 0, w, top}
	alerts = min(alerts, h/8)
	f.alerts = rect{0, top, w, alerts}
	f.footer = rect{0, h - 1, w, 1}
	notices = min(notices, h/5)
	f.notices = rect{0, h - 1 - notices, w, notices}

	body := rect{0, top + alerts, w, h - 1 - notices - top - alerts}
	switch {
	case v == viewEvents:
		f.list = body
	case f.wide:
		f.sideBySide(body, v)
	default:
		f.stack(body, v)
	}
	return f
}

// between is the width of what separates panes side by side: a line, and a space on either side of it.
const between = 3

// sideBySide puts the detail at the right of the list.
func (f *frame) sideBySide(body rect, v view) {
	bottom := 0
	if v == viewTrees && body.h >= 18 {
		bottom = min(max(body.h/4, 5), 12)
	}
	// An agent's screen is most often 80 columns wide.
	right := min(max(body.w*45/100, body.w-110), 81)
	if body.w >= 200 {
		right = body.w / 2
	}
	left := body.w - right - between
	x := body.x + left + between
	f.list = rect{body.x, body.y, left, body.h - bottom}
	f.detail = rect{x, body.y, right, body.h - bottom}
	if bottom > 0 {
		y := body.y + body.h - bottom
		f.reservations = rect{body.x, y, left, bottom}
		f.events = rect{x, y, right, bottom}
	}
}

// stack puts the panes below each other, the lesser ones only where there is room.
func (f *frame) stack(body rect, v view) {
	rest := body
	take := func(h int) rect {
		r := rect{rest.x, rest.y + rest.h - h, rest.w, h}
		rest.h -= h
		return r
	}
	if v == viewTrees {
		if body.h >= 34 {
			f.events = take(min(body.h/6, 8))
		}
		if body.h >= 19 {
			f.reservations = take(min(max(body.h/6, 4), 8))
		}
	}
	if rest.h >= 12 {
		f.detail = take(rest.h / 2)
	}
	f.list = rest
}
