package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/plain"
)

const (
	// stopPatience is how long an agent has between TERM and KILL; a launch that is out of time has less.
	stopPatience = 5 * time.Second
	bootPatience = time.Second
	// maxReadyText bounds the output that a readiness pattern is looked for in.
	maxReadyText = 64 << 10
)

// bootDeadline is when a launch that is not ready is ended: early enough before its reservation's deadline that it is
// gone by then.
func (r *record) bootDeadline() fleet.Deadline {
	margin := min(2*time.Second, r.Deadline.Wall.Sub(r.AcceptedAt)/10)
	margin = max(0, margin)
	d := r.Deadline
	d.Wall = d.Wall.Add(-margin)
	if d.Boot.ID != "" {
		d.Boot.DeadlineNS -= int64(margin)
	}
	return d
}

// tend starts the one goroutine that carries a record from wherever it is to its end.
func (d *Daemon) tend(rec record, adopted bool) {
	ctx, stop := context.WithCancelCause(d.ctx)
	t := &tender{d: d, id: rec.ID, stop: stop, ended: make(chan struct{}), adopted: adopted}
	d.mu.Lock()
	d.tended[rec.ID] = t
	d.mu.Unlock()
	d.tending.Go(func() {
		defer func() {
			d.mu.Lock()
			delete(d.tended, rec.ID)
			d.mu.Unlock()
			stop(nil)
			close(t.ended)
		}()
		t.run(ctx)
	})
}

// tender carries one record through its steps.
type tender struct {
	d  *Daemon
	id string
	// stop with errStopped makes a launch give up. A member is stopped at its terminal, which the tender then sees.
	stop  context.CancelCauseFunc
	ended chan struct{}
	// adopted says that an earlier daemon made the record.
	adopted bool
}

func (t *tender) record() record {
	rec, _ := t.d.reg.get(t.id)
	return rec
}

func (t *tender) run(ctx context.Context) {
	term, err := t.terminal(ctx)
	if term == nil && err == nil {
		return // the daemon ends; the next one goes on
	}
	rec := t.record()
	if rec.launching() {
		if err == nil {
			err = t.boot(ctx, term)
		}
		if err != nil {
			if t.d.ctx.Err() != nil {
				return
			}
			t.fail(term, err)
			return
		}
		if errors.Is(context.Cause(ctx), errStopped) {
			// Whoever stopped the launch came too late for that: it is a member by now.
			t.end(term)
		}
		ctx = t.d.ctx
	} else if err != nil {
		t.exited(nil) // provably gone
		return
	}
	t.watch(ctx, term)
}

// terminal finds the record's terminal, or starts it. It goes on asking while the answer is unknown; an error is proof that
// there is none, and neither means that the daemon ends. A launch that is stopped meanwhile is not simply given up: what was
// begun is either found, or proven to be gone.
func (t *tender) terminal(ctx context.Context) (launch.Terminal, error) {
	begun := t.adopted // the daemon before may have come as far as to start it
	for pause := firstPause; ; pause = min(2*pause, 5*time.Second) {
		rec := t.record()
		term, err := t.d.find(t.d.ctx, rec)
		switch {
		case err == nil:
			return term, nil
		case errors.Is(err, launch.ErrGone):
			return nil, launchFailed("its terminal was killed")
		case errors.Is(err, launch.ErrNotStarted) && rec.Step != stepAccepted:
			// It was started, so its directory was taken away. That proves nothing of the agent.
			if process.Alive(rec.Agent) {
				if pause == firstPause {
					t.d.alarm("terminal_lost", rec, "the directory of member %s is gone while its agent, pid %d, lives: nobody can see or stop it through fleetdeck any more", rec.ID, rec.Agent.Pid)
				}
				err = errors.New("its directory is gone, and its agent lives")
				break
			}
			if err = t.endMarked(); err == nil {
				return nil, launchFailed("its terminal and its directory are gone")
			}
		case errors.Is(err, launch.ErrNotStarted):
			if begun {
				if err = t.endMarked(); err != nil {
					break
				}
			}
			if cause := context.Cause(ctx); cause != nil && t.d.ctx.Err() == nil {
				return nil, launchFailed("%w", cause)
			}
			begun = true
			if term, err = t.start(rec); err == nil {
				return term, nil
			}
			if fleet.RefusalOf(err) != nil || errors.Is(err, launch.ErrNotStarted) {
				return nil, err
			}
		}
		if t.d.ctx.Err() != nil {
			return nil, nil
		}
		t.d.Log("terminal of %s: %v", rec.ID, err)
		sleep(t.d.ctx, pause)
	}
}

// firstPause is the first pause between two questions to a terminal that gives no answer.
const firstPause = 100 * time.Millisecond

// endMarked ends whatever runs as the record's agent, found by the mark in its environment.
func (t *tender) endMarked() error {
	return process.EndTree(t.d.ctx, t.record().Agent, "FLEETDECK_MEMBER="+t.id, bootPatience)
}

// start starts the agent, unless its time is up already.
func (t *tender) start(rec record) (launch.Terminal, error) {
	if rec.bootDeadline().Remaining(t.d.Now()) <= 0 {
		return nil, launchFailed("its grace was over before it could be started")
	}
	spec, err := t.d.prepare(rec)
	if err != nil {
		return nil, launchFailed("%w", err)
	}
	token, err := t.d.token(rec.ID)
	if err != nil {
		return nil, launchFailed("%w", err)
	}
	// The token's hash is on record before anybody can have the token.
	if err := t.d.reg.update(rec.ID, func(r *record) error {
		r.TokenSHA256 = hashToken(token)
		if r.Resumes == "" && agent.Mentions(t.d.Config.Profiles[rec.Profile].Command, "{session}") {
			r.Session = sessionOf(rec.ID)
		}
		return nil
	}); err != nil {
		return nil, launchFailed("%w", err)
	}
	launcher, err := t.d.launcher(rec.Launcher)
	if err != nil {
		return nil, launchFailed("%w", err)
	}
	return launcher.Start(t.d.ctx, spec)
}

// boot waits until the agent is ready and lists it. An error means that it will not be: it is still to be ended.
func (t *tender) boot(ctx context.Context, term launch.Terminal) error {
	rec := t.record()
	if rec.Step == stepAccepted {
		if err := t.step(func(r *record) error {
			r.Step, r.StartedAt = stepBooting, t.d.Now().Wall.UTC()
			return nil
		}); err != nil {
			return err
		}
	}
	left := rec.bootDeadline().Remaining(t.d.Now())
	ctx, cancel := context.WithTimeoutCause(ctx, max(0, left), launchFailed("it was not ready within its grace"))
	defer cancel()

	profile := t.d.Config.Profiles[rec.Profile]
	status, err := t.await(ctx, term, profile.Ready)
	if err != nil {
		return err
	}
	if profile.Charter == config.CharterTyped {
		if status.Receipt, err = t.typeCharter(ctx, term, profile); err != nil {
			return launchFailed("%w", err)
		}
	}
	if err := t.d.Ledger.Bind(ctx, rec.Reservation, rec.ID); err != nil {
		if fleet.RefusalOf(err) != nil {
			return err
		}
		return launchFailed("its tree could not be bound: %w", err)
	}
	// From here on the terminal's own deadline is off: this is the point at which a launch becomes a member.
	if err := term.Confirm(ctx); err != nil {
		return launchFailed("it could not be confirmed: %w", err)
	}
	return t.list(status)
}

// await follows the terminal until ready says that the agent is.
func (t *tender) await(ctx context.Context, term launch.Terminal, ready config.Ready) (launch.Status, error) {
	waiter, done := t.d.reports.wait(t.id)
	defer done()
	var text []byte
	for {
		status, err := term.Status(ctx)
		switch {
		case errors.Is(err, launch.ErrGone):
			return status, launchFailed("its terminal was killed")
		case errors.Is(err, launch.ErrNotStarted) && t.endMarked() == nil:
			return status, launchFailed("its terminal was killed before it started anything")
		case err == nil:
			if ok, err := t.ready(ready, status, text); ok || err != nil {
				return status, err
			}
		}
		fctx, stop := context.WithCancel(ctx)
		frames, err := term.Follow(fctx, launch.FollowOptions{Output: ready.Pattern != nil, Cursor: true})
		text = text[:0] // the stream starts over with what the ring holds
		for open := err == nil; open; {
			select {
			case frame, ok := <-frames:
				if open = ok; !ok {
					break
				}
				if frame.Query {
					t.d.screens.answerCursor(ctx, t.id, term, frame.Offset)
				}
				if frame.Status != nil {
					status = *frame.Status
				}
				text = keepTail(append(text, frame.Data...), maxReadyText)
			case <-waiter:
			case <-ctx.Done():
				stop()
				return status, context.Cause(ctx)
			}
			if ok, err := t.ready(ready, status, text); ok || err != nil {
				stop()
				return status, err
			}
		}
		stop()
		if ctx.Err() != nil {
			return status, context.Cause(ctx)
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

// ready reports whether the agent is ready by all that is known, or why it never will be.
func (t *tender) ready(ready config.Ready, status launch.Status, text []byte) (bool, error) {
	switch {
	case status.Failure != "":
		return false, launchFailed("%s", plain.Clean(status.Failure, 500))
	case status.Phase == launch.Exited:
		return false, launchFailed("it exited with code %d while booting", status.Exit.Code)
	case status.Phase != launch.Running:
		return false, nil
	}
	switch ready.On {
	case "started":
		return true, nil
	case "output":
		return status.Output > 0, nil
	case "report":
		return t.record().Reported, nil
	default:
		return ready.Pattern.MatchString(ansi.Strip(string(text))), nil
	}
}

// list makes the launch a member: durable first, visible with it, its reservation dropped after.
func (t *tender) list(status launch.Status) error {
	rec := t.record()
	role, slot := rec.Role, rec.Slot
	var unbound error
	if slot != "" {
		if unbound = t.d.pool.Bind(rec.Reservation); unbound != nil {
			// It should be impossible: the slot was reserved before the launch. It is recorded for what it is.
			role, slot = fleet.RoleDev, ""
		}
	}
	err := t.step(func(r *record) error {
		r.Step, r.ListedAt = stepListed, t.d.Now().Wall.UTC()
		r.Role, r.Slot, r.CharterMismatch = role, slot, unbound != nil
		r.Agent = status.Agent
		if status.Receipt != "" || !r.keepsCharter(t.d.Config.Profiles[r.Profile]) {
			r.CharterSHA256 = status.Receipt
		}
		if r.State == "" {
			r.State, r.StateSource = fleet.StateUnknown, "launch"
		}
		return nil
	})
	if err != nil {
		return err
	}
	if unbound != nil {
		// Free only now that no record names it: two records of one slot would keep the next daemon from starting.
		t.d.pool.Release(rec.Reservation)
		t.d.alarm("charter_mismatch", rec, "WARN: slot %s could not be bound for terminal %s, which runs on the charter of %s: it is listed as dev: %v",
			rec.Slot, rec.terminal(), rec.Role, unbound)
	}
	t.d.events.add("info", "listed", rec.Tree, rec.ID, "%s on %s is listed", role, rec.Profile)
	t.d.settle(t.record())
	return nil
}

// step changes the record and wakes who waits for it.
func (t *tender) step(change func(*record) error) error {
	if err := t.d.reg.update(t.id, change); err != nil {
		return launchFailed("its state could not be recorded: %w", err)
	}
	return nil
}

// watch follows a member's terminal until it has ended.
func (t *tender) watch(ctx context.Context, term launch.Terminal) {
	ear := t.d.newEar(t.record())
	fencing := false
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for pause := 50 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 5*time.Second) {
		status, err := term.Status(ctx)
		switch {
		case errors.Is(err, launch.ErrGone):
			t.exited(nil)
			return
		case errors.Is(err, launch.ErrNotStarted) && !process.Alive(t.record().Agent) && t.endMarked() == nil:
			t.exited(nil) // its directory was taken away, and now it has ended
			return
		case err != nil:
			// Not to be asked just now is not the same as gone.
			sleep(ctx, pause)
			continue
		case status.Phase == launch.Exited:
			t.exited(status.Exit)
			return
		}
		if !fencing {
			fencing = true
			t.d.tending.Go(func() { t.keepFenced(ctx, term, status) })
		}
		frames, err := term.Follow(ctx, ear.follow(status))
		if err != nil {
			sleep(ctx, pause)
			continue
		}
		for open := true; open; {
			select {
			case <-ear.due():
				ear.look(ctx, term)
			case frame, ok := <-frames:
				if open = ok; !ok {
					break
				}
				pause = 50 * time.Millisecond
				if frame.Query {
					t.d.screens.answerCursor(ctx, t.id, term, frame.Offset)
				}
				if s := frame.Status; s != nil && s.Phase == launch.Exited {
					t.exited(s.Exit)
					return
				}
				ear.hear(frame)
			}
		}
		sleep(ctx, pause)
	}
}

func keepTail(p []byte, n int) []byte {
	if len(p) > n {
		return append(p[:0], p[len(p)-n:]...)
	}
	return p
}

// sleep waits for d and reports whether it did so to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
