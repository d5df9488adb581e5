// Package dispatch is a dispatch from first to last: reserve, send, settle. It is the only way to staff a tree: the command line,
// the console, the keeper and the agents' own door all come through here.
//
// It guarantees that a dispatch that was provably refused leaves no reservation behind, and that one whose outcome is
// unknown leaves it standing until its grace runs out.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/mutant"
	"fleetdeck/fleet/tree"
)

const (
	// rosterTimeout bounds the question for the roster, since it is asked while the admission lock is held.
	rosterTimeout = 2 * time.Second
	// sendMargin is how much longer than its own wait for the lock the daemon may take to answer a spawn.
	sendMargin = 10 * time.Second
	// askAgain is the pause between two questions for an outcome that is unknown.
	askAgain = 250 * time.Millisecond
)

// Ledger is what a dispatch needs of a [ledger.Ledger].
type Ledger interface {
	Reserve(ctx context.Context, window time.Duration, draft ledger.Draft, view ledger.View) (fleet.Entry, error)
	Settle(ctx context.Context, window time.Duration, id string) error
	Read() ([]fleet.Entry, error)
}

// Daemon is what a dispatch asks of the daemon.
type Daemon interface {
	Roster(ctx context.Context) (fleet.Roster, error)
	Spawn(ctx context.Context, req api.Spawn) (api.Accepted, error)
	Launch(ctx context.Context, id string) (api.LaunchStatus, error)
	Reservation(ctx context.Context, id string) (api.LaunchStatus, error)
}

// Dispatcher carries out dispatches. It is safe for use by several goroutines.
type Dispatcher struct {
	Ledger Ledger
	Daemon Daemon
	// LockWait is the acquire window, Grace the boot grace of an order that names none.
	LockWait time.Duration
	Grace    time.Duration
	// Worktrees says how the linked worktree is made that an order asks for.
	Worktrees tree.Worktrees
	// Self is written into each reservation.
	Self fleet.Dispatcher
	Now  func() fleet.Instant
	// Allowed, where set, is asked before anything is reserved: who may not dispatch leaves no trace.
	Allowed func(context.Context) error
	// Progress, where set, is told in plain words what a dispatch waits for.
	Progress func(string)
}

// Reserve writes a reservation for order without sending anything: for a dispatcher that sends by itself. It makes no
// worktree.
func (d *Dispatcher) Reserve(ctx context.Context, order fleet.Order) (fleet.Entry, error) {
	if d.Allowed != nil {
		if err := d.Allowed(ctx); err != nil {
			return fleet.Entry{Tree: order.Tree}, err
		}
	}
	t, err := tree.Resolve(ctx, order.Tree, order.NoGit)
	if err != nil {
		return fleet.Entry{Tree: order.Tree}, err
	}
	return d.reserve(ctx, t, order, false)
}

// reserve writes the reservation of t for order, or lets the grace of the one that stands under order's id begin anew.
func (d *Dispatcher) reserve(ctx context.Context, t fleet.Tree, order fleet.Order, renew bool) (fleet.Entry, error) {
	also, err := resolveAll(ctx, order)
	if err != nil {
		return fleet.Entry{Tree: t.Path}, err
	}
	grace := order.Grace
	if grace == 0 {
		grace = d.Grace
	}
	entry, err := d.Ledger.Reserve(ctx, d.LockWait, ledger.Draft{
		Tree: t, Also: also, Role: order.Role, Profile: order.Profile, Grace: grace, Dispatcher: d.Self, ID: order.ID,
		BesideForeign: order.BesideForeign, Renew: renew,
	}, d.roster)
	if err != nil {
		entry.Tree = t.Path
	}
	return entry, err
}

// resolveAll gives the trees that order's agent is to hold beside its own.
func resolveAll(ctx context.Context, order fleet.Order) ([]fleet.Tree, error) {
	var also []fleet.Tree
	for _, path := range order.Also {
		t, err := tree.Resolve(ctx, path, order.NoGit)
		if err != nil {
			return nil, err
		}
		also = append(also, t)
	}
	return also, nil
}

// roster is asked inside the admission lock. That the daemon is out of reach is no proof that nobody is there.
func (d *Dispatcher) roster(ctx context.Context) (fleet.Roster, error) {
	ctx, cancel := context.WithTimeout(ctx, rosterTimeout)
	defer cancel()
	r, err := d.Daemon.Roster(ctx)
	if err != nil && fleet.RefusalOf(err) == nil {
		return r, fleet.Refuse(fleet.CodeDaemonUnreachable, "the daemon does not say who is there: %w", err).
			WithHint("look at it with 'fleetdeck status'; nothing was reserved")
	}
	return r, err
}

// Dispatch carries out order. The outcome says everything; the error is the same in the form that says what to do, and
// is nil exactly if the daemon accepted.
func (d *Dispatcher) Dispatch(ctx context.Context, order fleet.Order) (fleet.Outcome, error) {
	return d.dispatch(ctx, order, "")
}

// Resume is Dispatch of an agent that takes up the session of the member that was there before. Without a task it is sent none.
func (d *Dispatcher) Resume(ctx context.Context, order fleet.Order, before string) (fleet.Outcome, error) {
	return d.dispatch(ctx, order, before)
}

func (d *Dispatcher) dispatch(ctx context.Context, order fleet.Order, resumes string) (out fleet.Outcome, err error) {
	out = fleet.Outcome{Tree: order.Tree, Role: order.Role, Profile: order.Profile}
	if abs, err := filepath.Abs(order.Tree); err == nil {
		out.Tree = abs
	}
	var made *tree.Worktree
	var entry fleet.Entry
	if order.Branch == "" {
		entry, err = d.Reserve(ctx, order)
		out.Tree = entry.Tree
	} else if made, entry, err = d.makeWorktree(ctx, order); made != nil {
		out.Tree = made.Path
		defer func() {
			if out.Outcome != fleet.Unknown { // it is the daemon's by now, or gone
				d.forgetMade(ctx, entry.ID)
			}
		}()
	}
	if r := fleet.RefusalOf(err); r != nil && r.Code == fleet.CodeOutcomeUnknown {
		// The reservation may stand, and nothing was sent.
		out.Outcome, out.Code, out.Message, out.Hint = fleet.Unknown, r.Code, r.Message, r.Hint
		out.Reservation = entry.ID
		return out, err
	}
	if err != nil {
		return refused(out, err), err
	}
	out.Reservation, out.Until = entry.ID, entry.Deadline()

	accepted, err := d.send(ctx, entry, order, made, resumes)
	var unknown *unknownError
	switch {
	case err == nil:
		out.Outcome, out.Member, out.Slot = fleet.Accepted, accepted.ID(), accepted.Slot()
		return out, nil
	case errors.As(err, &unknown):
		out.Outcome, out.Code, out.Message = fleet.Unknown, fleet.CodeOutcomeUnknown, unknown.Error()
		return out, fleet.Refuse(fleet.CodeOutcomeUnknown, "%w", unknown).
			WithHint("the reservation stays until its grace runs out; see 'fleetdeck trees' for what became of it")
	}
	err = d.undoWorktree(ctx, made, entry.ID, err)
	if mutant.RefusedNotSettled {
		return refused(out, err), err
	}
	if serr := d.settle(ctx, entry); serr != nil {
		err = errors.Join(err, serr)
	}
	out.Reservation = ""
	return refused(out, err), err
}

// Recall says what became of a dispatch of order under its id, whose dispatcher has died: it was accepted, or it was not and never
// will be. While the daemon or the ledger does not say it asks again, until ctx ends. A worktree that is noted to have been made for it
// is taken back, unless it came to a launch, which has it then.
func (d *Dispatcher) Recall(ctx context.Context, order fleet.Order) (out fleet.Outcome, err error) {
	out = fleet.Outcome{Tree: order.Tree, Role: order.Role, Profile: order.Profile}
	defer func() {
		if out.Outcome != fleet.Unknown {
			d.forgetMade(ctx, order.ID)
		}
	}()
	for {
		status, err := d.Daemon.Reservation(ctx, order.ID)
		if r := fleet.RefusalOf(err); r != nil && r.Code == fleet.CodeNotFound {
			// Whoever could have sent it is dead, so that no request is under way any more.
			var refusal error
			if refusal, err = d.takeBack(ctx, order); err == nil {
				return refused(out, refusal), refusal
			}
		}
		switch {
		case err == nil && status.Failed != nil:
			return refused(out, status.Failed), status.Failed
		case err == nil:
			accepted := api.Accepted{Launch: status.Launch, Member: status.Member}
			out.Outcome, out.Member, out.Slot, out.Reservation = fleet.Accepted, accepted.ID(), accepted.Slot(), order.ID
			return out, nil
		}
		select {
		case <-ctx.Done():
			out.Outcome, out.Code, out.Message, out.Reservation = fleet.Unknown, fleet.CodeOutcomeUnknown, err.Error(), order.ID
			return out, fleet.Refuse(fleet.CodeOutcomeUnknown, "%w", &unknownError{order.ID, err})
		case <-time.After(askAgain):
		}
	}
}

// waitMargin is how long after the end of its grace a launch may take to be seen to have failed.
const waitMargin = 10 * time.Second

// Wait waits until the launch is listed, or has failed. Once its grace is over for long it is one or the other, whether or not
// anybody says so.
func (d *Dispatcher) Wait(ctx context.Context, out fleet.Outcome) (fleet.Outcome, error) {
	until := out.Until
	if until == (fleet.Deadline{}) {
		until = fleet.DeadlineAfter(d.Now(), d.Grace)
	}
	ctx, cancel := context.WithTimeout(ctx, max(until.Remaining(d.Now()), 0)+waitMargin)
	defer cancel()
	for {
		status, err := d.Daemon.Launch(ctx, out.Member)
		switch {
		case err == nil && status.Member != nil:
			return out, nil
		case err == nil && status.Failed != nil:
			return refused(out, status.Failed), status.Failed
		case err != nil && ctx.Err() == nil && fleet.RefusalOf(err) != nil && fleet.RefusalOf(err).Code == fleet.CodeNotFound:
			return refused(out, err), err
		}
		// An error is no news of the launch: the daemon may be restarting.
		select {
		case <-ctx.Done():
			out.Outcome, out.Code = fleet.Unknown, fleet.CodeOutcomeUnknown
			out.Message = "stopped waiting before the worker was listed"
			return out, fleet.Refuse(fleet.CodeOutcomeUnknown, "%s", out.Message)
		case <-time.After(askAgain / 5):
		}
	}
}

// unknownError is a request that may or may not have been carried out.
type unknownError struct {
	id  string
	err error
}

func (e *unknownError) Error() string {
	return fmt.Sprintf("nobody knows what became of reservation %s: %v", e.id, e.err)
}
func (e *unknownError) Unwrap() error { return e.err }

// send asks for the agent. While the answer is lost it asks again with the same id as long as the grace lasts: spawning
// is idempotent. Once one request may have arrived, a failure to send is not proof of anything any more.
func (d *Dispatcher) send(ctx context.Context, entry fleet.Entry, order fleet.Order, made *tree.Worktree, resumes string) (api.Accepted, error) {
	req := api.Spawn{
		Reservation: entry.ID, Tree: entry.Tree, Role: order.Role, Profile: order.Profile, Task: order.Task,
		Resumes: resumes, BesideForeign: order.BesideForeign,
	}
	if made != nil {
		req.Made = made.Made()
	}
	also, err := resolveAll(ctx, order)
	if err != nil {
		return api.Accepted{}, err
	}
	for _, t := range also {
		req.Also = append(req.Also, t.Path)
	}
	var lost error
	for {
		sctx, cancel := context.WithTimeout(ctx, d.LockWait+sendMargin)
		accepted, err := d.Daemon.Spawn(sctx, req)
		cancel()
		refusal := fleet.RefusalOf(err)
		switch {
		case err == nil:
			return accepted, nil
		case refusal != nil && lost == nil:
			return api.Accepted{}, err // or provably never sent
		case refusal != nil && refusal.Code != fleet.CodeDaemonUnreachable:
			return d.afterRefusal(ctx, entry, err)
		}
		if lost == nil && d.Progress != nil {
			d.Progress("the daemon's answer was lost; asking again with the same reservation while its grace lasts")
		}
		lost = err
		if entry.Expired(d.Now()) {
			return api.Accepted{}, &unknownError{entry.ID, lost}
		}
		select {
		case <-ctx.Done():
			return api.Accepted{}, &unknownError{entry.ID, lost}
		case <-time.After(askAgain):
		}
	}
}

// afterRefusal finds out what the refusal of a request is worth before which another one, of which no answer came, may still be
// under way. Once the entry is dropped that one cannot be accepted any more: either the daemon knows it by then, or nothing
// was started and never will be.
func (d *Dispatcher) afterRefusal(ctx context.Context, entry fleet.Entry, refusal error) (api.Accepted, error) {
	if err := d.settle(ctx, entry); err != nil {
		return api.Accepted{}, &unknownError{entry.ID, errors.Join(refusal, err)}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rosterTimeout)
	defer cancel()
	status, err := d.Daemon.Reservation(ctx, entry.ID)
	switch r := fleet.RefusalOf(err); {
	case r != nil && r.Code == fleet.CodeNotFound:
		return api.Accepted{}, refusal
	case err != nil:
		return api.Accepted{}, &unknownError{entry.ID, errors.Join(refusal, err)}
	case status.Failed != nil:
		return api.Accepted{}, status.Failed
	}
	return api.Accepted{Launch: status.Launch, Member: status.Member}, nil
}

// settle drops the reservation of a dispatch that was provably refused, if its id still stands.
func (d *Dispatcher) settle(ctx context.Context, entry fleet.Entry) error {
	// The refusal is a fact whether or not the caller still waits.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.LockWait+time.Second)
	defer cancel()
	err := d.Ledger.Settle(ctx, d.LockWait, entry.ID)
	if err != nil {
		return fmt.Errorf("drop reservation %s of %s, which stays until its grace runs out: %w", entry.ID, entry.Tree, err)
	}
	return nil
}

func refused(out fleet.Outcome, err error) fleet.Outcome {
	out.Outcome, out.Message = fleet.Refused, err.Error()
	if r := fleet.RefusalOf(err); r != nil {
		out.Code, out.Hint = r.Code, r.Hint
	}
	return out
}
