// Package daemon is the session manager behind the socket: it admits launches, starts their terminals, lists them once
// they are ready, watches them until they end, and tells everybody how things stand.
//
// It guarantees that a spawn is admitted only while its reservation stands, checked under the admission lock; that a
// reservation id starts one agent at most; that a launch which is not listed by its deadline is ended before its tree and
// slot are free; and that whatever it has told anybody is on disk. It may be killed at any instant: the next daemon
// on the same state directory goes on from there.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/foreign"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/slots"
	"fleetdeck/fleet/state"
	"fleetdeck/lockfile"
)

// Options are what a daemon is made of.
type Options struct {
	State  state.Dir
	Config *config.Config
	// Ledger is where the reservations stand that launches are admitted by.
	Ledger ledger.Ledger
	// Launcher is the usual one, Launchers are those that a profile can name beside it.
	Launcher  launch.Launcher
	Launchers []launch.Launcher
	Version   string
	// Exe is this program, for agents that call it.
	Exe string
	Now func() fleet.Instant
	// Log is told what nobody else would hear.
	Log func(format string, args ...any)
	// Ready, where set, is called once the socket answers.
	Ready func()
	// Keeper, where set, keeps the fleet staffed until ctx ends, and says what it does as events.
	Keeper func(ctx context.Context, say func(level, kind, tree, message string)) error
	// RetakeEvery is how often the ledger is asked whether it still knows of the members here: [RetakeEvery] where it is zero.
	RetakeEvery time.Duration
	// Fencing is for a ledger that gives slots away.
	Fencing Fencing
	// Attend, where set, keeps this host among those of its fleet until ctx ends, and says what is in the way of that.
	Attend func(ctx context.Context, trouble func(error))
}

// Daemon is a running daemon.
type Daemon struct {
	Options
	reg     *registry
	pool    pool
	events  *events
	screens *screens
	since   time.Time

	// ctx ends with the daemon; tending counts what must have returned before it has.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	tending sync.WaitGroup

	reports  reports
	hearings hearings
	keeping  keeping
	foreign  *foreign.Scanner // nil where nobody looks for foreign agents

	secretOnce sync.Once
	secret     []byte
	secretErr  error

	// admissions is held for reading from an admission's decision until its launch is tended; leaving ends all of them, so that who
	// ends every member overlooks none.
	admissions sync.RWMutex
	leaving    bool

	mu       sync.Mutex // guards what follows
	tended   map[string]*tender
	vacating map[string]chan struct{} // the reservations that are being given back; closed once that was tried
}

// pool is the slots as the daemon uses them: a [slots.Pool].
type pool interface {
	Reserve(slots.Request) (fleet.Slot, error)
	Bind(reservation string) error
	Release(reservation string)
	Restore(held fleet.Slot) error
	List() []fleet.Slot
}

// Run runs a daemon until ctx ends or somebody asks it to shut down. Members go on running after it.
func Run(ctx context.Context, opts Options) error {
	configured := make([]fleet.Slot, len(opts.Config.Slots))
	for i, s := range opts.Config.Slots {
		configured[i] = fleet.Slot{Name: s.Name, Role: s.Role, Profile: s.Profile}
	}
	return run(ctx, opts, slots.New(configured, opts.Now))
}

func run(ctx context.Context, opts Options, slots pool) error {
	if opts.RetakeEvery == 0 {
		opts.RetakeEvery = RetakeEvery
	}
	if span := opts.Fencing.Span; span > 0 { // what was lost is to be held again before a fence is over
		opts.RetakeEvery = min(opts.RetakeEvery, span/parts)
	}
	d := &Daemon{Options: opts, pool: slots, since: opts.Now().Wall.UTC(), tended: map[string]*tender{}, vacating: map[string]chan struct{}{}}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	defer d.cancel(nil)

	var err error
	if d.reg, err = openRegistry(ctx, opts.State.Path, opts.Now); err != nil {
		return err
	}
	defer d.reg.close()
	d.reg.forgot = d.forget
	if d.events, err = openEvents(filepath.Join(opts.State.Path, "events.jsonl"), opts.Now); err != nil {
		return err
	}
	defer d.events.close()
	d.screens = newScreens(d.ctx)
	if opts.Config.Foreign {
		d.foreign = foreign.NewScanner()
	}
	if err := d.restore(); err != nil {
		return err
	}
	d.awaitEnds()
	listener, err := listen(opts.State.Socket)
	if err != nil {
		return err
	}
	defer func() {
		if d.reg.check() == nil { // else the socket is that of the next one
			os.Remove(opts.State.Socket)
		}
	}()
	if err := d.serveMCP(); err != nil {
		listener.Close()
		return err
	}
	d.tending.Go(d.guard)
	if err := d.serve(listener); err != nil {
		return err
	}
	if err := context.Cause(d.ctx); errors.Is(err, lockfile.ErrLockLost) {
		return err
	}
	return nil
}

// guard ends a daemon whose state directory was removed or replaced: another one can begin there, and this one would answer for
// a fleet that is not the one on disk. Its agents go on.
func (d *Daemon) guard() {
	for sleep(d.ctx, time.Second) {
		if err := d.reg.check(); errors.Is(err, lockfile.ErrLockLost) {
			err = fmt.Errorf("the state directory %s was removed or replaced; members go on, and count as foreign for the next daemon: %w", d.State.Path, err)
			d.Log("%v", err)
			d.cancel(err)
			return
		}
	}
}

// restore takes over what an earlier daemon left: slots first, so that none is given away, then a tender for each record that
// is not over.
func (d *Daemon) restore() error {
	if err := d.takeInOrphans(); err != nil {
		return err
	}
	d.settleLeft()
	view := d.reg.view()
	adopted := 0
	for _, rec := range view.records {
		if rec.over() {
			continue
		}
		adopted++
		if rec.Slot != "" {
			held := fleet.Slot{Name: rec.Slot, Role: rec.Role, Profile: rec.Profile, State: fleet.SlotReserved,
				Member: rec.ID, Reservation: rec.Reservation, Tree: rec.Tree, Since: rec.AcceptedAt}
			if rec.Step == stepListed {
				held.State, held.Since = fleet.SlotBound, rec.ListedAt
			}
			if err := d.pool.Restore(held); err != nil {
				return fmt.Errorf("restore the slots: %w", err)
			}
		}
	}
	for _, rec := range view.records {
		if !rec.over() {
			d.tend(*rec, true)
		}
	}
	d.events.add("info", "daemon_up", "", "", "daemon %s is up with %d agents", d.Version, adopted)
	return nil
}

// awaitEnds waits a moment for the ends of those that ended while no daemon ran, so that the first answer does not show them
// as they were.
func (d *Daemon) awaitEnds() {
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); {
		ended := false
		for _, rec := range d.reg.view().records {
			ended = ended || rec.Step == stepListed && !process.Alive(rec.Agent)
		}
		if !ended || !sleep(d.ctx, 20*time.Millisecond) {
			return
		}
	}
}

func (d *Daemon) serve(listener net.Listener) error {
	server := &http.Server{
		Handler:           d.handler(),
		ConnContext:       withPeer,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		BaseContext:       func(net.Listener) context.Context { return d.ctx },
	}
	failed := make(chan error, 1)
	d.startKeeper()
	d.tending.Go(d.keepHeld)
	if d.Attend != nil {
		d.tending.Go(func() {
			d.Attend(d.ctx, func(err error) { d.alarm("not_attending", record{}, "%v", err) })
		})
	}
	go func() { failed <- server.Serve(listener) }()
	if d.Ready != nil {
		d.Ready()
	}
	var err error
	select {
	case err = <-failed:
		d.cancel(err)
	case <-d.ctx.Done():
		ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), 3*time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}
	d.tending.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the socket: %w", err)
	}
	return nil
}

// alarm records what an operator must see, and logs it.
func (d *Daemon) alarm(kind string, rec record, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	d.Log("%s: %s", kind, msg)
	d.events.add("alarm", kind, rec.Tree, rec.ID, "%s", msg)
}

// forget removes what is left of a member that is on no record any more.
func (d *Daemon) forget(id string) {
	if err := os.RemoveAll(d.dirOf(id)); err != nil {
		d.Log("remove what is left of member %s: %v", id, err)
	}
}

func (d *Daemon) dirOf(id string) string { return filepath.Join(d.State.Path, "members", id) }
