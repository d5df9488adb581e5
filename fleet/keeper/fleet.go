package keeper

import (
	"context"
	"encoding/json"
	"fmt"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
)

// Memory is where the keeper of a fleet of many hosts keeps what it remembers, so that whoever is elected next goes on from there. Both
// fail, and change nothing, once the keeper's term is over.
type Memory interface {
	// Recall gives what is remembered, by tree.
	Recall(ctx context.Context) (map[string][]byte, error)
	// Remember makes raw durable.
	Remember(ctx context.Context, tree string, raw []byte) error
}

// Elected is the keeper of a fleet of many hosts, for one term of office: it keeps what wanted gives at each pass, trees named
// NODE:PATH, and has no queue. Book, Daemon and Dispatcher of opts are the fleet's; Dir counts for nothing.
//
// The guarantees of a [Keeper] hold over all its terms: what one remembered the next one knows.
func Elected(opts Options, wanted func(context.Context) ([]config.Staff, error), m Memory) *Keeper {
	opts.Dir = ""
	memory := fleetMemory{m}
	k := &Keeper{
		Options: opts, memory: memory, lim: limitsOf(opts.Config), trees: trees{now: opts.Now, asNamed: true},
		retries: map[string]retry{}, said: map[string]string{},
	}
	k.wanted = func(ctx context.Context) (_ []config.Staff, err error) {
		if k.staff, err = memory.recall(ctx); err != nil {
			return nil, err
		}
		return wanted(ctx)
	}
	return k
}

// fleetMemory is read anew for each pass: who resets an entry writes there.
type fleetMemory struct{ m Memory }

func (f fleetMemory) recall(ctx context.Context) (map[string]memory, error) {
	all, err := f.m.Recall(ctx)
	if err != nil {
		return nil, err
	}
	return decodeAll(all)
}

func decodeAll(all map[string][]byte) (map[string]memory, error) {
	staff := map[string]memory{}
	for tree, raw := range all {
		var m memory
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, fmt.Errorf("what is remembered of %s is damaged: %w", tree, err)
		}
		staff[tree] = m
	}
	return staff, nil
}

func (f fleetMemory) save(ctx context.Context, tree string, raw []byte) error {
	// What is known by now is to be written, also while the keeper is told to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	return f.m.Remember(ctx, tree, raw)
}

func (fleetMemory) close() error { return nil }

// Anew is what is remembered once an entry was reset: how it failed is forgotten, and what is on its way is not.
func Anew(raw []byte) ([]byte, error) {
	var m memory
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("what the keeper remembers is damaged: %w", err)
	}
	return json.Marshal(m.anew())
}

// anew is m without how it failed.
func (m memory) anew() memory {
	return memory{Order: m.Order, Attempt: m.Attempt, AttemptedAt: m.AttemptedAt, Accepted: m.Accepted}
}

// Rows say how the entries stand by what is remembered of them.
func Rows(wanted []config.Staff, memories map[string][]byte, conf *config.Config, now fleet.Instant) ([]Row, error) {
	staff, err := decodeAll(memories)
	rows := []Row{}
	for _, want := range wanted {
		rows = append(rows, rowOf(want, staff[want.Tree], now, limitsOf(conf)))
	}
	return rows, err
}
