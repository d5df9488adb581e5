package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/slots"
	"fleetdeck/fleet/tree"
)

// admit decides on a spawn. Whatever it refuses was not started and never will be.
//
// The reservation is the licence: at the ledger's fence its id must stand for this tree, its grace must not be over, and nobody else
// may be there. Only then is the launch recorded, before the ledger admits another, so that no dispatcher sees neither.
func (d *Daemon) admit(ctx context.Context, req api.Spawn) (record, error) {
	if req.Reservation == "" || req.Tree == "" {
		return record{}, fleet.Refuse(fleet.CodeBadRequest, "a spawn names a reservation and a tree")
	}
	if len(req.Task) > api.MaxTask {
		return record{}, fleet.Refuse(fleet.CodeBadRequest, "the task has %d bytes, more than %d: put it into a file in the tree and name that", len(req.Task), api.MaxTask)
	}
	if rec, ok := d.reg.view().byReservation(req.Reservation); ok {
		return repeated(rec, req)
	}
	profile, err := d.checkNames(&req)
	if err != nil {
		return record{}, err
	}
	if err := d.canRun(profile); err != nil {
		return record{}, err
	}
	t, err := tree.Resolve(ctx, req.Tree, true)
	if err != nil {
		return record{}, fleet.Refuse(fleet.CodeLaunchFailed, "%w", err)
	}
	if t.Path != req.Tree {
		return record{}, fleet.Refuse(fleet.CodeBadRequest, "%s is not the tree's key: that is %s", req.Tree, t.Path)
	}

	trees := []fleet.Tree{t}
	for _, path := range req.Also {
		other, err := tree.Resolve(ctx, path, true)
		if err != nil {
			return record{}, fleet.Refuse(fleet.CodeLaunchFailed, "%w", err)
		}
		if other.Path != path {
			return record{}, fleet.Refuse(fleet.CodeBadRequest, "%s is not the tree's key: that is %s", path, other.Path)
		}
		trees = append(trees, other)
	}

	d.admissions.RLock()
	defer d.admissions.RUnlock()
	if d.leaving {
		return record{}, fleet.Refuse(fleet.CodeDaemonUnreachable, "the daemon is going down with all members").WithHint("start it again with 'fleetdeck up'")
	}
	var rec record
	recorded := false
	err = d.Ledger.Admit(ctx, d.Config.LockWait, req.Tree, req.Reservation, func(e fleet.Entry) error {
		view := d.reg.view()
		if earlier, ok := view.byReservation(req.Reservation); ok {
			rec, err = repeated(earlier, req)
			return err
		}
		if e.File != "" && e.File != t.File {
			return fleet.Refuse(fleet.CodeReservationStale, "%s is another directory than the one that was reserved", req.Tree).
				WithHint("dispatch again")
		}
		now := d.Now()
		roster := view.roster
		roster.Foreign = d.foreignIn(roster)
		for _, t := range trees {
			if h := fleet.Occupancy(t, nil, roster, now); !h.Free(req.BesideForeign) {
				return inTheWay(t, h, now)
			}
		}
		rec = record{
			ID: ulid.Make().String(), Step: stepAccepted, Reservation: req.Reservation, Tree: t.Path, File: t.File,
			Role: req.Role, RequestedRole: req.Role, Profile: req.Profile, Task: req.Task, Deadline: deadline(e, now),
			AcceptedAt: now.Wall.UTC(), Launcher: profile.Launcher, Made: req.Made, Also: trees[1:],
		}
		if err := d.resume(&rec, req.Resumes); err != nil {
			return err
		}
		err := d.record(&rec, e.Slot)
		recorded = err == nil
		return err
	}, trees[1:]...)
	if err != nil {
		d.refused(req, err)
		if recorded { // its reservation was dropped meanwhile
			(&tender{d: d, id: rec.ID}).fail(nil, err)
		}
		return record{}, err
	}
	if recorded {
		d.tend(rec, false)
	}
	return rec, nil
}

// deadline is the end of e's grace. A writer that gave only a wall time gets the monotonic clock from here on.
func deadline(e fleet.Entry, now fleet.Instant) fleet.Deadline {
	if e.Boot.ID == now.Boot {
		return e.Deadline()
	}
	return fleet.DeadlineAfter(now, e.Remaining(now))
}

// record takes the slot that rec's role needs and makes rec durable, or does neither. The slot is the one that rec's reservation has
// already, if it names one.
func (d *Daemon) record(rec *record, slot string) error {
	if d.Config.Limited(rec.Role) {
		slot, err := d.pool.Reserve(slots.Request{
			Role: rec.Role, Profile: rec.Profile, Reservation: rec.Reservation, Member: rec.ID, Tree: rec.Tree, Slot: slot,
		})
		if err != nil {
			return err
		}
		rec.Slot, rec.Role = slot.Name, slot.Role
	}
	if err := d.reg.put(*rec); err != nil {
		d.pool.Release(rec.Reservation)
		return fleet.Refuse(fleet.CodeLaunchFailed, "the launch could not be recorded: %w", err).
			WithHint("look at the state directory: is the disk full, or read-only?")
	}
	d.events.add("info", "accepted", rec.Tree, rec.ID, "%s on %s accepted", rec.Role, rec.Profile)
	return nil
}

func (d *Daemon) refused(req api.Spawn, err error) {
	code := fleet.Code("error")
	if r := fleet.RefusalOf(err); r != nil {
		code = r.Code
	}
	d.events.add("warn", "refused", req.Tree, "", "%s: %v", code, err)
}

// repeated answers a spawn whose reservation is known: with what became of the first one.
func repeated(rec record, req api.Spawn) (record, error) {
	if rec.Tree != req.Tree {
		return record{}, fleet.Refuse(fleet.CodeReservationStale, "reservation %s was used for %s", rec.Reservation, rec.Tree)
	}
	if rec.Step == stepFailed {
		return record{}, rec.Failure
	}
	return rec, nil
}

// checkNames fills in the default role and looks the names up.
func (d *Daemon) checkNames(req *api.Spawn) (config.Profile, error) {
	if req.Role == "" {
		req.Role = fleet.RoleDev
	}
	if _, ok := d.Config.Roles[req.Role]; !ok {
		return config.Profile{}, fleet.Refuse(fleet.CodeRoleUnknown, "role %q is not configured", req.Role).
			WithHint("the daemon knows: %s", strings.Join(d.Config.RoleNames(), ", "))
	}
	profile, ok := d.Config.Profiles[req.Profile]
	if !ok {
		return config.Profile{}, fleet.Refuse(fleet.CodeProfileUnknown, "profile %q is not configured", req.Profile).
			WithHint("the daemon knows: %s", strings.Join(d.Config.ProfileNames(), ", "))
	}
	if d.Config.Limited(req.Role) && !slices.ContainsFunc(d.Config.Slots, func(s config.Slot) bool {
		return s.Role == req.Role && s.Profile == req.Profile
	}) {
		return config.Profile{}, fleet.Refuse(fleet.CodeSlotUnconfigured, "no slot of role %s carries profile %s", req.Role, req.Profile).
			WithHint("add a [[slots]] entry for it to fleetdeck.toml, or choose another profile")
	}
	return profile, nil
}

// canRun looks for the profile's command, so that one that is not there is refused at once.
func (d *Daemon) canRun(p config.Profile) error {
	_, err := lookPath(p.Command[0], d.environment(p, nil, nil))
	if err == nil {
		_, err = d.launcher(p.Launcher)
	}
	if err != nil {
		return fleet.Refuse(fleet.CodeLaunchFailed, "profile %s: %w", p.Name, err).
			WithHint("install it, or mend the profile's command in fleetdeck.toml")
	}
	return nil
}

func inTheWay(t fleet.Tree, h fleet.Holding, now fleet.Instant) error {
	switch h.State {
	case fleet.Foreign:
		return h.Foreign.Refusal(t, now)
	case fleet.Taken:
		return fleet.Refuse(fleet.CodeTreeOccupied, "%s is occupied by member %s (%s, %s)", t.Path, h.Member.ID, h.Member.Role, h.Member.State)
	}
	return fleet.Refuse(fleet.CodeTreeReserved, "%s is held by launch %s, %.0f s left", t.Path, h.Launch.ID, max(0, h.Remaining.Seconds()))
}

// errStopped is why a launch ends that somebody stopped.
var errStopped = errors.New("stopped before it was listed")

func launchFailed(format string, args ...any) *fleet.Refusal {
	return fleet.Refuse(fleet.CodeLaunchFailed, "%w", fmt.Errorf(format, args...))
}
