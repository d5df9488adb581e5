package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/foreign"
	"fleetdeck/fleet/tree"
)

// makeWorktree makes the linked worktree that order asks for, and reserves it: its directory before git makes anything, so that
// nobody is sent there in between, and once more when it is done, so that the grace is that of the launch. What would refuse the
// dispatch anyway is asked first, so that little has ever to be undone. An error leaves neither, unless it says so.
//
// A crash leaves at most a worktree that nobody is in, reserved until its grace is over. Where the ledger takes notes, [Dispatcher.Recall]
// removes it, unless git had not finished it yet.
func (d *Dispatcher) makeWorktree(ctx context.Context, order fleet.Order) (made *tree.Worktree, entry fleet.Entry, err error) {
	if d.Allowed != nil {
		if err := d.Allowed(ctx); err != nil {
			return nil, entry, err
		}
	}
	if _, err := d.Ledger.Read(); err != nil {
		return nil, entry, err
	}
	if _, err := d.roster(ctx); err != nil {
		return nil, entry, err
	}
	if d.Progress != nil {
		d.Progress(fmt.Sprintf("making a worktree for %q", order.Branch))
	}
	how := d.Worktrees
	how.Reserve = func(ctx context.Context, t fleet.Tree) (err error) {
		entry, err = d.reserve(ctx, t, order, false)
		return err
	}
	if made, err = how.AddWorktree(ctx, order.Tree, order.Branch); err == nil {
		order.ID = entry.ID
		var renewed fleet.Entry
		if err = d.noteMade(ctx, order, made); err == nil {
			renewed, err = d.reserve(ctx, made.Tree, order, true)
		}
		if err == nil {
			return made, renewed, nil
		}
		err = d.undoWorktree(ctx, made, entry.ID, err)
	}
	if entry.ID != "" {
		err = errors.Join(err, d.settle(ctx, entry))
	}
	return made, entry, err
}

// undoWorktree removes the worktree that was made for a dispatch that was refused with err, and adds to err what stays of it.
// The reservation id, where there is one, still stands.
func (d *Dispatcher) undoWorktree(ctx context.Context, made *tree.Worktree, id string, err error) error {
	if made == nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // the refusal is a fact whether or not the caller still waits
	if rerr := made.Remove(ctx, func(at string) error {
		return errors.Join(d.vacant(ctx, made.Tree, id), foreign.Nobody(ctx, at, made.Path))
	}); rerr != nil {
		return fmt.Errorf("%w; and %w", err, rerr)
	}
	return err
}

// vacant makes sure that nobody but the reservation id has come to t. Once t's directory is gone nobody new can: whoever
// reserved it before stands in the file or in the roster, in this order.
func (d *Dispatcher) vacant(ctx context.Context, t fleet.Tree, id string) error {
	entries, err := d.Ledger.Read()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if id != "" && e.ID == id && !e.Expired(d.Now()) {
			return nil // the tree is ours, so nobody else's
		}
	}
	roster, err := d.roster(ctx)
	if err != nil {
		return err
	}
	if h := fleet.Occupancy(t, entries, roster, d.Now()); h.State != fleet.Free {
		return fmt.Errorf("somebody came to it: it is %s", h.State)
	}
	return nil
}

// notes is a ledger that keeps what was made for a dispatch, for whoever recalls that once its dispatcher has died.
type notes interface {
	NoteMade(ctx context.Context, window time.Duration, order fleet.Order, t fleet.Tree, m *fleet.MadeWorktree) error
}

// recalled is a ledger that tells what was noted under an id: nil where nothing was.
type recalled interface {
	Made(ctx context.Context, window time.Duration, id string) (fleet.Tree, *fleet.MadeWorktree, error)
	ForgetMade(ctx context.Context, window time.Duration, id string) error
}

func (d *Dispatcher) noteMade(ctx context.Context, order fleet.Order, made *tree.Worktree) error {
	if l, ok := d.Ledger.(notes); ok {
		return l.NoteMade(ctx, d.LockWait, order, made.Tree, made.Made())
	}
	return nil
}

// forgetMade drops the note, which otherwise ends by itself.
func (d *Dispatcher) forgetMade(ctx context.Context, id string) {
	if l, ok := d.Ledger.(recalled); ok && id != "" {
		l.ForgetMade(context.WithoutCancel(ctx), d.LockWait, id)
	}
}

// takeBack undoes what a dispatcher that has died did for order, of which the daemon knows nothing, and words why it is refused. An error
// says that it is to be asked for again.
func (d *Dispatcher) takeBack(ctx context.Context, order fleet.Order) (refusal, err error) {
	refusal = fleet.Refuse(fleet.CodeDaemonUnreachable, "the daemon ended before it had carried out the order").
		WithHint("dispatch again: nothing was started")
	if l, ok := d.Ledger.(recalled); ok {
		t, m, err := l.Made(ctx, d.LockWait, order.ID)
		if err != nil {
			return nil, err
		}
		if _, serr := os.Lstat(t.Path); m != nil && !errors.Is(serr, fs.ErrNotExist) { // else somebody was faster
			made := tree.Remade(t, *m)
			made.Trust = d.Worktrees.Trust
			refusal = d.undoWorktree(ctx, made, order.ID, refusal)
		} else if m == nil && order.Branch != "" {
			refusal = d.begun(order, refusal)
		}
	}
	return refusal, d.settle(ctx, fleet.Entry{Tree: order.Tree, Reservation: fleet.Reservation{ID: order.ID}})
}

// begun adds to refusal what stays of a worktree that git may be at still: its directory was reserved for order, and goes if nothing is in it.
func (d *Dispatcher) begun(order fleet.Order, refusal error) error {
	entries, err := d.Ledger.Read()
	if err != nil {
		return fmt.Errorf("%w; and a worktree may have been begun for it: %w", refusal, err)
	}
	for _, e := range entries {
		if e.ID != order.ID {
			continue
		}
		if err := os.Remove(e.Tree); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w; and the worktree that was begun at %s stays: see 'fleetdeck worktree ls %s'", refusal, e.Tree, order.Tree)
		}
	}
	return refusal
}
