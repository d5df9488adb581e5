package observe

import (
	"context"
	"reflect"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

const (
	// settleTime gathers what changes together into one snapshot.
	settleTime = 15 * time.Millisecond
	// pollEvery covers whatever tells nobody that it changed.
	pollEvery = time.Second
	// freshEvery is how often a snapshot is made that differs in its age only.
	freshEvery = 2 * time.Second
	// rediscoverEvery is how often the roots are searched for new trees.
	rediscoverEvery = 30 * time.Second
	keepEvents      = 500
)

// Live keeps a current snapshot. It is safe for use by several goroutines.
type Live struct {
	Sources
	facts *tree.Observer
	poke  chan struct{}

	mu     sync.Mutex // guards all below
	snap   fleet.Snapshot
	more   chan struct{} // closed at the next snapshot
	events []fleet.Event
}

// NewLive makes an observer; Run keeps it current.
func NewLive(s Sources) *Live {
	return &Live{Sources: s, facts: tree.NewObserver(), poke: make(chan struct{}, 1), more: make(chan struct{})}
}

// Snapshot returns the current snapshot once it is newer than rev.
func (l *Live) Snapshot(ctx context.Context, rev uint64) (fleet.Snapshot, error) {
	for {
		l.mu.Lock()
		snap, more := l.snap, l.more
		l.mu.Unlock()
		if snap.Rev > rev {
			return snap, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fleet.Snapshot{}, ctx.Err()
		}
	}
}

// Poke asks for a look now.
func (l *Live) Poke() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// Run keeps the snapshot current until ctx ends.
func (l *Live) Run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { l.followEvents(ctx) })

	file := l.Book.Watch(ctx)
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	var configured []fleet.Tree
	var discovered, made time.Time
	for {
		if time.Since(discovered) > rediscoverEvery {
			configured, discovered = l.configured(), time.Now()
		}
		if l.look(ctx, configured, time.Since(made) > freshEvery) {
			made = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-file:
		case <-l.poke:
		case <-poll.C:
			continue
		}
		select {
		case <-time.After(settleTime):
		case <-ctx.Done():
			return
		}
	}
}

// look makes a snapshot and publishes it if it says something new, or if even nothing new must be said.
func (l *Live) look(ctx context.Context, configured []fleet.Tree, must bool) bool {
	seen := l.read(ctx)
	if ctx.Err() != nil {
		return false
	}
	next := l.snapshot(seen, withBusy(configured, seen))
	for i := range next.Trees {
		f := l.facts.Facts(ctx, next.Trees[i].Tree, l.Poke)
		next.Trees[i].Branch, next.Trees[i].Dirty, next.Trees[i].Missing = f.Branch, f.Dirty, f.Missing
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next.Events = l.events
	if !must && same(l.snap, next) {
		return false
	}
	next.Rev = l.snap.Rev + 1
	l.snap = next
	close(l.more)
	l.more = make(chan struct{})
	return true
}

// same reports whether a and b differ only in when they were made.
func same(a, b fleet.Snapshot) bool {
	for _, s := range []*fleet.Snapshot{&a, &b} {
		s.Rev, s.At, s.File.ReadAt, s.Daemon.AnsweredAt = 0, fleet.Instant{}, time.Time{}, time.Time{}
	}
	if !reflect.DeepEqual(a.Members, b.Members) || !reflect.DeepEqual(a.Launches, b.Launches) || !reflect.DeepEqual(a.Slots, b.Slots) ||
		!reflect.DeepEqual(a.Lock, b.Lock) || a.Daemon != b.Daemon || a.File != b.File ||
		len(a.Trees) != len(b.Trees) || len(a.Reservations) != len(b.Reservations) || len(a.Events) != len(b.Events) {
		return false
	}
	if n := len(a.Events); n > 0 && a.Events[n-1].Seq != b.Events[n-1].Seq {
		return false
	}
	for i := range a.Trees {
		x, y := a.Trees[i], b.Trees[i]
		x.RemainingS, y.RemainingS = 0, 0
		if x != y {
			return false
		}
	}
	for i := range a.Reservations {
		x, y := a.Reservations[i], b.Reservations[i]
		x.RemainingS, y.RemainingS = 0, 0
		if x != y {
			return false
		}
	}
	return true
}

// followEvents keeps the newest events, and looks again at each.
func (l *Live) followEvents(ctx context.Context) {
	var seq uint64
	for ctx.Err() == nil {
		l.Client.Events(ctx, seq, true, func(e fleet.Event) {
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
			l.Poke()
		})
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery / 2):
			l.Poke()
		}
	}
}
