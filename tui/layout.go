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

// has reports whether a cell lies in r.
func (r rect) has(x, y int) bool { return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h }

// place is where the detail pane is.
type place int

const (
	placeAuto   place = iota // beside the list where the screen is wide, below it elsewhere
	placeBeside              // beside it on any screen that has room for both
	placeBelow
	placeClosed
)

func (p place) String() string {
	return [...]string{"where there is room", "beside the list", "below the list", "closed"}[p]
}

// frame is where the parts of the console are. A part that has no room has an empty rect. Every pane's first line is
// its title.
type frame struct {
	tooSmall bool
	beside   bool // panes stand side by side

	header, alerts, notices, footer rect
	list                            rect // the list of the view
	detail                          rect // what is selected in the list
	reservations, events            rect // home only
}

// shape is what a frame follows from.
type shape struct {
	w, h            int
	view            view
	alerts, notices int   // lines that there are to say
	strip           bool  // there are slots to show in a line of their own
	entries         bool  // there are reservations to show
	place           place // of the detail pane
	zoomed          bool  // the pane that has the focus has all of the room
	pane            pane
	share           int // how much of the room the detail pane was given, in percent; 0 is the usual
}

// reserves reports whether the reservations are worth rows that the list of trees could have. While they have the focus they stay.
func (s shape) reserves() bool { return s.entries || s.pane == paneReservations }

// arrange gives the places of the parts. It is a pure function; no two places overlap, and none reaches over the edge.
func arrange(s shape) frame {
	w, h := s.w, s.h
	if w < minWidth || h < minHeight {
		return frame{tooSmall: true}
	}
	var f frame
	top := 1
	if h >= 16 {
		top = 2
	}
	if h >= 22 && s.strip {
		top = 3
	}
	f.header = rect{0, 0, w, top}
	alerts := min(s.alerts, h/8)
	f.alerts = rect{0, top, w, alerts}
	f.footer = rect{0, h - 1, w, 1}
	notices := min(s.notices, h/5)
	f.notices = rect{0, h - 1 - notices, w, notices}

	body := rect{0, top + alerts, w, h - 1 - notices - top - alerts}
	switch {
	case s.zoomed && s.pane == paneDetail:
		f.detail = body
	case s.zoomed:
		f.list = body
	case s.place == placeClosed:
		f.only(body, s)
	case s.place == placeBeside && w >= 2*minWidth, s.place == placeAuto && w >= wideWidth:
		f.sideBySide(body, s)
	default:
		f.stack(body, s)
	}
	return f
}

// between is the width of what separates panes side by side: a line, and a space on either side of it.
const between = 3

// only leaves the detail out.
func (f *frame) only(body rect, s shape) {
	f.list = body
	if s.view != viewTrees || body.h < 19 || !s.reserves() {
		return
	}
	bottom := min(max(body.h/5, 4), 8)
	f.list.h -= bottom
	f.reservations = rect{body.x, body.y + f.list.h, body.w, bottom}
}

// sideBySide puts the detail at the right of the list.
func (f *frame) sideBySide(body rect, s shape) {
	f.beside = true
	bottom := 0
	if s.view == viewTrees && body.h >= 18 {
		bottom = min(max(body.h/4, 5), 12)
	}
	// An agent's screen is most often 80 columns wide.
	right := min(max(body.w*45/100, body.w-110), 81)
	if body.w >= 200 {
		right = body.w / 2
	}
	if s.share > 0 {
		right = body.w * s.share / 100
	}
	right = max(min(right, body.w-between-minWidth), 20)
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
func (f *frame) stack(body rect, s shape) {
	rest := body
	take := func(h int) rect {
		r := rect{rest.x, rest.y + rest.h - h, rest.w, h}
		rest.h -= h
		return r
	}
	if s.view == viewTrees {
		if body.h >= 34 {
			f.events = take(min(body.h/6, 8))
		}
		if body.h >= 19 && s.reserves() {
			f.reservations = take(min(max(body.h/6, 4), 8))
		}
	}
	if rest.h >= 12 {
		h := rest.h / 2
		if s.share > 0 {
			h = max(min(rest.h*s.share/100, rest.h-5), 4)
		}
		f.detail = take(h)
	}
	f.list = rest
}
