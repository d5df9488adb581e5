package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// keeping is the keeper that the daemon runs.
type keeping struct {
	mu   sync.Mutex // guards stop
	stop func()     // ends the keeper and waits for that; nil while none runs
}

// startKeeper runs the keeper until the daemon ends or stopKeeper is called. One that fails is started again, ever later, and each
// kind of failure is told of once.
func (d *Daemon) startKeeper() {
	d.keeping.mu.Lock()
	defer d.keeping.mu.Unlock()
	if d.Keeper == nil || d.keeping.stop != nil || d.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(d.ctx)
	done := make(chan struct{})
	d.keeping.stop = func() { cancel(); <-done }
	say := func(level, kind, tree, message string) { d.events.add(level, kind, tree, "", "%s", message) }
	d.tending.Go(func() {
		defer close(done)
		told := ""
		for pause := time.Second; ; pause = min(2*pause, time.Minute) {
			err := d.Keeper(ctx, say)
			if err == nil || ctx.Err() != nil {
				return
			}
			if msg := fmt.Sprintf("the keeper failed, and is started again: %v", err); msg != told {
				told = msg
				d.alarm("keeper_failed", record{}, "%s", msg)
			}
			if !sleep(ctx, pause) {
				return
			}
		}
	})
}

// stopKeeper ends the keeper, so that nobody is staffed while members are being ended.
func (d *Daemon) stopKeeper() {
	d.keeping.mu.Lock()
	defer d.keeping.mu.Unlock()
	if d.keeping.stop != nil {
		d.keeping.stop()
		d.keeping.stop = nil
	}
}
