package cli

import (
	"context"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"

	"fleetdeck/fleet"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/observe"
	"fleetdeck/tui"
)

// runConsole opens the console, or prints the status where there is no terminal to open it in.
func runConsole(ctx context.Context, g *globals) error {
	if g.json || !canDraw() {
		return runStatus(ctx, g)
	}
	s, err := g.open()
	if err != nil {
		return err
	}
	if _, _, err := s.ensureDaemon(ctx); err != nil {
		return err
	}
	return s.console(ctx)
}

// canDraw reports whether there is a terminal that a full-screen program can use.
func canDraw() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("TERM") != "dumb"
}

func (s *session) console(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	live := observe.NewLive(s.sources())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		live.Run(ctx)
	}()
	defer func() {
		cancel()
		<-stopped
	}()
	home, _ := os.UserHomeDir()
	return tui.Run(ctx, &consoleFleet{session: s, live: live, dispatch: s.dispatcher("fleetdeck console")},
		tui.Options{Home: home, NoColor: s.noColor})
}

// consoleFleet is the fleet as the console is handed it.
type consoleFleet struct {
	*session
	live     *observe.Live
	dispatch *dispatch.Dispatcher
}

func (f *consoleFleet) Snapshot(ctx context.Context, rev uint64) (fleet.Snapshot, error) {
	return f.live.Snapshot(ctx, rev)
}

func (f *consoleFleet) Now() fleet.Instant { return now() }

func (f *consoleFleet) Lock() fleet.LockInfo { return f.book.LockInfo() }

func (f *consoleFleet) Screen(ctx context.Context, member string, rev uint64) (fleet.Screen, error) {
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
	out, _ := f.dispatch.Dispatch(ctx, order)
	f.live.Poke()
	return out
}

func (f *consoleFleet) PrunePlan(ctx context.Context) (fleet.PruneReport, error) {
	roster, _ := f.client.Roster(ctx) // without one nobody counts as listed
	return f.book.Plan(roster)
}

func (f *consoleFleet) Prune(ctx context.Context) (fleet.PruneReport, error) {
	roster, _ := f.client.Roster(ctx)
	return f.book.Prune(ctx, f.conf.PruneWait, roster)
}

func (f *consoleFleet) Release(ctx context.Context, tree, id string) error {
	e, ok, err := f.book.Release(ctx, f.conf.LockWait, tree, id)
	switch {
	case err != nil:
		return err
	case !ok && e.ID != "":
		return &notFoundError{what: "the tree is reserved by another dispatch by now: nothing was changed"}
	case !ok:
		return &notFoundError{what: "the reservation is gone already"}
	}
	return nil
}

func (f *consoleFleet) Send(ctx context.Context, member, text string, enter bool) error {
	return f.client.Send(ctx, member, text, enter)
}

func (f *consoleFleet) Stop(ctx context.Context, member string) error {
	return f.client.Stop(ctx, member)
}

// Attach is this program again: it takes over the terminal while the console waits.
func (f *consoleFleet) Attach(member string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	args := []string{"attach", member}
	if !f.dir.Usual {
		args = append(args, "--state", f.dir.Path)
	}
	if f.conf.Path != "" {
		args = append(args, "--config", f.conf.Path)
	}
	return exec.Command(exe, args...)
}
