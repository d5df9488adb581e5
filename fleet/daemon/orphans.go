package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/process"
)

// admittedFile is the copy of a record in its member's directory, as it was when it was admitted. It is read only where
// the registry has been lost.
const admittedFile = "admitted.json"

func (d *Daemon) writeAdmitted(rec record) error {
	data, err := json.Marshal(&rec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dirOf(rec.ID), admittedFile), data, 0o600)
}

// admitted reads the record that was written when id was admitted.
func (d *Daemon) admitted(id string) (rec record, err error) {
	data, err := os.ReadFile(filepath.Join(d.dirOf(id), admittedFile))
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(data, &rec); err != nil || rec.ID != id || rec.Tree == "" {
		return record{}, fmt.Errorf("its %s is damaged: %w", admittedFile, errors.Join(err, errors.New("it names another member")))
	}
	return rec, nil
}

// takeInOrphans looks for terminals that are on no record: a registry that was lost, or put back from an older copy, must not
// make their trees free. A member among them is listed again; a launch is ended. What is over is removed. Where it cannot
// be said what one is, the daemon does not start.
func (d *Daemon) takeInOrphans() error {
	dirs, err := os.ReadDir(filepath.Join(d.State.Path, "members"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for members that are on no record: %w", err)
	}
	view := d.reg.view()
	for _, dir := range dirs {
		if view.records[dir.Name()] != nil {
			continue
		}
		if err := d.takeIn(dir.Name()); err != nil {
			return fmt.Errorf("%s is on no record, and may hold a living agent: %w: end that agent, then remove the directory", d.dirOf(dir.Name()), err)
		}
	}
	return nil
}

func (d *Daemon) takeIn(id string) error {
	rec, recErr := d.admitted(id)
	term, err := d.find(d.ctx, record{ID: id, Launcher: rec.Launcher})
	if errors.Is(err, launch.ErrNotStarted) || errors.Is(err, launch.ErrGone) {
		if err := process.EndTree(d.ctx, fleet.Process{}, "FLEETDECK_MEMBER="+id, bootPatience); err != nil {
			return err
		}
		d.forget(id)
		return nil
	}
	if err != nil {
		return err
	}
	status, err := term.Status(d.ctx)
	if err != nil {
		return err
	}
	switch {
	case status.Phase == launch.Exited:
		d.forget(id)
		return nil
	case !status.Confirmed:
		if err := term.Stop(d.ctx, stopPatience); err != nil && !errors.Is(err, launch.ErrGone) {
			return err
		}
		d.events.add("warn", "orphan_ended", "", id, "a launch that was on no record was ended")
		d.forget(id)
		return nil
	}
	if recErr != nil {
		return recErr
	}
	rec.Agent, rec.CharterSHA256 = status.Agent, status.Receipt
	rec.StartedAt, rec.ListedAt = rec.AcceptedAt, d.Now().Wall.UTC()
	rec.State, rec.StateSource = fleet.StateUnknown, "launch"
	token, err := d.token(id)
	if err != nil {
		return err
	}
	rec.TokenSHA256 = hashToken(token)
	for _, step := range []string{stepAccepted, stepBooting, stepListed} {
		rec.Step = step
		if err := d.reg.put(rec); err != nil {
			return err
		}
	}
	d.alarm("orphan_listed", rec, "%s on %s was on no record and is listed again: was the registry removed?", rec.Role, rec.Profile)
	return nil
}
