package observe

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// pingEvery is how often a daemon that has nothing to tell is asked for a sign of life: its event stream stands also while it
	// hangs or is stopped.
	pingEvery = time.Second
	// pingTimeout is how long that may take. Health is answered without a lock, so one that takes longer hangs.
	pingTimeout = 1500 * time.Millisecond
)

// pong is what came of a question for a sign of life.
type pong struct {
	began time.Time
	err   error
}

// ping asks for a sign of life where there was none for a while, in the background.
func (w *watcher) ping(ctx context.Context) {
	if w.seen == nil || !w.seen.daemon.Running || w.asking || w.pinging || time.Since(w.alive) < pingEvery {
		return
	}
	w.pinging = true
	w.others.Go(func() {
		defer w.catch()
		p := pong{began: time.Now()}
		within, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		_, p.err = w.Client.Health(within)
		select {
		case w.pongs <- p:
		case <-ctx.Done():
		}
	})
}

// ponged takes note of a sign of life, or of there being none: that is told at once, before the whole question runs into its
// own limit.
func (w *watcher) ponged(ctx context.Context, p pong) {
	w.pinging = false
	switch {
	case p.err == nil:
		w.alive = time.Now()
	case w.alive.After(p.began) || !w.seen.daemon.Running: // it was asked everything meanwhile, which says more
	case errors.Is(p.err, context.DeadlineExceeded):
		silent := *w.seen
		silent.daemon.Running, silent.daemon.Version, silent.daemon.Since = false, "", time.Time{}
		silent.daemon.Error = fmt.Sprintf("no answer within %s", pingTimeout)
		w.seen, w.due = &silent, time.Now()
		w.publish(ctx, false)
	default:
		w.arm()
	}
}
