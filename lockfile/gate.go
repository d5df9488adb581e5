package lockfile

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// gate is the one place in this process where a lock file is waited for.
//
//	Lock ──free──────────────────────────────────────────► grant ──► Held
//	  │ busy                                                 ▲
//	  └─► queue ─── window or ctx ends ──► BusyError         │
//	        │                                                │
//	        └─ one waiter, blocked in flock(2) ──granted─────┤ first in the queue
//	                                                         └ queue empty: released at once
//
// flock(2) cannot be cancelled and each call that waits keeps a thread, so there is one waiter for all requests, and a
// request that gives up leaves it behind: the next request finds it with its place in the kernel's queue. Polling instead
// would starve under contention.
type gate struct {
	path string

	mu      sync.Mutex
	queue   []*request // first come, first served
	waiting bool       // the waiter runs
	proven  bool       // the lock was seen to exclude

	// grants holds on to every lock until it is released. A lock whose last reference were dropped would be closed by
	// the garbage collector, and its holder would not hear of it.
	grants map[*grant]struct{}

	observed observations
}

// request is one caller in the queue. It is either in the queue or has its answer.
type request struct{ answer chan answer }

type answer struct {
	grant *grant
	err   error
}

var (
	gatesMu sync.Mutex
	gates   = map[string]*gate{} // by lock path; guarded by gatesMu
)

// gateAt returns the gate of a lock file. It lives as long as the process.
func gateAt(path string) *gate {
	gatesMu.Lock()
	defer gatesMu.Unlock()
	g := gates[path]
	if g == nil {
		g = &gate{path: path, grants: map[*grant]struct{}{}}
		gates[path] = g
	}
	return g
}

// acquire returns the lock, errBusy when window ended first, or the error of ctx.
func (g *gate) acquire(ctx context.Context, window time.Duration) (*grant, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if window <= 0 || !g.queued() {
		grant, err := g.attempt(tryOnce)
		if window <= 0 || !errors.Is(err, errBusy) {
			return grant, err
		}
	}

	r := g.enqueue()
	timer := time.NewTimer(window)
	defer timer.Stop()
	select {
	case a := <-r.answer:
		return a.grant, a.err
	case <-timer.C:
		if a, answered := g.leave(r); answered {
			return a.grant, a.err
		}
		return nil, errBusy
	case <-ctx.Done():
		if a, answered := g.leave(r); answered && a.grant != nil {
			if err := g.release(a.grant); err != nil {
				return nil, errors.Join(ctx.Err(), err)
			}
		}
		return nil, ctx.Err()
	}
}

// queued reports whether others of this process are waiting already, or a waiter that they left behind.
func (g *gate) queued() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

// asked reports whether a request is waiting.
func (g *gate) asked() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue) > 0
}

// enqueue puts a request at the end of the queue and sees to it that a waiter runs.
func (g *gate) enqueue() *request {
	r := &request{answer: make(chan answer, 1)}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, r)
	if !g.waiting {
		g.waiting = true
		go g.wait()
	}
	return r
}

// leave takes r out of the queue, or returns its answer if it has got one meanwhile.
func (g *gate) leave(r *request) (a answer, answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.queue, r); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
		return answer{}, false
	}
	return <-r.answer, true
}

// wait is the waiter: it gets the lock for one request after the other until nobody asks any more.
func (g *gate) wait() {
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		grant, err := g.attempt(block)
		if errors.Is(err, errBusy) {
			// A holder of the other lock family. Waiting for it while holding flock could deadlock with a program that
			// takes the two the other way round, so attempt has let go, and the next one starts over.
			if g.done() {
				return
			}
			time.Sleep(backoff)
			continue
		}
		backoff = minBackoff
		if more := g.serve(grant, err); !more {
			return
		}
	}
}

const (
	minBackoff = time.Millisecond
	maxBackoff = 20 * time.Millisecond
)

// done ends the waiter if nobody asks any more.
func (g *gate) done() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = len(g.queue) > 0
	return !g.waiting
}

// serve gives the grant to the first in the queue, or an error to all of them, for it would meet each. It ends the waiter
// and reports false if nobody is left.
func (g *gate) serve(grant *grant, err error) (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err != nil:
		for _, r := range g.queue {
			r.answer <- answer{err: err}
		}
		g.queue = nil
	case len(g.queue) == 0:
		// The request that this was for gave up. Nobody can be told of an error here, and the next Lock meets it again.
		_ = g.releaseLocked(grant)
	default:
		r := g.queue[0]
		g.queue = slices.Delete(g.queue, 0, 1)
		r.answer <- answer{grant: grant}
	}
	g.waiting = len(g.queue) > 0
	return g.waiting
}

// attempt takes the lock and makes sure, the first time, that having it means something here.
func (g *gate) attempt(how patience) (*grant, error) {
	wanted := func() bool { return how == tryOnce || g.asked() }
	grant, err := take(g.path, how, wanted)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grants[grant] = struct{}{}
	if !g.proven {
		if err := prove(g.path); err != nil {
			return nil, errors.Join(err, g.releaseLocked(grant))
		}
		g.proven = true
	}
	return grant, nil
}

func (g *gate) release(grant *grant) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.releaseLocked(grant)
}

// releaseLocked frees the lock. g.mu is held.
func (g *gate) releaseLocked(grant *grant) error {
	delete(g.grants, grant)
	return grant.release()
}
