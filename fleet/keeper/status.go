package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
	"fleetdeck/lockfile"
)

const (
	resetFile   = "keeper-resets.json"
	resetFormat = "fleetdeck.keeper-resets/1"
)

// Status is how the keeper stands, as `keep --status --json` prints it.
type Status struct {
	Running bool              `json:"running"`
	Holder  *fleet.LockHolder `json:"holder,omitempty"`
	Staff   []Row             `json:"staff"`
	// Queue counts the tasks that wait, GivenUp those that are not tried again.
	Queue   int `json:"queue"`
	GivenUp int `json:"given_up"`
}

// Row is how one entry of [[staff]] stands.
type Row struct {
	Tree    string     `json:"tree"`
	Role    fleet.Role `json:"role"`
	Profile string     `json:"profile"`
	Restart string     `json:"restart"`
	// State is "open" (to be started), "sent" (not accepted yet, as far as is known), "running" (as the keeper saw it last),
	// "waiting" (for WaitS seconds), "broken", "done", or "reset" (begins anew with the next pass).
	State       string  `json:"state"`
	Reservation string  `json:"reservation"`
	Failures    int     `json:"failures"`
	WaitS       float64 `json:"wait_s"`
	Last        string  `json:"last"`
}

// ReadStatus reads how the keeper of the state directory dir stands. It takes no lock and asks nobody.
func ReadStatus(dir string, conf *config.Config, now fleet.Instant) (Status, error) {
	s := Status{Staff: []Row{}}
	file, err := lockfile.Open(filepath.Join(dir, stateFile))
	if err != nil {
		return s, fmt.Errorf("open the keeper's memory: %w", err)
	}
	if holders, err := file.Holders(); err == nil && len(holders) > 0 {
		h := holders[0]
		s.Running, s.Holder = true, &fleet.LockHolder{Pid: h.Pid, Program: h.Program, Since: h.Since}
	}
	data, err := file.Read()
	_, staff, err := readMemory(file.Path(), data, err)
	if err != nil {
		return s, err
	}
	resets, err := lockfile.Open(filepath.Join(dir, resetFile))
	if err != nil {
		return s, fmt.Errorf("open the keeper's resets: %w", err)
	}
	data, err = resets.Read()
	asked, err := parse(resets.Path(), resetFormat, data, err)
	if err != nil {
		return s, err
	}
	lim := limitsOf(conf)
	for _, want := range conf.Staff {
		row := rowOf(want, staff[want.Tree], now, lim)
		if _, ok := asked.Get(want.Tree); ok {
			row.State = "reset"
		}
		s.Staff = append(s.Staff, row)
	}
	queue, err := OpenQueue(dir)
	if err != nil {
		return s, err
	}
	tasks, err := queue.List()
	for _, t := range tasks {
		if t.GivenUp {
			s.GivenUp++
		} else {
			s.Queue++
		}
	}
	return s, err
}

func rowOf(want config.Staff, m memory, now fleet.Instant, lim limits) Row {
	row := Row{Tree: want.Tree, Role: want.Role, Profile: want.Profile, Restart: want.Restart, State: "open"}
	if m.Order != fingerprint(want) && m.Attempt == "" {
		return row
	}
	row.Reservation, row.Failures, row.Last = m.Attempt, m.Failures, m.Last
	if m.Attempt != "" {
		row.State = "sent"
		if m.Accepted {
			row.State = "running"
		}
		return row
	}
	switch _, what := decide(want, m, outcome{}, now, lim); what {
	case actDone:
		row.State = "done"
	case actBroken:
		row.State = "broken"
	case actWait:
		row.State, row.WaitS = "waiting", m.waits(now, lim).Seconds()
	}
	return row
}

// Reset lets what is configured for tree begin anew: a [[staff]] entry forgets its failures and that it ran, and the tasks
// that were given up are tried again. It reports whether there was anything to reset.
//
// The keeper alone writes what it remembers, so that an entry's reset is left for its next pass.
func Reset(ctx context.Context, dir string, conf *config.Config, tree string, now fleet.Instant) (bool, error) {
	queue, err := OpenQueue(dir)
	if err != nil {
		return false, err
	}
	tasks, err := queue.reset(ctx, tree)
	if err != nil {
		return false, err
	}
	staffed := false
	for _, want := range conf.Staff {
		staffed = staffed || want.Tree == tree
	}
	if !staffed {
		return tasks > 0, nil
	}
	return true, updateResets(ctx, dir, func(doc *lockfile.Document) (bool, error) {
		raw, err := json.Marshal(now.Wall.UTC().Truncate(time.Millisecond))
		doc.Set(tree, raw)
		return true, err
	})
}

// takeResets carries out the resets that were asked for: first its own memory, then the request goes, so that none is lost.
func (k *Keeper) takeResets(ctx context.Context) error {
	if k.Dir == "" {
		return nil // they are written where it remembers
	}
	file, err := lockfile.Open(filepath.Join(k.Dir, resetFile))
	if err != nil {
		return fmt.Errorf("open the keeper's resets: %w", err)
	}
	data, err := file.Read()
	asked, err := parse(file.Path(), resetFormat, data, err)
	if err != nil || asked.Len() == 0 {
		return err
	}
	return updateResets(ctx, k.Dir, func(doc *lockfile.Document) (bool, error) {
		var done []string
		for tree := range doc.All() {
			if err := k.remember(ctx, tree, k.staff[tree].anew()); err != nil {
				return false, err
			}
			delete(k.retries, tree)
			k.ended("staff_refused", tree)
			done = append(done, tree)
		}
		for _, tree := range done {
			doc.Delete(tree)
			k.Say("info", "keeper_reset", tree, "it begins anew")
		}
		return true, nil
	})
}

func updateResets(ctx context.Context, dir string, change func(*lockfile.Document) (bool, error)) error {
	file, err := lockfile.Open(filepath.Join(dir, resetFile))
	if err != nil {
		return fmt.Errorf("open the keeper's resets: %w", err)
	}
	held, err := file.Lock(ctx, queueWait)
	if err != nil {
		return fmt.Errorf("take the lock of the keeper's resets: %w", err)
	}
	defer held.Unlock()
	data, err := held.Read()
	doc, err := parse(file.Path(), resetFormat, data, err)
	if err != nil {
		return err
	}
	if write, err := change(doc); err != nil || !write {
		return err
	}
	return replace(held, doc, "write the keeper's resets")
}
