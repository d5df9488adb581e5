package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"

	"fleetdeck/fleet"
	"fleetdeck/fleet/foreign"
	"fleetdeck/fleet/tree"
)

// takeBack removes the linked worktree that was made for rec's launch, which has failed, and the branch that was made for it. It
// stays, and an event says why, where anything in it is new or anybody is there.
func (d *Daemon) takeBack(rec record) {
	t := fleet.Tree{Path: rec.Tree, File: rec.File}
	made := tree.Remade(t, *rec.Made)
	made.Trust = d.Config.WorktreeTrust
	err := made.Remove(d.ctx, func(at string) error {
		return errors.Join(d.vacant(t, rec.Reservation), foreign.Nobody(context.WithoutCancel(d.ctx), at, t.Path))
	})
	switch {
	case err == nil:
		d.events.add("info", "worktree_removed", rec.Tree, rec.ID, "the worktree that was made for the launch was removed again")
	case errors.Is(err, os.ErrNotExist): // somebody was faster
	default:
		d.events.add("warn", "worktree_stays", rec.Tree, rec.ID, "%v", err)
	}
}

// vacant makes sure that nobody but the reservation id has come to t.
func (d *Daemon) vacant(t fleet.Tree, id string) error {
	entries, err := d.Ledger.Read()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.ID == id && !e.Expired(d.Now()) {
			return nil // nobody else can be
		}
	}
	if h := fleet.Occupancy(t, entries, d.reg.view().roster, d.Now()); h.State != fleet.Free {
		return fmt.Errorf("somebody came to it: it is %s", h.State)
	}
	return nil
}
