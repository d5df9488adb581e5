package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"fleetdeck/fleet/launch"
)

func (d *Daemon) deleteMember(w http.ResponseWriter, r *http.Request) error {
	caller, err := d.caller(r)
	if err != nil {
		return err
	}
	rec, err := d.lookup(r)
	if err != nil {
		return err
	}
	if caller == nil || caller.ID != rec.ID {
		if err := d.allow(caller, "stop"); err != nil {
			return err
		}
	}
	if err := d.stop(r.Context(), rec); err != nil {
		return err
	}
	rec, _ = d.reg.get(rec.ID)
	d.awaitGivenBack(r.Context(), rec)
	return writeJSON(w, http.StatusOK, rec.member())
}

// stop ends a launch or a member and waits until its record says so.
func (d *Daemon) stop(ctx context.Context, rec record) error {
	d.mu.Lock()
	t := d.tended[rec.ID]
	d.mu.Unlock()
	if rec, _ = d.reg.get(rec.ID); rec.over() {
		return nil
	}
	if t == nil {
		return fmt.Errorf("stop %s: the daemon is ending", rec.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	if rec.launching() {
		t.stop(errStopped)
		rec, _ = d.reg.get(rec.ID) // it may have been listed before that, with nobody to look for a stop any more
	}
	if rec.Step == stepListed {
		term, err := d.find(ctx, rec)
		if err == nil {
			err = term.Stop(ctx, stopPatience)
		}
		if err != nil && !errors.Is(err, launch.ErrGone) {
			return fmt.Errorf("stop %s: %w", rec.ID, err)
		}
	}
	select {
	case <-t.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: it has not ended, or its end could not be recorded, within %s: see 'fleetdeck events' and daemon.log", rec.ID, stopLimit)
	}
}

// stopLimit bounds a stop: what takes longer goes on, and is not waited for.
const stopLimit = 30 * time.Second

func (d *Daemon) postShutdown(w http.ResponseWriter, r *http.Request) error {
	caller, err := d.caller(r)
	if err != nil {
		return err
	}
	if caller != nil {
		return d.forbid(caller, "a member may not stop the daemon")
	}
	if r.URL.Query().Get("stop_members") == "true" {
		d.stopKeeper()
		d.admitAny(false)
		if err := d.stopAll(r.Context()); err != nil {
			d.admitAny(true)
			d.startKeeper()
			return err
		}
		d.awaitVacated()
	}
	if err := writeJSON(w, http.StatusOK, struct{}{}); err != nil {
		return err
	}
	http.NewResponseController(w).Flush()
	d.cancel(nil)
	return nil
}

// admitAny says whether anybody is admitted from here on, and returns once no admission is under way.
func (d *Daemon) admitAny(ok bool) {
	d.admissions.Lock()
	defer d.admissions.Unlock()
	d.leaving = !ok
}

// awaitVacated waits until the ledger has back what ended members held, since the next daemon, which would give it back, may never come.
// A ledger that does not answer within its window is not waited for any longer.
func (d *Daemon) awaitVacated() {
	for until := time.Now().Add(d.Config.LockWait); time.Now().Before(until); {
		d.mu.Lock()
		done := len(d.tended) == 0 && len(d.vacating) == 0
		d.mu.Unlock()
		if done || !sleep(d.ctx, 10*time.Millisecond) {
			return
		}
	}
}

func (d *Daemon) stopAll(ctx context.Context) error {
	view := d.reg.view()
	errs := make(chan error, len(view.records))
	n := 0
	for _, rec := range view.records {
		if !rec.over() {
			n++
			go func() { errs <- d.stop(ctx, *rec) }()
		}
	}
	var all error
	for range n {
		all = errors.Join(all, <-errs)
	}
	return all
}
