package observe

import (
	"context"
	"time"

	"fleetdeck/fleet"
)

const (
	// keepEvents is how many events a snapshot holds at least, where there are as many.
	keepEvents = 500
	// reconnect is the pause before the event stream is opened again.
	reconnect = 250 * time.Millisecond
	// standing is how long a stream without an event must have been open to be taken for one that stands.
	standing = time.Second
)

// followEvents keeps the newest events, and looks again at each, and when the stream breaks.
func (l *Live) followEvents(ctx context.Context) {
	var seq uint64
	for ctx.Err() == nil {
		opened, heard := time.Now(), false
		l.setStream(opened)
		l.Client.Events(ctx, seq, true, func(e fleet.Event) {
			heard = true
			l.mu.Lock()
			if e.Seq <= seq {
				l.events = nil // another daemon's numbers
			}
			seq = e.Seq
			kept := l.events
			if len(kept) >= 2*keepEvents {
				kept = append([]fleet.Event(nil), kept[len(kept)-keepEvents:]...)
			}
			l.events = append(kept, e)
			l.mu.Unlock()
			l.facts.touch(e.Tree)
			l.Poke()
		})
		l.setStream(time.Time{})
		if heard || time.Since(opened) > standing {
			l.Poke() // the daemon may be gone
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

func (l *Live) setStream(opened time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stream = opened
}

// streams reports whether the event stream stands: whatever the daemon changes is told.
func (l *Live) streams() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.stream.IsZero() && time.Since(l.stream) > standing
}
