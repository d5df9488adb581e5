package screen

import (
	"context"
	"time"

	"fleetdeck/fleet/launch"
)

// repaint makes an agent draw its whole screen again, by a size change there and back:
//
//	idle ──► changed ──the agent has drawn, or does not──► restored ──quiet──► idle
//
// The two changes must be told apart: an agent that finds its old size when it looks has nothing to do.
type repaint struct {
	step     repaintStep
	since    time.Time     // of step, or of the end of the last repaint
	lastData time.Time     // when the agent printed something
	patience time.Duration // how long the agent may take to begin
	was      size
	now      size
}

type size struct{ cols, rows int }

type repaintStep int

const (
	repaintIdle repaintStep = iota
	repaintChanged
	repaintRestored
)

const (
	// quiet is how long an agent prints nothing once it has drawn.
	quiet = 100 * time.Millisecond
	// repaintPatience is how long it may take to begin. One that goes on printing is waited for five times as long.
	repaintPatience = 400 * time.Millisecond
	// repaintPause keeps the mirror of an agent that floods from asking all the time.
	repaintPause = 10 * time.Second
)

func (r *repaint) running() bool { return r.step != repaintIdle }

// due reports whether a repaint may begin.
func (r *repaint) due() bool {
	return !r.running() && time.Since(r.lastData) >= quiet && time.Since(r.since) >= repaintPause
}

// settled reports whether the agent has drawn after the last change, or will not.
func (r *repaint) settled() bool {
	calm := time.Since(r.lastData) >= quiet
	drawn := r.lastData.After(r.since)
	waited := time.Since(r.since)
	return calm && (drawn || waited >= r.patience) || waited >= 5*r.patience
}

func (r *repaint) enter(step repaintStep) { r.step, r.since = step, time.Now() }

// mendScreen goes on with the repaint of a torn screen that somebody looks at.
func (m *Mirror) mendScreen(ctx context.Context) {
	r := &m.repaint
	switch {
	case r.running() && !r.settled():
	case r.step == repaintChanged:
		// Somebody else may have given it another size meanwhile: then that was the repaint.
		if now, err := m.size(ctx); err == nil && now == r.now {
			m.resize(ctx, r.was)
		}
		r.enter(repaintRestored)
	case r.step == repaintRestored:
		r.enter(repaintIdle)
		m.touch()
	case m.torn && m.caughtUp && m.viewed() && r.due():
		m.torn = false
		now, err := m.size(ctx)
		if err != nil {
			return
		}
		r.was, r.now = now, size{now.cols, now.rows - 1}
		if now.rows == 1 {
			r.now.rows = 2
		}
		m.resize(ctx, r.now)
		r.enter(repaintChanged)
	}
}

func (m *Mirror) viewed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.viewers > 0
}

func (m *Mirror) size(ctx context.Context) (size, error) {
	var s launch.Status
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s, err := m.term.Status(ctx)
	return size{s.Cols, s.Rows}, err
}

// resize asks for a size. If that fails the stream will break too.
func (m *Mirror) resize(ctx context.Context, s size) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m.term.Resize(ctx, s.cols, s.rows)
}
