package dispatch

import (
	"context"
	"fmt"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

// makeWorktree makes the linked worktree that order asks for. What would refuse the dispatch anyway is asked first, so that
// little has ever to be undone.
//
// A crash from here until the tree is reserved leaves a worktree that nobody is in.
func (d *Dispatcher) makeWorktree(ctx context.Context, order fleet.Order) (*tree.Worktree, error) {
	if d.Allowed != nil {
		if err := d.Allowed(ctx); err != nil {
			return nil, err
		}
	}
	if _, err := d.Ledger.Read(); err != nil {
		return nil, err
	}
	if _, err := d.roster(ctx); err != nil {
		return nil, err
	}
	if d.Progress != nil {
		d.Progress(fmt.Sprintf("making a worktree for %q", order.Branch))
	}
	return d.Worktrees.AddWorktree(ctx, order.Tree, order.Branch)
}

// undoWorktree removes the worktree that was made for a dispatch that was refused with err, and adds to err what stays of it.
// The reservation id, where there is one, still stands.
func (d *Dispatcher) undoWorktree(ctx context.Context, made *tree.Worktree, id string, err error) error {
	if made == nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // the refusal is a fact whether or not the caller still waits
	if rerr := made.Remove(ctx, func() error { return d.vacant(ctx, made.Tree, id) }); rerr != nil {
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
