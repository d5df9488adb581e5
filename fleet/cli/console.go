package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"fleetdeck/fleet"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/history"
	"fleetdeck/fleet/keeper"
	"fleetdeck/fleet/observe"
	"fleetdeck/fleet/replay"
	"fleetdeck/tui"
)

// consoleOptions are the flags of the console.
type consoleOptions struct {
	readOnly bool
	plain    bool
	record   string
	replay   string
	speed    float64
}

// runConsole opens the console, or prints the status where there is no terminal to open it in.
func runConsole(ctx context.Context, g *globals, o consoleOptions) error {
	if o.replay != "" {
		return runReplay(ctx, g, o)
	}
	if o.speed != 0 {
		return usagef("--speed is for --replay")
	}
	if o.plain {
		return runPlain(ctx, g, o)
	}
	if g.json || !canDraw() {
		if o.record != "" {
			return usagef("the console needs a terminal: record with --plain where there is none")
		}
		return runStatus(ctx, g)
	}
	s, err := g.open()
	if err != nil {
		return err
	}
	// Who may only look starts nothing either.
	if !o.readOnly {
		if _, _, err := s.ensureDaemon(ctx); err != nil {
			return err
		}
	}
	return s.console(ctx, o)
}

// canDraw reports whether there is a terminal that a full-screen program can use.
func canDraw() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("TERM") != "dumb"
}

func (s *session) console(ctx context.Context, o consoleOptions) (err error) {
	look, err := consoleConfig(s.conf)
	if err != nil {
		return err
	}
	home, _ := os.UserHomeDir()
	// What there is to warn of would stand across the screen: it is told afterwards.
	var warned warnings
	defer warned.tell(s.book.Warn)
	s.book.Warn = warned.add

	ctx, live, stop := s.watch(ctx)
	defer stop()
	f := &consoleFleet{session: s, live: live, dispatch: s.dispatcher("fleetdeck console"), readOnly: o.readOnly}
	f.history = newRecorder(history.In(s.dir.Path), f.dispatch.Self, warned.add)
	defer f.history.close()

	var shown tui.Fleet = f
	if o.record != "" {
		rec, rerr := replay.Create(o.record, now(), observe.Same)
		if rerr != nil {
			return &usageError{rerr}
		}
		defer func() { err = errors.Join(err, rec.Close()) }()
		defer recordAll(ctx, live, rec)()
		shown = &recordedFleet{f, rec}
	}
	return tui.Run(ctx, shown, tui.Options{Config: look, Home: home, NoColor: s.noColor, ReadOnly: o.readOnly})
}

// watch begins to observe the fleet, until stop is called. The context ends with it, and by a panic of it.
func (s *session) watch(ctx context.Context) (_ context.Context, live *observe.Live, stop func()) {
	ctx, fail := context.WithCancelCause(ctx)
	from := s.sources()
	if s.cluster != nil {
		from.Cluster = s.cluster
	}
	live = observe.NewLive(from)
	live.Panicked = func(v any, stack []byte) { fail(&tui.Panic{Value: v, Stack: stack}) }
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		live.Run(ctx)
	}()
	return ctx, live, func() {
		fail(nil)
		<-stopped
	}
}

// warnings keeps what there is to warn of until somebody can read it.
type warnings struct {
	mu   sync.Mutex // guards both below
	kept []error
	more int
}

func (w *warnings) add(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.kept) == 10 {
		w.more++
		return
	}
	w.kept = append(w.kept, err)
}

func (w *warnings) tell(warn func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, err := range w.kept {
		warn(err)
	}
	if w.more > 0 {
		warn(fmt.Errorf("and %d more", w.more))
	}
}

// consoleFleet is the fleet as the console is handed it. Each of its acts is written down, with how it ended.
type consoleFleet struct {
	*session
	live     *observe.Live
	dispatch *dispatch.Dispatcher
	history  *recorder
	// readOnly refuses every act.
	readOnly bool
}

// act carries out an act, unless this console may only look, and writes it down as d. The command line of args does the same.
func (f *consoleFleet) act(ctx context.Context, d *fleet.Deed, args []string, do func() error) error {
	if f.readOnly {
		return fleet.Refuse(fleet.CodeNotAllowed, "this console may only look: it was started with --read-only")
	}
	err := do()
	d.Command = f.CommandLine(args...)
	f.history.add(ctx, *d, err)
	f.live.Poke()
	return err
}

func (f *consoleFleet) Snapshot(ctx context.Context, rev uint64) (fleet.Snapshot, error) {
	return f.live.Snapshot(ctx, rev)
}

func (f *consoleFleet) Now() fleet.Instant { return now() }

func (f *consoleFleet) Lock() fleet.LockInfo { return f.book.LockInfo() }

func (f *consoleFleet) Screen(ctx context.Context, member string, rev uint64) (fleet.Screen, error) {
	if f.hostOf(ctx, member) != "" {
		return f.screenThere(ctx, member, rev)
	}
	return f.client.Screen(ctx, member, rev)
}

func (f *consoleFleet) Choices() fleet.Choices {
	c := fleet.Choices{Roles: f.conf.RoleNames(), Grace: f.conf.Grace}
	for _, name := range f.conf.ProfileNames() {
		p := f.conf.Profiles[name]
		c.Profiles = append(c.Profiles, fleet.ProfileInfo{Name: name, Command: strings.Join(p.Command, " "), Ready: p.Ready.String()})
	}
	return c
}

func (f *consoleFleet) Dispatch(ctx context.Context, order fleet.Order) fleet.Outcome {
	return f.admit(ctx, "dispatch", fleet.Outcome{Tree: order.Tree, Role: order.Role, Profile: order.Profile}, orderArgs(order, "dispatch"),
		func() (fleet.Outcome, error) { return f.send(ctx, order) })
}

// Settled waits for the end of a launch. One that fails is written down, since its dispatch stands there as done.
func (f *consoleFleet) Settled(ctx context.Context, out fleet.Outcome) fleet.Outcome {
	settled, err := f.settled(ctx, out)
	if err != nil && ctx.Err() == nil {
		f.history.add(ctx, fleet.Deed{What: "launch", Tree: out.Tree, Member: out.Member, Command: f.CommandLine("explain", out.Tree)}, err)
		f.live.Poke()
	}
	return settled
}

func (f *consoleFleet) Restart(ctx context.Context, member string) fleet.Outcome {
	return f.admit(ctx, "restart", fleet.Outcome{Member: member}, []string{"restart", member},
		func() (fleet.Outcome, error) {
			if node := f.hostOf(ctx, member); node != "" {
				return f.restartThere(ctx, node, member)
			}
			return f.restart(ctx, f.dispatch, member)
		})
}

// admit is an act that comes to an outcome; out is what is known of it beforehand.
func (f *consoleFleet) admit(ctx context.Context, what string, out fleet.Outcome, args []string, do func() (fleet.Outcome, error)) fleet.Outcome {
	began := false
	d := &fleet.Deed{What: what, Tree: out.Tree, Member: out.Member}
	err := f.act(ctx, d, args, func() (err error) {
		began = true
		out, err = do()
		d.Tree = out.Tree
		if d.Member == "" {
			d.Member = out.Member
		}
		return err
	})
	if !began {
		out = refusedOutcome(out, err)
	}
	return out
}

func (f *consoleFleet) Enqueue(ctx context.Context, order fleet.Order) error {
	return f.act(ctx, &fleet.Deed{What: "queue add", Tree: order.Tree}, orderArgs(order, "queue", "add"), func() error {
		if order.Branch != "" {
			return usagef("a task of the queue goes to a tree that is there: make the worktree first")
		}
		if err := f.notThere(order.Tree, "a task waits in the queue of its own host: run 'fleetdeck queue add'"); err != nil {
			return err
		}
		_, _, err := f.enqueue(ctx, order)
		return err
	})
}

func (f *consoleFleet) Unqueue(ctx context.Context, id string) error {
	d := &fleet.Deed{What: "queue rm"}
	return f.act(ctx, d, []string{"queue", "rm", id}, func() error {
		queue, err := keeper.OpenQueue(f.dir.Path)
		if err != nil {
			return err
		}
		t, err := f.unqueue(ctx, queue, id)
		d.Tree = t.Tree
		return err
	})
}

func (f *consoleFleet) PrunePlan(ctx context.Context) (fleet.PruneReport, error) {
	roster, _ := f.client.Roster(ctx) // without one nobody counts as listed
	return f.ledger.Plan(roster)
}

func (f *consoleFleet) Prune(ctx context.Context) (report fleet.PruneReport, err error) {
	err = f.act(ctx, &fleet.Deed{What: "prune"}, []string{"prune"}, func() (err error) {
		roster, _ := f.client.Roster(ctx)
		report, err = f.ledger.Prune(ctx, f.conf.PruneWait, roster)
		return err
	})
	return report, err
}

func (f *consoleFleet) Release(ctx context.Context, tree, id string) error {
	return f.act(ctx, &fleet.Deed{What: "release", Tree: tree}, []string{"release", tree, "--id", id}, func() error {
		if err := f.notThere(tree, "run 'fleetdeck release --id "+id+"'"); err != nil {
			return err
		}
		e, ok, err := f.ledger.Release(ctx, f.conf.LockWait, tree, id)
		switch {
		case err != nil:
			return err
		case !ok && e.ID != "":
			return &notFoundError{what: "the tree is reserved by another dispatch by now: nothing was changed"}
		case !ok:
			return &notFoundError{what: "the reservation is gone already"}
		}
		return nil
	})
}

func (f *consoleFleet) Send(ctx context.Context, member, text string, enter bool) error {
	args := []string{"send", "--", member, text}
	if !enter {
		args = []string{"send", "--no-enter", "--", member, text}
	}
	return f.act(ctx, &fleet.Deed{What: "send", Member: member}, args, func() error {
		if f.hostOf(ctx, member) != "" {
			return f.sendThere(ctx, member, text, enter)
		}
		return f.client.Send(ctx, member, text, enter)
	})
}

func (f *consoleFleet) Stop(ctx context.Context, member string) error {
	return f.act(ctx, &fleet.Deed{What: "stop", Member: member}, []string{"stop", member}, func() error {
		if f.hostOf(ctx, member) != "" {
			_, err := f.there(ctx, "", "stop", "--json", member)
			return err
		}
		return f.client.Stop(ctx, member)
	})
}
