package screen

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
)

const (
	// idleAfter is how long a mirror goes on after its last reader left, so that one who comes back at once finds it warm.
	idleAfter = 5 * time.Second
	// dropAfter is how much later it gives up the screen, too, and would have to begin anew.
	dropAfter = time.Minute
	// frameTime is the shortest time between two snapshots.
	frameTime = 33 * time.Millisecond
	// syncPatience is how long an update that the agent wants seen as a whole may take.
	syncPatience = 200 * time.Millisecond
	// mendPatience is how long readers wait for a screen whose beginning is lost to be repainted.
	mendPatience = 2 * time.Second
)

// Mirror keeps a [Screen] of a terminal while somebody looks.
//
// It starts with the first reader, from what the terminal's holder still has of the output, and stops some seconds
// after the last one left. Where the beginning is lost, or the output came faster than it can be drawn and some was
// skipped, it makes the agent repaint by changing the terminal's size there and back.
type Mirror struct {
	ctx  context.Context
	term launch.Terminal
	// How long to go on without readers, and to keep the screen then.
	idle, drop time.Duration
	patience   time.Duration // how long readers wait for a screen to be mended

	mu      sync.Mutex
	scr     *Screen       // nil before the first answer
	changed chan struct{} // closed and replaced whenever something below changes
	rev     uint64        // of what is on the screen
	shot    fleet.Screen  // the newest snapshot; its Rev says of what
	shotAt  time.Time
	readers int
	viewers int       // the readers who look at the screen
	left    time.Time // when the last reader left
	running bool
	ended   bool  // nothing new will come
	known   bool  // the screen shows what the terminal shows
	err     error // why the terminal cannot be asked; nil after an answer

	// The fields below are those of the goroutine that follows; mu guards offset.

	offset   uint64    // of the next byte
	began    time.Time // when this goroutine began to follow
	caughtUp bool      // all that had been printed by then is drawn
	torn     bool      // output was lost and no repaint has come since
	repaint  repaint
	dirty    time.Time // since when the screen has changed without a new rev
}

// preluder is a terminal that knows the modes that were set at a place in its output.
type preluder interface {
	Prelude(ctx context.Context, offset uint64) ([]byte, error)
}

// NewMirror makes a mirror of term. It works until ctx ends, while somebody looks.
func NewMirror(ctx context.Context, term launch.Terminal) *Mirror {
	return &Mirror{
		ctx: ctx, term: term, idle: idleAfter, drop: dropAfter, patience: mendPatience, changed: make(chan struct{}),
		repaint: repaint{patience: repaintPatience},
		// Readers keep revs beyond a restart of the daemon: the next mirror's are newer.
		rev: uint64(time.Now().UnixMicro()),
	}
}

// Wait gives the screen once it differs from that of rev; 0 asks for the present one. Where the terminal cannot be
// found at all it gives the error.
func (m *Mirror) Wait(ctx context.Context, rev uint64) (fleet.Screen, error) {
	m.enter(1)
	defer m.leave(1)
	for {
		m.mu.Lock()
		changed, err := m.changed, m.err
		ready := m.known && m.rev != rev
		pause := frameTime - time.Since(m.shotAt)
		m.mu.Unlock()
		switch {
		case ready && pause <= 0:
			return m.Snapshot(), nil
		case ready:
			changed = nil
		case provable(err):
			return fleet.Screen{}, err
		default:
			pause = time.Hour
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-m.ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		if err := errors.Join(ctx.Err(), m.ctx.Err()); err != nil {
			return fleet.Screen{}, err
		}
	}
}

// Snapshot gives the screen as it was last drawn, without waiting for anything.
func (m *Mirror) Snapshot() fleet.Screen {
	m.mu.Lock()
	scr, rev := m.scr, m.rev
	if scr == nil || m.shot.Rev == rev {
		defer m.mu.Unlock()
		return m.shot
	}
	m.mu.Unlock()
	shot := scr.Snapshot()
	shot.Rev = rev
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shot, m.shotAt = shot, time.Now()
	return shot
}

// Modes gives the terminal's modes as they are known.
func (m *Mirror) Modes() Modes {
	m.mu.Lock()
	scr := m.scr
	m.mu.Unlock()
	if scr == nil {
		return Modes{}
	}
	return scr.Modes()
}

// CursorAt gives the place of the cursor, from 0,0, once the agent's output up to offset is drawn.
func (m *Mirror) CursorAt(ctx context.Context, offset uint64) (x, y int, err error) {
	m.enter(0)
	defer m.leave(0)
	for {
		m.mu.Lock()
		changed, scr, err := m.changed, m.scr, m.err
		drawn := scr != nil && m.offset >= offset
		m.mu.Unlock()
		if drawn {
			x, y = scr.Cursor()
			return x, y, nil
		}
		if provable(err) {
			return 0, 0, err
		}
		select {
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		case <-m.ctx.Done():
			return 0, 0, m.ctx.Err()
		case <-changed:
		}
	}
}

// provable reports whether err says that there is no terminal, rather than that it could not be asked.
func provable(err error) bool {
	return errors.Is(err, launch.ErrGone) || errors.Is(err, launch.ErrNotStarted)
}

func (m *Mirror) enter(viewers int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers++
	m.viewers += viewers
	if !m.running && !m.ended && m.ctx.Err() == nil {
		m.running = true
		go m.run()
	}
}

func (m *Mirror) leave(viewers int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers--
	m.viewers -= viewers
	m.left = time.Now()
}

// idling reports whether there is nothing to do: the terminal has ended, or nobody has looked for some time.
func (m *Mirror) idling() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.idlingLocked()
}

func (m *Mirror) idlingLocked() bool {
	return m.ctx.Err() != nil || m.ended || m.readers == 0 && time.Since(m.left) >= m.idle
}

// stop ends the mirror's work if there is nothing to do. From then on the next reader starts it anew, so that whoever
// called must return.
func (m *Mirror) stop() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = !m.idlingLocked()
	return !m.running
}

// rest gives up what a stopped mirror does not need: the screen's emulator at the end, all of the screen after a while.
func (m *Mirror) rest() {
	m.Snapshot() // the last one is kept
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.running || m.scr == nil:
	case m.ended || m.ctx.Err() != nil:
		m.scr.Close()
	default:
		time.AfterFunc(m.drop, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if !m.running && m.scr != nil && time.Since(m.left) >= m.drop {
				m.scr.Close()
				m.scr, m.offset, m.known = nil, 0, false
			}
		})
	}
}

// update changes what readers see, and wakes them.
func (m *Mirror) update(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}

// run follows the terminal as long as somebody looks, and again when the connection breaks.
func (m *Mirror) run() {
	defer m.rest()
	for pause := 50 * time.Millisecond; !m.stop(); pause = min(2*pause, 2*time.Second) {
		at := m.offset
		err := m.follow() // it also returns when there is nothing to do
		m.update(func() { m.err = err })
		if m.offset > at {
			pause = 50 * time.Millisecond
		}
		select {
		case <-m.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// follow draws what comes until the stream ends or nobody looks.
func (m *Mirror) follow() error {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	status, err := m.term.Status(ctx)
	if err != nil {
		return err
	}
	frames, err := m.term.Follow(ctx, launch.FollowOptions{Output: true, From: m.offset})
	if err != nil {
		return err
	}
	if m.scr == nil {
		scr := New(status.Cols, status.Rows)
		m.update(func() { m.scr = scr })
	}
	m.scr.Resize(status.Cols, status.Rows)
	m.update(func() { m.err = nil })
	m.began, m.caughtUp = time.Now(), m.offset >= status.Output

	tick := time.NewTicker(frameTime)
	defer tick.Stop()
	for {
		select {
		case frame, ok := <-frames:
			if !ok {
				return nil
			}
			began := time.Now()
			m.take(ctx, frame)
			m.caughtUp = m.caughtUp || m.offset >= status.Output
			if len(frames) == cap(frames) && cap(frames) > 0 {
				// A flood. The holder skips what is not taken in time, so half a core is enough to show it.
				time.Sleep(min(time.Since(began), 100*time.Millisecond))
			}
		case <-tick.C:
			if m.idling() {
				return nil
			}
			m.mendScreen(ctx)
		}
		m.publish()
	}
}

// take draws one frame.
func (m *Mirror) take(ctx context.Context, frame launch.Frame) {
	if len(frame.Data) > 0 {
		data := frame.Data
		if frame.Offset != m.offset {
			data = m.resume(ctx, frame)
			m.torn = true
		}
		m.scr.Write(data)
		m.touch()
		m.repaint.lastData = time.Now()
		m.update(func() { m.offset = frame.Offset + uint64(len(frame.Data)) })
	}
	if s := frame.Status; s != nil {
		m.scr.Resize(s.Cols, s.Rows)
		m.touch()
		if s.Exit != nil {
			m.caughtUp, m.torn = true, false // whatever was lost, nobody repaints it
			m.update(func() { m.ended = true })
		}
	}
}

func (m *Mirror) touch() {
	if m.dirty.IsZero() {
		m.dirty = time.Now()
	}
}

// resume makes the screen ready for output that does not follow on what it has seen, and gives that output from a place
// on where it can be understood.
func (m *Mirror) resume(ctx context.Context, frame launch.Frame) []byte {
	m.scr.Write([]byte("\x18\x1b[m")) // break off a sequence whose end was lost
	if t, ok := m.term.(preluder); ok {
		if modes, err := t.Prelude(ctx, frame.Offset); err == nil {
			m.scr.Write(modes)
		}
	}
	const look = 4 << 10
	if i := bytes.IndexAny(frame.Data[:min(look, len(frame.Data))], "\n\x1b"); i > 0 {
		return frame.Data[i:]
	}
	return frame.Data
}

// publish gives the screen a new rev where it has changed and is fit to be seen.
func (m *Mirror) publish() {
	m.mu.Lock()
	known, ended := m.known, m.ended
	m.mu.Unlock()
	whole := m.caughtUp && !m.torn || time.Since(m.began) > m.patience
	switch {
	case ended:
	case m.repaint.running(), !known && !whole:
		return // better the old screen, or none for a moment, than half of one
	case m.scr.Modes().Sync && time.Since(m.dirty) < syncPatience:
		return
	}
	if m.dirty.IsZero() && known {
		return
	}
	m.dirty = time.Time{}
	m.update(func() { m.known = true; m.rev++ })
}
