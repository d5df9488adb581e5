package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/tree"
)

// freeWait is how long a restart waits for tree and slot once the agent was stopped. A stop returns after every process is gone,
// so that this is for the last of the daemon's own work.
const freeWait = 10 * time.Second

func newRestartCommand(g *globals) *cobra.Command {
	var wait bool
	var o restartOptions
	var task, taskFile string
	cmd := &cobra.Command{
		Use: "restart MEMBER", Short: "end a member and send its like into the tree", Args: exactly("MEMBER"),
		Long: `restart ends a member, if it lives, with every process that it started, and then dispatches the same role, profile and task to
its tree: an admission like any other, with a member of a new id. One that has ended is started again. If the tree is taken
meanwhile by somebody else, that stands. --wait waits until the new agent is listed. --task gives it another task.

With --resume the new agent takes up the session of the one before, by the agent's own command for that: it knows what was said,
and is sent nothing, unless --task says what more it is to do. It is refused where no session is known ('fleetdeck explain MEMBER' shows it).

Nothing is ended where it is plain that nothing could be started.
` + exitHelp,
		RunE: g.anywhere(func(cmd *cobra.Command, args []string) error {
			var err error
			if o.task, err = readTask(g.in, task, taskFile); err != nil {
				return err
			}
			s, err := g.open()
			if err != nil {
				return err
			}
			id, err := s.find(cmd.Context(), args[0], false)
			if err != nil && o.task != "" {
				err = withText(err, o.task, "--task-file=-")
			}
			if err != nil {
				return err
			}
			d := s.dispatcher("fleetdeck restart")
			out, err := s.restartAs(cmd.Context(), d, id, o)
			if err == nil && wait {
				out, err = d.Wait(cmd.Context(), out)
			}
			if g.json {
				return errors.Join(err, g.printJSON(out))
			}
			if err != nil {
				return err
			}
			g.say("restarted: member %s (%s on %s) in %s", out.Member, out.Role, out.Profile, shorten(out.Tree))
			return nil
		}, "spawn", "stop"),
	}
	cmd.Flags().BoolVar(&o.resume, "resume", false, "take up the session of the one before")
	cmd.Flags().StringVar(&task, "task", "", "what it is to do instead, or with --resume what more")
	cmd.Flags().StringVar(&taskFile, "task-file", "", "`file` that says what it is to do; - is stdin")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the new agent is listed")
	return cmd
}

// restartOptions say what the new agent has of the one before.
type restartOptions struct {
	// resume has it take up the session.
	resume bool
	// task is a new task; empty means that of the one before, or with resume none.
	task string
}

// restart is restartAs with a new session and the same task.
func (s *session) restart(ctx context.Context, d *dispatch.Dispatcher, id string) (fleet.Outcome, error) {
	return s.restartAs(ctx, d, id, restartOptions{})
}

// restartAs ends the member id if it lives, and dispatches its like to its tree. The outcome says everything; the error is the
// same in the form that says what to do.
func (s *session) restartAs(ctx context.Context, d *dispatch.Dispatcher, id string, o restartOptions) (fleet.Outcome, error) {
	m, err := s.member(ctx, id)
	if err != nil {
		return refusedOutcome(fleet.Outcome{}, err), err
	}
	// The tree's key is where it stands; a tree outside git is one by having been admitted.
	// Who works beside it that fleetdeck did not start was no reason not to have m there.
	order := fleet.Order{Tree: m.Tree, Role: m.Role, Profile: m.Profile, Task: m.Task, NoGit: true, BesideForeign: true}
	for _, t := range m.Also {
		order.Also = append(order.Also, t.Path)
	}
	if m.RequestedRole != "" {
		order.Role = m.RequestedRole
	}
	out := fleet.Outcome{Tree: m.Tree, Role: order.Role, Profile: m.Profile}
	if err := s.startable(ctx, order); err != nil {
		return refusedOutcome(out, err), err
	}
	send := d.Dispatch
	if o.resume {
		if err := s.resumable(ctx, id, m.Profile, o.task != ""); err != nil {
			return refusedOutcome(out, err), err
		}
		order.Task = ""
		send = func(ctx context.Context, order fleet.Order) (fleet.Outcome, error) { return d.Resume(ctx, order, id) }
	}
	if o.task != "" {
		order.Task = o.task
	}
	stopped := false
	if m.Alive() {
		// Nobody is ended for an admission that still waits for its turn, and may be called off or give up.
		if err := s.turn(ctx); err != nil {
			return refusedOutcome(out, err), err
		}
		if err := s.client.Stop(ctx, id); err != nil {
			err = fmt.Errorf("stop %s: %w", id, err)
			return refusedOutcome(out, err), err
		}
		stopped = true
		if err := s.awaitGone(ctx, m); err != nil {
			err = fmt.Errorf("%s was stopped, and its tree not staffed again: %w", id, err)
			return refusedOutcome(out, err), err
		}
	}
	out, err = send(ctx, order)
	if err != nil && stopped && out.Outcome == fleet.Refused {
		err = fmt.Errorf("%s was stopped, and its tree not staffed again: %w", id, err)
		out.Message = err.Error()
	}
	return out, err
}

// turn waits until the admission lock is free.
func (s *session) turn(ctx context.Context) error {
	unlock, err := s.book.Lock(ctx, s.conf.LockWait)
	if err != nil {
		return err
	}
	return unlock()
}

// member finds a member of the roster.
func (s *session) member(ctx context.Context, id string) (fleet.Member, error) {
	roster, err := s.client.Roster(ctx)
	if err != nil {
		return fleet.Member{}, err
	}
	for _, m := range roster.Members {
		if m.ID == id {
			return m, nil
		}
	}
	return fleet.Member{}, fleet.Refuse(fleet.CodeNotFound, "no such member: %s", id).WithHint("see 'fleetdeck members'")
}

// startable refuses what could not be started again, before anybody is stopped for it.
func (s *session) startable(ctx context.Context, order fleet.Order) error {
	if err := errors.Join(s.may("spawn")(ctx), s.may("stop")(ctx)); err != nil {
		return err
	}
	if err := s.configured(order); err != nil {
		return err
	}
	t, err := tree.Resolve(ctx, order.Tree, order.NoGit)
	if err != nil {
		return err
	}
	if t.Path != order.Tree {
		return fleet.Refuse(fleet.CodeNotFound, "%s is part of the tree %s by now", order.Tree, t.Path).
			WithHint("dispatch to that tree")
	}
	return nil
}

// resumable refuses where the session of member id could not be taken up, or not with a task, before it is stopped for that.
func (s *session) resumable(ctx context.Context, id, profile string, withTask bool) error {
	w, err := s.client.Witnesses(ctx, id)
	switch p := s.conf.Profiles[profile]; {
	case err != nil:
		return err
	case w.ResumeRefused != nil:
		return w.ResumeRefused
	case len(w.Resume) == 0: // it would start a new session
		return fleet.Refuse(fleet.CodeLaunchFailed, "the daemon, of an earlier version, takes no session up again").
			WithHint("restart it: fleetdeck down; fleetdeck up")
	case withTask && p.Charter != config.CharterTyped && !agent.Mentions(p.Resume, "{task"):
		return fleet.Refuse(fleet.CodeLaunchFailed, "the resume command of profile %s takes no task", profile).
			WithHint("resume it without one, and then type it: fleetdeck send MEMBER TEXT")
	}
	return nil
}

// awaitGone waits until the daemon shows m as ended, and no slot as its own.
func (s *session) awaitGone(ctx context.Context, m fleet.Member) error {
	ctx, cancel := context.WithTimeout(ctx, freeWait)
	defer cancel()
	for {
		now, err := s.member(ctx, m.ID)
		gone := err == nil && !now.Alive() || fleet.RefusalOf(err) != nil && fleet.RefusalOf(err).Code == fleet.CodeNotFound
		if gone {
			slots, serr := s.client.Slots(ctx)
			err = serr
			for _, slot := range slots {
				gone = gone && slot.Member != m.ID
			}
			if gone && err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("it still holds its tree or slot: %w", ctx.Err()), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// refusedOutcome is the outcome of what was refused before a dispatch began.
func refusedOutcome(out fleet.Outcome, err error) fleet.Outcome {
	out.Outcome, out.Message = fleet.Refused, err.Error()
	if r := fleet.RefusalOf(err); r != nil {
		out.Code, out.Hint = r.Code, r.Hint
	}
	return out
}
