// Package keeper staffs the fleet by itself: pass by pass it prunes the reservation book, sees to what [[staff]] asks for, and
// sends the tasks of the queue into their trees as those become free.
//
// It guarantees that one keeper works at a time in a state directory; that whatever it dispatches goes through
// [dispatch.Dispatcher], which alone decides whether a tree is free; and that it dispatches once what it is to dispatch once,
// though it be killed at any instant: the reservation's id is on disk before anybody is asked, and the next keeper
// asks what became of that id before it does anything new.
//
// The caller hands in what the keeper works with, and tells people what it says.
package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/config"
	"fleetdeck/lockfile"
)

const (
	stateFile   = "keeper.json"
	stateFormat = "fleetdeck.keeper/1"
	// askTimeout bounds one question to the daemon.
	askTimeout = 5 * time.Second
	// maxRetry bounds the pause between two tries that were nobody's fault.
	maxRetry = 30 * time.Second
)

// Book is what the keeper needs of a ledger.
type Book interface {
	Read() ([]fleet.Entry, error)
	Prune(ctx context.Context, window time.Duration, roster fleet.Roster) (fleet.PruneReport, error)
}

// Daemon is what the keeper asks of the daemon.
type Daemon interface {
	Roster(ctx context.Context) (fleet.Roster, error)
	Reservation(ctx context.Context, id string) (api.LaunchStatus, error)
}

// Dispatcher carries out an order; it is a [dispatch.Dispatcher].
type Dispatcher interface {
	Dispatch(ctx context.Context, order fleet.Order) (fleet.Outcome, error)
}

// Options are what a keeper works with.
type Options struct {
	// Dir is the state directory.
	Dir        string
	Config     *config.Config
	Book       Book
	Daemon     Daemon
	Dispatcher Dispatcher
	Now        func() fleet.Instant
	// Say tells people: the level and kind of a [fleet.Event], the tree that it is about, if any, and the words.
	Say func(level, kind, tree, message string)
}

// Keeper is the one keeper of its state directory, from Open to Close. It is for one goroutine.
type Keeper struct {
	Options
	held  *lockfile.Held
	path  string
	doc   *lockfile.Document
	staff map[string]memory // what doc says, by the tree as it is configured
	queue *Queue
	lim   limits

	trees   trees
	retries map[string]retry  // of what was refused for no fault of its own
	said    map[string]string // troubles that last, told once
}

// Open becomes the keeper of the state directory, waiting no longer than wait for another to end. If that goes on, the error is
// a [lockfile.ErrBusy] that says who it is.
func Open(ctx context.Context, opts Options, wait time.Duration) (*Keeper, error) {
	file, err := lockfile.Open(filepath.Join(opts.Dir, stateFile))
	if err != nil {
		return nil, fmt.Errorf("open the keeper's memory: %w", err)
	}
	queue, err := OpenQueue(opts.Dir)
	if err != nil {
		return nil, err
	}
	held, err := file.Lock(ctx, wait)
	if errors.Is(err, lockfile.ErrBusy) {
		return nil, fmt.Errorf("another keeper works on this state directory: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("take the keeper's lock: %w", err)
	}
	k := &Keeper{
		Options: opts, held: held, path: file.Path(), queue: queue, lim: limitsOf(opts.Config), trees: trees{now: opts.Now},
		retries: map[string]retry{}, said: map[string]string{},
	}
	data, err := held.Read()
	if k.doc, k.staff, err = readMemory(k.path, data, err); err != nil {
		held.Unlock()
		return nil, err
	}
	return k, nil
}

// Close lets another keeper work.
func (k *Keeper) Close() error { return k.held.Unlock() }

func limitsOf(c *config.Config) limits {
	return limits{crashes: c.Keeper.Crashes, backoff: c.Keeper.Backoff, backoffMax: c.Keeper.BackoffMax, rand: rand.Float64}
}

// Run makes a pass at each interval, and whenever the queue changes, until ctx ends or the lock is lost.
func (k *Keeper) Run(ctx context.Context) error {
	return k.run(ctx, func() bool { return true })
}

func (k *Keeper) run(ctx context.Context, needed func() bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := k.queue.Watch(ctx)
	tick := time.NewTicker(k.Config.Keeper.Interval)
	defer tick.Stop()
	for ctx.Err() == nil && needed() {
		_, err := k.Pass(ctx)
		if errors.Is(err, lockfile.ErrLockLost) || errors.Is(err, lockfile.ErrNotHeld) {
			return fmt.Errorf("the keeper's lock: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-changed:
		}
	}
	return nil
}

// Serve keeps the fleet whenever there is something to keep, until ctx ends: it becomes the keeper once [[staff]] or the queue
// asks for something, waits while another one works, and lets go when there is nothing left.
func Serve(ctx context.Context, opts Options) error {
	queue, err := OpenQueue(opts.Dir)
	if err != nil {
		return err
	}
	needed := func() bool {
		tasks, err := queue.List()
		return len(opts.Config.Staff) > 0 || len(tasks) > 0 || err != nil // a pass says what is wrong with it
	}
	changed := queue.Watch(ctx)
	for ctx.Err() == nil {
		if !needed() {
			<-changed // closed when ctx ends
			continue
		}
		k, err := Open(ctx, opts, time.Minute)
		switch {
		case errors.Is(err, lockfile.ErrBusy) || ctx.Err() != nil:
			continue
		case err != nil:
			return err
		}
		err = k.run(ctx, needed)
		if err = errors.Join(err, k.Close()); err != nil {
			return err
		}
	}
	return nil
}

// readMemory reads keeper.json.
func readMemory(path string, data []byte, err error) (*lockfile.Document, map[string]memory, error) {
	doc, err := parse(path, stateFormat, data, err)
	if err != nil {
		return nil, nil, err
	}
	staff := map[string]memory{}
	for tree, raw := range doc.All() {
		var m memory
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, nil, damaged(path, fmt.Errorf("entry %q: %w", tree, err))
		}
		staff[tree] = m
	}
	return doc, staff, nil
}

// remember makes m durable as what is known of tree's entry. It is not remembered before it is on disk.
func (k *Keeper) remember(tree string, m memory) error {
	old, known := k.staff[tree]
	if known && old == m {
		return nil
	}
	if err := lockfile.CheckKey(tree); err != nil {
		return fmt.Errorf("remember %q: %w", tree, err)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("remember %s: %w", tree, err)
	}
	was, had := k.doc.Get(tree)
	k.doc.Set(tree, raw)
	if err := replace(k.held, k.doc, "write the keeper's memory"); err != nil {
		if k.doc.Delete(tree); had {
			k.doc.Set(tree, was)
		}
		return err
	}
	k.staff[tree] = m
	return nil
}

// trouble tells of something that lasts, once until it ends or is another.
func (k *Keeper) trouble(level, kind, tree, about, message string) {
	key := kind + "\x00" + tree
	if k.said[key] != about {
		k.said[key] = about
		k.Say(level, kind, tree, message)
	}
}

// ended notes that a trouble is over.
func (k *Keeper) ended(kind, tree string) { delete(k.said, kind+"\x00"+tree) }
