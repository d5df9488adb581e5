package observe

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

const (
	// glanceEvery is how often to look at what tells nobody that it changed: who holds the lock, and the small files. It
	// costs a few system calls, and nothing is read that did not change.
	glanceEvery = 350 * time.Millisecond
	// settleTime gathers what changes together into one snapshot; between two of those there is a pause at least.
	settleTime = 4 * time.Millisecond
	pause      = 50 * time.Millisecond
	// trailAfter is when to ask the daemon once more after news: its event comes before the last of what it does then.
	trailAfter = 400 * time.Millisecond
	// bootEvery is how often to ask while agents are booting: the steps of a launch are no events.
	bootEvery = time.Second
	// downEvery is how often to ask a daemon that does not answer, quietEvery one whose event stream stands: that tells.
	downEvery  = 500 * time.Millisecond
	quietEvery = 5 * time.Second
	// freshEvery is how often a snapshot is made that differs in its age only.
	freshEvery = 5 * time.Second
	// rediscoverEvery is how often the roots are searched for new trees, unless that takes long.
	rediscoverEvery = 30 * time.Second
)

// Live keeps a current snapshot. It is safe for use by several goroutines.
//
// What changes is in the snapshot within half a second: the reservation file by its watch, the daemon by its event stream, the
// rest by a glance. At rest it asks the daemon and makes a snapshot every few seconds, so that its age can be told.
type Live struct {
	// Panicked, where it is set, is told of a panic in the background, which ends Run.
	Panicked func(v any, stack []byte)

	Sources
	poke  chan struct{}
	facts *facts

	mu     sync.Mutex // guards all below
	snap   fleet.Snapshot
	more   chan struct{} // closed at the next snapshot
	events []fleet.Event
	stream time.Time // since when the event stream stands, zero where there is none
}

// NewLive makes an observer; Run keeps it current.
func NewLive(s Sources) *Live {
	return &Live{Sources: s, facts: newFacts(), poke: make(chan struct{}, 1), more: make(chan struct{})}
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

// catch hands a panic over, so that whoever shows the snapshots can put the terminal back before it is reported. Without
// somebody to hand it to it goes its way.
func (l *Live) catch() {
	if l.Panicked == nil {
		return
	}
	if v := recover(); v != nil {
		l.Panicked(v, debug.Stack())
	}
}

// Poke asks for a look now.
func (l *Live) Poke() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// Look asks for a look now, at tree above all.
func (l *Live) Look(tree string) {
	l.facts.doubt(tree)
	l.Poke()
}

// Run keeps the snapshot current until ctx ends.
func (l *Live) Run(ctx context.Context) {
	var others sync.WaitGroup
	defer others.Wait()
	defer l.catch()
	others.Go(func() {
		defer l.catch()
		l.followEvents(ctx)
	})

	w := newWatcher(l, &others)
	l.facts.heads = newHeads(ctx, l.facts.moved)
	defer w.begin.Stop()
	defer w.locks.hints.close()
	if l.Cluster != nil {
		others.Go(func() {
			defer l.catch()
			w.followCluster(ctx)
		})
	}
	file := l.Ledger.Watch(ctx)
	glance := time.NewTicker(glanceEvery)
	defer glance.Stop()
	w.discover(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-file:
			if !open {
				return // ctx has ended
			}
			w.force = true
			w.news()
		case h := <-w.hostsTold:
			w.told(ctx, h)
		case <-l.poke:
			w.side.look(l.Now())
			w.news()
		case <-l.facts.changed:
			w.publish(ctx, false)
		case p := <-w.pongs:
			w.ponged(ctx, p)
		case <-w.begin.C:
			w.ask(ctx)
		case seen := <-w.answers:
			w.answered(ctx, seen)
		case found := <-w.found:
			w.searching, w.configured, w.search = false, found.trees, max(rediscoverEvery, 100*found.took)
			w.searched = time.Now()
			w.publish(ctx, false)
		case <-w.locks.hints.tokens:
			if w.locks.hinted() {
				w.publish(ctx, false)
			}
		case <-glance.C:
			w.glance(ctx)
		}
	}
}

// watcher is what Run knows. Only its goroutine touches it.
type watcher struct {
	*Live
	others *sync.WaitGroup

	configured []fleet.Tree
	finder     *tree.Finder
	found      chan finding  // a search of the roots, when it is through
	searched   time.Time     // zero before the first
	search     time.Duration // until the next
	searching  bool

	seen    *look // what file and daemon said last; nil before the first
	answers chan look
	begin   *time.Timer // when to ask
	armed   bool
	asking  bool
	again   bool // there was news meanwhile
	force   bool // the file is to be read whatever it looks like
	trail   bool // there was news: ask once more
	asked   time.Time
	due     time.Time

	pongs   chan pong
	pinging bool
	alive   time.Time // when the daemon last gave a sign of life

	hosts     *hosts // nil on one host, and until the cluster has told
	hostsTold chan *hosts

	side    side
	locks   *locks
	trees   []fleet.Tree  // of the last snapshot
	expires time.Duration // when the next grace runs out, on the monotonic clock; zero where none does
	made    time.Time     // the last snapshot
	stepped time.Time     // the facts
}

// finding is what a search of the roots came to.
type finding struct {
	trees []fleet.Tree
	took  time.Duration
}

func newWatcher(l *Live, others *sync.WaitGroup) *watcher {
	w := &watcher{
		Live: l, others: others, finder: l.Sources.finder(), found: make(chan finding), answers: make(chan look), pongs: make(chan pong), hostsTold: make(chan *hosts, 1), begin: time.NewTimer(0), armed: true,
		side: newSide(l.Sources), locks: newLocks(l.Lock.LockInfo, l.Lock.LockPath()),
	}
	w.side.look(l.Now())
	return w
}

// news asks as soon as it has settled.
func (w *watcher) news() {
	w.trail = true
	w.arm()
}

func (w *watcher) arm() {
	switch {
	case w.asking:
		w.again = true
	case !w.armed:
		w.armed = true
		w.begin.Reset(max(settleTime, pause-time.Since(w.asked)))
	}
}

// ask looks at file and daemon in the background: a daemon that hangs holds up nothing else.
func (w *watcher) ask(ctx context.Context) {
	prev := w.seen
	if w.force && prev != nil {
		unread := *prev
		unread.stamp = stamp{}
		prev = &unread
	}
	w.armed, w.asking, w.again, w.force, w.asked = false, true, false, false, time.Now()
	away := w.hosts.away()
	w.others.Go(func() {
		defer w.catch()
		seen := w.read(ctx, prev, away)
		select {
		case w.answers <- seen:
		case <-ctx.Done():
		}
	})
}

func (w *watcher) answered(ctx context.Context, seen look) {
	w.asking, w.seen = false, &seen
	if seen.daemon.Running {
		w.alive = time.Now()
	}
	every := quietEvery
	switch {
	case !seen.daemon.Running || !w.streams():
		every = downEvery
	case w.trail:
		every, w.trail = trailAfter, false
	case len(seen.roster.Launches) > 0:
		every = bootEvery
	}
	w.due = time.Now().Add(every)
	w.publish(ctx, false)
	if w.again {
		w.arm()
	}
}

// glance looks at what tells nobody that it changed.
func (w *watcher) glance(ctx context.Context) {
	now := w.Now()
	changed := w.side.look(now)
	changed = w.locks.glance() || changed
	if w.seen != nil {
		if stampOf(w.Ledger.Path()) != w.seen.stamp {
			w.arm()
		} else if w.seen.file.Error == "" && w.Cluster == nil {
			w.seen.file.ReadAt = now.Wall // as good as read again
		}
		changed = changed || w.expires != 0 && now.Mono >= w.expires
		if time.Since(w.stepped) > stepEvery {
			w.stepped = time.Now()
			w.facts.step(ctx, w.trees, newIndex(*w.seen))
		}
	}
	if time.Now().After(w.due) {
		w.arm()
	}
	w.ping(ctx)
	if !w.searching && time.Since(w.searched) > w.search {
		w.discover(ctx)
	}
	if must := time.Since(w.made) > freshEvery; changed || must {
		w.publish(ctx, must)
	}
}

// discover searches the roots in the background. A search that takes long is made more rarely.
func (w *watcher) discover(ctx context.Context) {
	w.searching = true
	w.others.Go(func() {
		defer w.catch()
		began := time.Now()
		found := finding{trees: w.Sources.configured(w.finder)}
		found.took = time.Since(began)
		select {
		case w.found <- found:
		case <-ctx.Done():
		}
	})
}

// publish makes a snapshot, and makes it known if it says something new, or if even nothing new must be said.
func (w *watcher) publish(ctx context.Context, must bool) {
	if w.seen == nil || w.searched.IsZero() {
		return
	}
	now := w.Now()
	w.trees = withBusy(w.configured, *w.seen)
	next := w.snapshot(*w.seen, w.trees, now)
	next.Lock, next.Queue, next.Keeper, next.History = w.locks.now, w.side.queue, w.side.keeper, w.side.history
	w.expires = nextExpiry(*w.seen, now)
	w.facts.fill(ctx, next.Trees)
	w.hosts.join(&next)

	w.mu.Lock()
	defer w.mu.Unlock()
	next.Events = w.events
	if !must && Same(w.snap, next) {
		return
	}
	next.Rev = w.snap.Rev + 1
	w.snap, w.made = next, time.Now()
	close(w.more)
	w.more = make(chan struct{})
}

// nextExpiry is when the next grace runs out that has not yet, on the monotonic clock.
func nextExpiry(seen look, now fleet.Instant) time.Duration {
	var next time.Duration
	consider := func(left time.Duration) {
		if at := now.Mono + left; left > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	for _, e := range seen.entries {
		consider(e.Remaining(now))
	}
	for _, l := range seen.roster.Launches {
		consider(l.Deadline.Remaining(now))
	}
	return next
}
