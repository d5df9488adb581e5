package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/plain"
	"fleetdeck/fleet/tree"
)

// orderFlags are what dispatch and reserve share.
type orderFlags struct {
	role    string
	profile string
	grace   time.Duration
	noGit   bool
	beside  bool
	// graceSet says that a grace was asked for.
	graceSet bool
}

func (o *orderFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.role, "role", fleet.RoleDev, "`role` of the agent")
	f.StringVar(&o.profile, "profile", "", "`profile` that it runs on (default: the first by name, shell last)")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) { o.graceSet = cmd.Flags().Changed("grace") }
	f.DurationVar(&o.grace, "grace", 0, "boot grace (default: as configured)")
	f.BoolVar(&o.noGit, "no-git", false, "let a directory outside git be a tree of its own")
	f.BoolVar(&o.beside, "beside-foreign", false, "also where an agent works that fleetdeck did not start")
}

// order makes the order for path, with the session's defaults.
func (o *orderFlags) order(s *session, path string) (fleet.Order, error) {
	if o.graceSet && o.grace <= 0 {
		return fleet.Order{}, usagef("--grace %s: a grace is more than zero", o.grace)
	}
	profile := o.profile
	if profile == "" {
		profile = s.conf.ProfileNames()[0]
	}
	return fleet.Order{Tree: path, Role: o.role, Profile: profile, Grace: o.grace, NoGit: o.noGit, BesideForeign: o.beside}, nil
}

func newDispatchCommand(g *globals) *cobra.Command {
	var o orderFlags
	var w worktreeFlags
	var task, taskFile string
	var wait, queue bool
	var also []string
	cmd := &cobra.Command{
		Use: "dispatch TREE", Short: "send an agent into a tree", Args: exactly("TREE"),
		Long: `dispatch reserves the tree under the admission lock, asks the daemon for an agent, and says what came of it. The daemon
answers at once; the agent is listed once it is ready, within its boot grace. --wait waits for that.

In a fleet of many hosts NODE:PATH is the tree at the absolute PATH of another host, whose daemon then does all of this.

A refusal leaves nothing behind. If nobody can know what became of the request, the reservation stays until its grace runs
out, and dispatch says so with its own exit code.

With --queue a tree that is taken, or a role whose slots are, is no refusal: the task waits in the queue, and the keeper
sends it once the tree is free.

With --also the agent holds further trees too, from its start to its end: all of them are reserved at once, or none. It starts
in TREE, and finds the others in $FLEETDECK_ALSO, a path a line.

With --new-worktree a linked worktree of the tree's repository is made first, on BRANCH: one that exists is checked out,
another begins at the tree's HEAD, or at --from. The agent goes there. If the dispatch is refused, or the launch fails before the
agent is listed, the worktree is removed again, and the branch that was made for it, unless something in it is new.
` + exitHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(cmd); err != nil {
				return err
			}
			if queue && len(also) > 0 {
				return usagef("--also and --queue exclude each other: a task waits for one tree")
			}
			s, err := g.open()
			if err != nil {
				return err
			}
			order, err := o.order(s, args[0])
			if err != nil {
				return err
			}
			if order.Task, err = readTask(g.in, task, taskFile); err != nil {
				return err
			}
			order.Branch, order.Also = w.branch, also
			return runDispatch(cmd.Context(), s, order, dispatchOptions{from: w.from, wait: wait, queue: queue})
		},
	}
	o.add(cmd)
	w.add(cmd)
	cmd.Flags().StringVar(&task, "task", "", "what the agent is to do")
	cmd.Flags().StringVar(&taskFile, "task-file", "", "`file` that says what the agent is to do; - is stdin")
	cmd.Flags().StringArrayVar(&also, "also", nil, "a further `tree` that the agent holds; may be given several times")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the agent is listed")
	cmd.Flags().BoolVar(&queue, "queue", false, "if the tree is taken, put the task into the queue")
	return cmd
}

func readTask(stdin io.Reader, task, file string) (string, error) {
	if task != "" && file != "" {
		return "", usagef("--task and --task-file are two tasks: give one")
	}
	if file == "" {
		return task, nil
	}
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", usagef("read the task: %w", err)
		}
		defer f.Close()
		stdin = f
	}
	data, err := io.ReadAll(io.LimitReader(stdin, api.MaxTask+1))
	if err != nil {
		return "", usagef("read the task: %w", err)
	}
	if len(data) > api.MaxTask {
		return "", usagef("the task is larger than %d bytes: put it into a file in the tree and name that", api.MaxTask)
	}
	return string(data), nil
}

type dispatchOptions struct {
	from        string // where the branch of a new worktree begins
	wait, queue bool
}

func runDispatch(ctx context.Context, s *session, order fleet.Order, opts dispatchOptions) error {
	var node string
	node, order.Tree = s.elsewhere(order.Tree)
	var err error
	if order.Also, err = s.besides(node, order.Also); err != nil {
		return err
	}
	if node != "" {
		out, err := s.sendElsewhere(ctx, node, order, opts)
		return s.sayOutcome(out, err, opts)
	}
	d := s.dispatcher("fleetdeck dispatch")
	d.Worktrees = s.worktrees(opts.from)
	d.Progress = func(msg string) {
		if !s.quiet {
			fmt.Fprintf(s.err, "fleetdeck: %s\n", plain.Clean(msg, -1))
		}
	}
	out, err := d.Dispatch(ctx, order)
	if r := fleet.RefusalOf(err); r != nil && queueable(r.Code) && order.Branch == "" && len(order.Also) == 0 {
		if opts.queue {
			return queueRefused(ctx, s, order, out)
		}
		out.Hint = addHint(r, otherWays(r.Code, order))
	}
	if err == nil && opts.wait {
		out, err = d.Wait(ctx, out)
		if r := fleet.RefusalOf(err); r != nil && order.Branch != "" && out.Outcome == fleet.Refused {
			out.Hint = addHint(r, s.fate(ctx, out))
		}
	}
	return s.sayOutcome(out, err, opts)
}

// sayOutcome prints what a dispatch came to.
func (s *session) sayOutcome(out fleet.Outcome, err error, opts dispatchOptions) error {
	if s.json && out.Outcome != "" {
		if out.Outcome == fleet.Refused && out.Code == "" {
			return err // the call itself was wrong: there is no outcome to speak of
		}
		return errors.Join(err, s.printJSON(out))
	}
	if err != nil {
		return err
	}
	what := "accepted"
	if opts.wait {
		what = "listed"
	}
	s.say("%s: member %s (%s on %s) in %s", what, out.Member, out.Role, out.Profile, shorten(out.Tree))
	return nil
}

// queueable reports whether what was refused may be accepted once somebody else is through.
func queueable(code fleet.Code) bool {
	switch code {
	case fleet.CodeTreeReserved, fleet.CodeTreeOccupied, fleet.CodeTreeForeign, fleet.CodeSlotUnavailable:
		return true
	}
	return false
}

// queueRefused puts a refused order into the queue instead.
func queueRefused(ctx context.Context, s *session, order fleet.Order, out fleet.Outcome) error {
	task, before, err := s.enqueue(ctx, order)
	if err != nil {
		return err
	}
	if s.json {
		return s.printJSON(struct {
			fleet.Outcome
			Queued string `json:"queued"`
		}{out, task.ID})
	}
	if !s.quiet {
		fmt.Fprintf(s.err, "fleetdeck: refused for now: %s\n", plain.Clean(out.Message, 500))
	}
	s.sayQueued(ctx, task, before)
	return nil
}

func newReserveCommand(g *globals) *cobra.Command {
	var o orderFlags
	cmd := &cobra.Command{
		Use: "reserve TREE", Short: "write a reservation for a dispatcher of your own", Args: exactly("TREE"),
		Long: `reserve writes a reservation and prints its id, for a script that asks the daemon for the agent by itself
(POST /v1/members with this id). It refuses like dispatch does.
` + exitHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			tree, err := s.ownTree(args[0])
			if err != nil {
				return err
			}
			order, err := o.order(s, tree)
			if err != nil {
				return err
			}
			entry, err := s.dispatcher("fleetdeck reserve").Reserve(cmd.Context(), order)
			out := fleet.Outcome{Outcome: "reserved", Tree: entry.Tree, Role: order.Role, Profile: order.Profile, Reservation: entry.ID}
			if err != nil {
				r := fleet.RefusalOf(err)
				if r == nil || !g.json {
					return err
				}
				out.Outcome, out.Code, out.Message, out.Hint = fleet.Refused, r.Code, r.Message, r.Hint
			}
			if g.json {
				return errors.Join(err, g.printJSON(out))
			}
			fmt.Fprintln(g.out, entry.ID)
			return nil
		},
	}
	o.add(cmd)
	return cmd
}

func newReleaseCommand(g *globals) *cobra.Command {
	var id string
	var lost lostOptions
	cmd := &cobra.Command{
		Use: "release TREE", Short: "drop one reservation by hand", Args: lost.args,
		Long: `release drops the reservation of a tree under the admission lock. A launch that is under way is not ended by it: the daemon
goes on guarding the tree. --id drops it only if it is still that one.

In a fleet of many hosts, release --lost NODE gives back everything that a host holds which is not heard of any more: the trees and
slots of its members. Whether they still run nobody can see from here, so it asks for the node's name; a script says --yes, after a
look with --dry-run. A host that comes back in the middle keeps everything.
` + exitHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			if lost.node != "" {
				return runReleaseLost(cmd.Context(), s, lost)
			}
			if err := s.may("spawn")(cmd.Context()); err != nil {
				return err
			}
			tree, err := s.ownTree(args[0])
			if err != nil {
				return err
			}
			key := treeKey(cmd.Context(), tree)
			e, ok, err := s.ledger.Release(cmd.Context(), s.conf.LockWait, key, id)
			switch {
			case err != nil:
				return err
			case !ok && e.ID != "":
				return &notFoundError{fmt.Sprintf("%s is reserved by %s by now, not by %s: nothing was changed", key, e.ID, id), "see 'fleetdeck reservations'"}
			case !ok:
				return &notFoundError{fmt.Sprintf("%s has no reservation", key), "see 'fleetdeck reservations'"}
			}
			if g.json {
				return g.printJSON(map[string]string{"tree": key, "id": e.ID, "outcome": "released"})
			}
			g.say("released: %s (%s)", shorten(key), e.ID)
			return nil
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "only the reservation with this `id`")
	lost.add(cmd)
	return cmd
}

// treeKey is the key that path has in the file. The directory may be gone, and then the path as it stands is all there is.
func treeKey(ctx context.Context, path string) string { return treeNamed(ctx, path).Path }

// treeNamed is the tree that path lies in; where the directory is gone, its path as it stands. An empty path names none.
func treeNamed(ctx context.Context, path string) fleet.Tree {
	if path == "" {
		return fleet.Tree{}
	}
	if t, err := tree.Resolve(ctx, path, true); err == nil {
		return t
	}
	if abs, err := filepath.Abs(path); err == nil {
		return fleet.Tree{Path: abs}
	}
	return fleet.Tree{Path: path}
}

func newPruneCommand(g *globals) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "prune", Short: "drop the reservations that may be dropped", Args: noArgs,
		Long: `prune drops, under the admission lock, the reservations whose worker is listed or whose grace ran out. If the lock stays busy
the file is left alone: that costs nothing, since occupancy skips such entries. --dry-run says what would be dropped and
why.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			return runPrune(cmd.Context(), s, dryRun)
		},
	}
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "only say what would be dropped")
	return cmd
}

func runPrune(ctx context.Context, s *session, dryRun bool) error {
	rctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	roster, err := s.client.Roster(rctx)
	cancel()
	if err != nil && !s.quiet {
		// Without a roster nobody counts as listed; what has expired by the clock may go all the same.
		s.warn("the daemon does not say who is listed: %v", err)
	}
	var report fleet.PruneReport
	if dryRun {
		report, err = s.ledger.Plan(roster)
	} else {
		report, err = s.ledger.Prune(ctx, s.conf.PruneWait, roster)
	}
	if err != nil && report.Lock != "busy" {
		return err
	}
	if s.json {
		return errors.Join(err, s.printJSON(report))
	}
	if err != nil {
		return err
	}
	verb := "dropped"
	if dryRun {
		verb = "would drop"
	}
	for _, p := range report.Pruned {
		s.say("%s: %s (%s, %s)", verb, shorten(p.Tree), p.Reason, p.ID)
	}
	s.say("%d %s, %d kept", len(report.Pruned), verb, report.Kept)
	return nil
}

func newLockCommand(g *globals) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "lock -- CMD [ARG…]", Short: "run a command under the admission lock",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("lock needs a command: fleetdeck lock -- CMD")
			}
			return nil
		},
		Long: `lock takes the admission lock, runs CMD, and frees the lock when CMD ends. CMD does not get the lock's descriptor, so
what it leaves running does not hold the lock. The exit code is CMD's; 4 if the lock stayed busy. Within CMD no fleetdeck
command that takes the lock can succeed.
`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			if err := s.ofOneHost("no lock of this host keeps a dispatch out; a script takes a tree with 'fleetdeck reserve' instead"); err != nil {
				return err
			}
			if err := s.may("spawn")(cmd.Context()); err != nil {
				return err
			}
			if wait == 0 {
				wait = s.conf.LockWait
			}
			return runLocked(cmd.Context(), s, wait, args)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "acquire window (default: as configured)")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func runLocked(ctx context.Context, s *session, wait time.Duration, args []string) error {
	unlock, err := s.book.Lock(ctx, wait)
	if err != nil {
		return err
	}
	defer unlock()
	c := exec.Command(args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	code, err := runPassingSignals(c) // the lock must not go before CMD does
	if c.Process == nil {
		return usagef("run %s: %w", args[0], err)
	}
	if uerr := unlock(); uerr != nil {
		return uerr
	}
	if code != 0 {
		return exitError(code)
	}
	return err
}
