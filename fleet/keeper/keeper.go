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
	// Reservation says what became of the reservation id, for the tree of an entry or a task.
	Reservation(ctx context.Context, tree, id string) (api.LaunchStatus, error)
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

// Keeper is the one keeper of its state directory, from [Open] to Close, or of a fleet of many hosts for a term ([Elected]). It is for
// one goroutine.
type Keeper struct {
	Options
	wanted func(context.Context) ([]config.Staff, error)
	memory store
	staff  map[string]memory // what memory says, by the tree as it is configured
	queue  *Queue            // nil for the keeper of many hosts
	lim    limits

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
	memory := &fileMemory{held: held}
	k := &Keeper{
		Options: opts, memory: memory, queue: queue, lim: limitsOf(opts.Config), trees: trees{now: opts.Now},
		retries: map[string]retry{}, said: map[string]string{},
		wanted: func(context.Context) ([]config.Staff, error) { return opts.Config.Staff, nil },
	}
	data, err := held.Read()
	if memory.doc, k.staff, err = readMemory(file.Path(), data, err); err != nil {
		held.Unlock()
		return nil, err
	}
	return k, nil
}

// Close lets another keeper work.
func (k *Keeper) Close() error { return k.memory.close() }

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
	var changed <-chan struct{}
	if k.queue != nil {
		changed = k.queue.Watch(ctx)
	}
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
