package daemon

import (
	"context"
	"sync"
	"time"

	"fleetdeck/fleet"
)

// settle drops the reservation of a launch that is listed, by its id. While the ledger cannot be changed it tries again until the
// grace is over: nothing waits for it, since occupancy skips an entry whose worker is listed.
func (d *Daemon) settle(rec record) {
	d.tending.Go(func() {
		d.untilDone(rec, d.Ledger.Settle, func() bool { return rec.Deadline.Remaining(d.Now()) <= 0 })
	})
}

// vacate gives back what a launch that failed, or a member that ended, held in the ledger. A tree that was made for a launch that failed
// is taken back before that, while nobody else can be sent there.
func (d *Daemon) vacate(rec record) {
	begun := d.beginVacating(rec.Reservation)
	if begun == nil {
		return
	}
	d.tending.Go(func() {
		tried := sync.OnceFunc(func() { close(begun) })
		defer tried()
		defer d.endVacating(rec.Reservation)
		if rec.Step == stepFailed && rec.Made != nil {
			d.takeBack(rec)
		}
		vacate := func(ctx context.Context, window time.Duration, id string) error {
			defer tried()
			return d.Ledger.Vacate(ctx, window, id)
		}
		d.untilDone(rec, vacate, func() bool { return false })
	})
}

// beginVacating gives what is to be closed once it was tried, or nil where it is under way.
func (d *Daemon) beginVacating(id string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.vacating[id] != nil {
		return nil
	}
	d.vacating[id] = make(chan struct{})
	return d.vacating[id]
}

// awaitGivenBack waits until what rec held was given back, if it has ended, so that who is told of the end finds its place free. A
// ledger that does not answer is waited for no longer than one try takes.
func (d *Daemon) awaitGivenBack(ctx context.Context, rec record) {
	d.mu.Lock()
	tried := d.vacating[rec.Reservation]
	d.mu.Unlock()
	if tried == nil || !rec.over() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.Config.LockWait)
	defer cancel()
	select {
	case <-tried:
	case <-ctx.Done():
	}
}

func (d *Daemon) endVacating(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.vacating, id)
}

// untilDone asks the ledger for change until it is made, the daemon ends, or nobody needs it any more. What it cannot be told now
// the next daemon tells it.
func (d *Daemon) untilDone(rec record, change func(context.Context, time.Duration, string) error, needless func() bool) {
	told := ""
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		err := change(d.ctx, d.Config.PruneWait, rec.Reservation)
		if err == nil || d.ctx.Err() != nil || needless() {
			return
		}
		if r := fleet.RefusalOf(err); (r == nil || r.Code != fleet.CodeLockBusy) && err.Error() != told {
			told = err.Error()
			d.alarm("settle_failed", rec, "the reservation of %s could not be dropped: %v", rec.Tree, err)
		}
		if !sleep(d.ctx, pause) {
			return
		}
	}
}

// settleLeft makes the ledger agree with what an earlier daemon left: what is over holds nothing, and who is listed needs no
// reservation. Where the ledger does not say what is held, it is told all of it.
func (d *Daemon) settleLeft() {
	held, err := d.Ledger.Held(d.ctx)
	records := d.reg.view().records
	for _, rec := range records {
		bound, stands := held[rec.Reservation]
		switch {
		case !stands && err == nil || rec.launching():
		case rec.over():
			d.vacate(*rec)
		case !bound:
			d.settle(*rec)
		}
	}
	known := map[string]bool{}
	for _, rec := range records {
		known[rec.Reservation] = true
	}
	for id, bound := range held {
		if bound && !known[id] {
			d.alarm("unknown_member", record{}, "reservation %s holds a tree of this host for a member that is on no record here: its tree stays taken", id)
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
