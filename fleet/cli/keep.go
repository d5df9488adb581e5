package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/keeper"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/plain"
)

// keeperWait is how long `keep` waits for another keeper to end.
const keeperWait = 200 * time.Millisecond

func newKeepCommand(g *globals) *cobra.Command {
	var once, status bool
	var reset string
	cmd := &cobra.Command{
		Use: "keep", Short: "staff the fleet: what [[staff]] asks for, and the queue", Args: noArgs,
		Long: `keep prunes the reservation file, starts what [[staff]] asks for, and sends the tasks of the queue into their trees as those
become free, again and again until a signal ends it. --once makes one pass and says what it did.

One keeper works at a time. The daemon runs one by itself while there is something to keep, unless in_daemon = false
stands under [keeper]; then keep ends with code 4 and says who works.

An entry whose agent fails is started again as its restart policy says, ever later; after too many failures in a row it is
left alone. --status shows that, and --reset lets a tree's entry and its given-up tasks begin anew.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			switch {
			case status:
				return runKeepStatus(cmd.Context(), s)
			case cmd.Flags().Changed("reset"):
				return runKeepReset(cmd.Context(), s, reset)
			case once:
				return runKeepOnce(cmd.Context(), s)
			}
			return runKeep(cmd.Context(), s)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&once, "once", false, "make a single pass and say what it did")
	f.BoolVar(&status, "status", false, "say how the keeper stands")
	f.StringVar(&reset, "reset", "", "let what is kept in `TREE` begin anew")
	cmd.MarkFlagsMutuallyExclusive("once", "status", "reset")
	return cmd
}

func (s *session) keeperOptions(program string, say func(level, kind, tree, message string)) keeper.Options {
	return keeper.Options{
		Dir: s.dir.Path, Config: s.ownKeep(), Book: s.ledger, Daemon: daemonOf{s.client}, Dispatcher: s.dispatcher(program), Now: process.Now, Say: say,
	}
}

// ownKeep is the configuration as this host's own keeper goes by it: where the fleet has many hosts, [[staff]] is kept by the one that
// is elected.
func (s *session) ownKeep() *config.Config {
	if s.cluster == nil {
		return s.conf
	}
	conf := *s.conf
	conf.Staff = nil
	return &conf
}

func runKeep(ctx context.Context, s *session) error {
	k, err := keeper.Open(ctx, s.keeperOptions("fleetdeck keep", s.sayEvent), keeperWait)
	if err != nil {
		return err
	}
	s.sayEvent("info", "keeping", "", fmt.Sprintf("%d trees to keep staffed", len(s.conf.Staff)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var keeping sync.WaitGroup
	if s.cluster != nil {
		keeping.Go(func() { s.keepFleet(ctx, "fleetdeck keep", s.sayEvent) })
	}
	err = k.Run(ctx)
	cancel()
	keeping.Wait()
	return errors.Join(err, k.Close())
}

// sayEvent prints what the keeper says, as `events` does.
func (s *session) sayEvent(level, kind, tree, message string) {
	e := fleet.Event{Time: time.Now().UTC().Truncate(time.Millisecond), Level: level, Kind: kind, Tree: tree, Message: plain.Clean(message, 2000)}
	switch {
	case s.quiet && level == "info":
	case s.json:
		s.printLine(e)
	default:
		fmt.Fprintf(s.out, "%s  %-5s  %-14s  %s  %s\n", e.Time.Format(time.RFC3339), level, kind, plain.Clean(shorten(tree), -1), e.Message)
	}
}

func runKeepOnce(ctx context.Context, s *session) error {
	say := func(level, _, tree, message string) {
		if level != "info" && !s.quiet {
			fmt.Fprintf(s.err, "fleetdeck: warning: %s\n", plain.Clean(strings.TrimPrefix(shorten(tree)+": "+message, ": "), 2000))
		}
	}
	k, err := keeper.Open(ctx, s.keeperOptions("fleetdeck keep", say), keeperWait)
	if err != nil {
		return err
	}
	report, err := k.Pass(ctx)
	if s.cluster != nil {
		all, ferr := s.keepFleetOnce(ctx, say)
		if elsewhere := new(keptElsewhereError); errors.As(ferr, &elsewhere) {
			s.warn("%v", elsewhere)
			ferr = nil
		}
		report.Staff, err = append(report.Staff, all.Staff...), errors.Join(err, ferr)
	}
	if err = errors.Join(err, k.Close()); s.json {
		return errors.Join(err, s.printJSON(report))
	}
	for _, p := range report.Prune.Pruned {
		s.say("dropped: %s (%s, %s)", shorten(p.Tree), p.Reason, p.ID)
	}
	t := newTable(s.out, "TREE", "FOR", "ACTION", "MEMBER", "MESSAGE")
	for _, a := range report.Staff {
		t.row(shorten(a.Tree), "staff", string(a.Action), a.Member, a.Message)
	}
	for _, a := range report.Queue {
		t.row(shorten(a.Tree), a.Task, string(a.Action), a.Member, a.Message)
	}
	if len(report.Staff)+len(report.Queue) > 0 && !s.quiet {
		return errors.Join(err, t.flush())
	}
	return err
}

func runKeepStatus(ctx context.Context, s *session) error {
	status, err := keeper.ReadStatus(s.dir.Path, s.ownKeep(), process.Now())
	if err != nil {
		return err
	}
	seat, err := s.seat(ctx)
	if err != nil {
		return err
	}
	if s.cluster != nil {
		if status.Staff, err = s.fleetRows(ctx); err != nil {
			return err
		}
	}
	if s.json {
		return s.printJSON(struct {
			keeper.Status
			Elected *keeperSeat `json:"elected,omitempty"`
		}{status, seat})
	}
	who := "no keeper runs"
	if h := status.Holder; h != nil {
		who = fmt.Sprintf("running, pid %d (%s)", h.Pid, plain.Clean(h.Program, 80))
	}
	fmt.Fprintf(s.out, "keeper  %s\n", who)
	if s.cluster != nil {
		fmt.Fprintf(s.out, "elected %s\n", seat)
	}
	fmt.Fprintf(s.out, "queue   %d tasks, %d given up\n", status.Queue, status.GivenUp)
	if len(status.Staff) == 0 {
		return nil
	}
	fmt.Fprintln(s.out)
	t := newTable(s.out, "TREE", "ROLE", "PROFILE", "RESTART", "STATE", "FAILURES", "LAST")
	for _, r := range status.Staff {
		state := r.State
		if r.WaitS > 0 {
			state += fmt.Sprintf(" %.0fs", r.WaitS)
		}
		t.row(shorten(r.Tree), r.Role, r.Profile, r.Restart, state, strconv.Itoa(r.Failures), r.Last)
	}
	return t.flush()
}

func runKeepReset(ctx context.Context, s *session, path string) error {
	if node, _ := s.elsewhere(path); node != "" {
		return runKeepResetOf(ctx, s, path)
	}
	_, path = s.elsewhere(path)
	key := treeKey(ctx, path)
	abs, err := filepath.Abs(path)
	if err != nil {
		return usagef("%s: %w", path, err)
	}
	// An entry goes by the name that the configuration gives it, a task by its tree's key.
	names := []string{key}
	for _, want := range s.conf.Staff {
		if want.Tree != key && (want.Tree == abs || treeKey(ctx, want.Tree) == key) {
			names = append(names, want.Tree)
		}
	}
	any := false
	for _, name := range names {
		found, err := keeper.Reset(ctx, s.dir.Path, s.conf, name, process.Now())
		if err != nil {
			return err
		}
		any = any || found
		if s.cluster != nil {
			if found, err = s.resetFleet(ctx, name); err != nil {
				return err
			}
			any = any || found
		}
	}
	return s.sayReset(key, any)
}

// runKeepResetOf lets a tree of another host begin anew.
func runKeepResetOf(ctx context.Context, s *session, name string) error {
	found, err := s.resetFleet(ctx, name)
	if err != nil {
		return err
	}
	return s.sayReset(name, found)
}

func (s *session) sayReset(key string, found bool) error {
	if !found {
		return &notFoundError{fmt.Sprintf("nothing to reset: %s has no [[staff]] entry and no task that was given up", key), "see 'fleetdeck keep --status' and 'fleetdeck queue ls'"}
	}
	if s.json {
		return s.printJSON(map[string]string{"tree": key, "outcome": "reset"})
	}
	s.say("reset: %s begins anew with the keeper's next pass", shorten(key))
	return nil
}

// keepForDaemon is the keeper that the daemon runs, nil where it is not to run one.
func (s *session) keepForDaemon() func(ctx context.Context, say func(level, kind, tree, message string)) error {
	if !s.conf.Keeper.InDaemon {
		return nil
	}
	return func(ctx context.Context, say func(level, kind, tree, message string)) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var keeping sync.WaitGroup
		defer keeping.Wait()
		if s.cluster != nil {
			keeping.Go(func() { s.keepFleet(ctx, "fleetdeck keeper", say) })
		}
		err := keeper.Serve(ctx, s.keeperOptions("fleetdeck keeper", say))
		cancel()
		return err
	}
}

// keptByNobody says whether nothing works off a queue: no keeper runs, and no daemon that would.
func (s *session) keptByNobody(ctx context.Context) bool {
	status, err := keeper.ReadStatus(s.dir.Path, &config.Config{}, process.Now())
	if err != nil || status.Running {
		return false
	}
	_, err = s.client.Health(ctx)
	return err != nil || !s.conf.Keeper.InDaemon
}
