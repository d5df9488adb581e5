package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
	"fleetdeck/lockfile"
)

// Report is what one pass did, as `keep --once --json` prints it.
type Report struct {
	Prune fleet.PruneReport `json:"prune"`
	Staff []Act             `json:"staff"`
	Queue []Act             `json:"queue"`
}

// Act is what a pass did about one entry of [[staff]] or one task.
type Act struct {
	Tree string `json:"tree"`
	// Task is the id of a task of the queue.
	Task string `json:"task,omitempty"`
	// Action is "start", "hold", "wait", "broken", "done", "capped", "taken", "refused", "unknown" or "give_up".
	Action action `json:"action"`
	// Reservation and Member name what was started, or is there.
	Reservation string     `json:"reservation,omitempty"`
	Member      string     `json:"member,omitempty"`
	Code        fleet.Code `json:"code,omitempty"`
	Message     string     `json:"message,omitempty"`
}

// pass is one look at the fleet and what is done about it.
type pass struct {
	k *Keeper
	// entries were read before roster was asked for, and neither is pruned: whoever is in one of them is there.
	entries  []fleet.Entry
	roster   fleet.Roster
	launches int             // under way, with those that this pass started
	taken    map[string]bool // trees that this pass sent somebody into
	report   Report
}

// Pass makes one pass: it prunes, staffs, and works off the queue. It goes on past what is wrong with one entry; the error is
// about the pass as a whole.
func (k *Keeper) Pass(ctx context.Context) (Report, error) {
	p := &pass{k: k, taken: map[string]bool{}, report: Report{Prune: fleet.PruneReport{Pruned: []fleet.Pruned{}}, Staff: []Act{}, Queue: []Act{}}}
	err := p.look(ctx)
	if err == nil {
		err = errors.Join(p.prune(ctx), k.takeResets(ctx), p.keepStaff(ctx), p.workQueue(ctx))
	}
	switch {
	case ctx.Err() != nil:
		return p.report, ctx.Err()
	case err != nil:
		k.trouble("warn", "keeper_blind", "", err.Error(), "the keeper cannot do its work: "+err.Error())
	default:
		k.ended("keeper_blind", "")
	}
	return p.report, err
}

// look reads the file first and asks for the roster second, like everybody who does not hold the lock.
func (p *pass) look(ctx context.Context) (err error) {
	if p.entries, err = p.k.Book.Read(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if p.roster, err = p.k.Daemon.Roster(ctx); err != nil {
		if fleet.RefusalOf(err) == nil {
			err = fleet.Refuse(fleet.CodeDaemonUnreachable, "the daemon does not say who is there: %w", err)
		}
		return err
	}
	p.launches = len(p.roster.Launches)
	launching := map[string]bool{}
	for _, l := range p.roster.Launches {
		launching[l.Reservation] = true
	}
	now := p.k.Now()
	for _, e := range p.entries {
		if !launching[e.ID] && !p.roster.Listed(e.ID) && !e.Expired(now) {
			p.launches++ // a dispatch under way
		}
	}
	return nil
}

// prune drops what may be dropped. While the lock is busy the pass works from the unpruned view, which costs nothing.
func (p *pass) prune(ctx context.Context) error {
	report, err := p.k.Book.Prune(ctx, p.k.Config.PruneWait, p.roster)
	p.report.Prune = report
	if r := fleet.RefusalOf(err); r != nil && r.Code == fleet.CodeLockBusy {
		p.k.trouble("warn", "prune_busy", "", "busy", fmt.Sprintf("the reservation file is left alone, and seen unpruned: %v", err))
		return nil
	}
	if err == nil {
		p.k.ended("prune_busy", "")
	}
	return err
}

// free reports whether it is worth asking for the tree at path: a glance that spares the lock, and decides nothing.
func (p *pass) free(ctx context.Context, path string, noGit, besideForeign bool) bool {
	t, err := p.k.trees.resolve(ctx, path, noGit)
	return err != nil || !p.taken[t.Path] && fleet.Occupancy(t, p.entries, p.roster, p.k.Now()).Free(besideForeign)
}

// capped reports whether enough launches are under way.
func (p *pass) capped() bool { return p.launches >= p.k.Config.Keeper.Launches }

// Verdicts on a dispatch.
type verdict int

const (
	sent    verdict = iota // the daemon accepted it
	inDoubt                // nobody knows
	notNow                 // refused, for no fault of the order
	atFault                // refused, and the next try will be too unless something is mended
)

// dispatch carries out order and notes what it came to for this and the next passes. key names who asks.
func (p *pass) dispatch(ctx context.Context, key string, order fleet.Order) (fleet.Outcome, verdict) {
	// One tree's trouble must not hold up the others for a whole grace: in doubt, the next pass asks what became of it.
	dctx, cancel := context.WithTimeout(ctx, 2*p.k.Config.LockWait+2*askTimeout)
	defer cancel()
	out, err := p.k.Dispatcher.Dispatch(dctx, order)
	switch {
	case err == nil:
		p.launches++
		p.taken[out.Tree] = true
		delete(p.k.retries, key)
		return out, sent
	case out.Outcome == fleet.Unknown:
		p.launches++
		p.taken[out.Tree] = true
		return out, inDoubt
	case dctx.Err() != nil || errors.Is(err, lockfile.ErrBusy):
		p.k.retryLater(key)
		return out, notNow
	}
	switch out.Code {
	case fleet.CodeTreeReserved, fleet.CodeTreeOccupied, fleet.CodeTreeForeign, fleet.CodeSlotUnavailable, fleet.CodeLockBusy,
		fleet.CodeDaemonUnreachable, fleet.CodeClusterUnreachable, fleet.CodeSlotsDiffer, fleet.CodeReservationStale, fleet.CodeFileCorrupt:
		p.k.retryLater(key)
		return out, notNow
	case fleet.CodeLaunchFailed:
		// It may have been accepted, its answer lost, and have failed by the time it was asked for again.
		if last, err := p.fateOf(ctx, key, order.ID, p.k.Now().Wall, false); err != nil || last.fate != unsent {
			return out, inDoubt
		}
	}
	return out, atFault
}

// retry is when to try again what was refused for no fault of its own. It is forgotten with the keeper.
type retry struct {
	at    fleet.Deadline
	pause time.Duration
}

func (k *Keeper) retryLater(key string) {
	pause := min(2*k.retries[key].pause, maxRetry)
	pause = max(pause, k.Config.Keeper.Interval)
	k.retries[key] = retry{fleet.DeadlineAfter(k.Now(), pause), pause}
}

func (k *Keeper) tooSoon(key string) bool {
	r, ok := k.retries[key]
	return ok && r.at.Remaining(k.Now()) > 0
}

// newID is the id of a reservation that nobody has used.
func newID() string { return ulid.Make().String() }

// trees remembers for a while which tree a path is, for glances.
type trees struct {
	now func() fleet.Instant
	// asNamed says that paths are other hosts': each is a tree by its name.
	asNamed bool
	known   map[string]resolved
}

type resolved struct {
	tree  fleet.Tree
	until time.Duration // on the monotonic clock
}

func (t *trees) resolve(ctx context.Context, path string, noGit bool) (fleet.Tree, error) {
	if t.asNamed {
		return fleet.Tree{Path: path}, nil
	}
	now := t.now().Mono
	if r, ok := t.known[path]; ok && now < r.until {
		return r.tree, nil
	}
	delete(t.known, path)
	found, err := tree.Resolve(ctx, path, noGit)
	if err != nil {
		return fleet.Tree{}, err
	}
	if t.known == nil {
		t.known = map[string]resolved{}
	}
	t.known[path] = resolved{found, now + time.Minute}
	return found, nil
}
