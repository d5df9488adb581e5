package daemon

import (
	"sync"
	"time"

	"fleetdeck/fleet"
)

// settle drops the reservation of a launch that is listed or has failed, by its id. While the lock is busy it tries again
// until the grace is over: nothing waits for it, since occupancy skips an entry whose worker is listed. A tree that was made for a
// launch that failed is taken back before that, while nobody else can be sent there.
func (d *Daemon) settle(rec record) {
	d.tending.Go(func() {
		if now, ok := d.reg.get(rec.ID); ok && now.Step == stepFailed && now.Made != nil {
			d.takeBack(now)
		}
		for pause := 250 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
			err := d.book.Settle(d.ctx, d.Config.PruneWait, rec.Reservation)
			if err == nil || d.ctx.Err() != nil {
				return
			}
			if rec.Deadline.Remaining(d.Now()) <= 0 {
				return // it ends by itself, and any prune drops it
			}
			if r := fleet.RefusalOf(err); r == nil || r.Code != fleet.CodeLockBusy {
				d.alarm("settle_failed", rec, "the reservation of %s could not be dropped: %v", rec.Tree, err)
			}
			if !sleep(d.ctx, pause) {
				return
			}
		}
	})
}

// settleLeft settles what an earlier daemon left: the entries whose worker is listed, or whose launch has failed.
func (d *Daemon) settleLeft() {
	standing := map[string]bool{}
	entries, err := d.book.Read()
	for _, e := range entries {
		standing[e.ID] = true
	}
	for _, rec := range d.reg.view().records {
		if !rec.launching() && rec.Deadline.Remaining(d.Now()) > 0 && (standing[rec.Reservation] || err != nil) {
			d.settle(*rec)
		}
	}
}

// reports wakes the tender of a launch that waits for its agent's first report.
type reports struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]chan struct{}
}

func (r *reports) wait(id string) (woken <-chan struct{}, done func()) {
	ch := make(chan struct{}, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[string]chan struct{}{}
	}
	r.waiting[id] = ch
	return ch, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, id)
	}
}

func (r *reports) wake(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ch := r.waiting[id]; ch != nil {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
