// Package cli is the command line: one command a file, each a thin layer over the room that does the work. It is the edge where
// errors get their exit code and their hint.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/cluster"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/observe"
	"fleetdeck/fleet/plain"
	"fleetdeck/fleet/state"
)

// Build says which build this is.
type Build struct{ Version, Commit, Date string }

func (b Build) String() string {
	if b.Version != "" {
		return b.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// globals are what every command has: the global flags, and the streams.
type globals struct {
	build   Build
	state   string
	config  string
	json    bool
	quiet   bool
	noColor bool
	here    bool // another host sent the command, which goes to no other

	in  *os.File
	out io.Writer
	err io.Writer

	printed bool   // a JSON document went to out
	said    string // the last thing that say said instead
}

// Main runs the program and returns its exit code.
func Main(args []string, build Build) int {
	if code, ok := internal(args); ok {
		return code
	}
	if len(args) == 2 && args[0] == remoteCommand {
		sent, err := remoteArgs(args[1])
		if err != nil {
			printError(os.Stderr, err)
			return exitUsage
		}
		args = sent
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	g := &globals{build: build, in: os.Stdin, out: os.Stdout, err: os.Stderr}
	root := newRootCommand(g)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		printError(g.err, err)
	}
	if perr := g.finishJSON(err); err == nil {
		err = perr
	}
	return exitCode(err)
}

func newRootCommand(g *globals) *cobra.Command {
	var console consoleOptions
	var version bool
	root := &cobra.Command{
		Use:   "fleetdeck",
		Short: "an operator console for a fleet of coding agents",
		Long: `fleetdeck staffs git working trees with coding agents: never two workers in one tree.

Without a command it opens the console, and starts the daemon in the background if none runs. Without a terminal it
prints the status.

--plain shows the fleet line by line instead: first how it stands, then a line for each change, for screen readers, logs and
pipes; with --json a JSON document a line. It needs no terminal. --record keeps what the console shows in a file, and
--replay shows that again at the pace at which it happened.
` + exitHelp,
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return g.printVersion()
			}
			return runConsole(cmd.Context(), g, console)
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&g.state, "state", "", "state `directory` (else $FLEETDECK_STATE, else $XDG_STATE_HOME/fleetdeck)")
	flags.StringVar(&g.config, "config", "", "configuration `file` (else $FLEETDECK_CONFIG, else $XDG_CONFIG_HOME/fleetdeck/fleetdeck.toml)")
	flags.BoolVar(&g.json, "json", false, "print JSON")
	flags.BoolVarP(&g.quiet, "quiet", "q", false, "print errors only")
	flags.BoolVar(&g.noColor, "no-color", false, "print without colour (also $NO_COLOR)")
	flags.BoolVar(&g.here, "here", false, "what is on another host is not found")
	flags.MarkHidden("here")
	own := root.Flags()
	own.BoolVar(&version, "version", false, "print which build this is")
	own.BoolVar(&console.readOnly, "read-only", false, "only look: nothing can be changed, and no daemon is started")
	own.BoolVar(&console.plain, "plain", false, "show the fleet line by line, without a terminal")
	own.StringVar(&console.record, "record", "", "keep what is shown in a new `file`")
	own.StringVar(&console.replay, "replay", "", "show what was recorded in `file`")
	own.Float64Var(&console.speed, "speed", 0, "how many times as fast to replay (default 1)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{err} })
	root.SetOut(g.out)
	root.SetErr(g.err)

	root.AddGroup(
		&cobra.Group{ID: "fleet", Title: "The fleet:"},
		&cobra.Group{ID: "dispatch", Title: "Dispatching:"},
		&cobra.Group{ID: "member", Title: "One member:"},
		&cobra.Group{ID: "setup", Title: "Set-up:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("fleet", newUpCommand(g), newDownCommand(g), newStatusCommand(g), newTreesCommand(g), newMembersCommand(g),
		newSlotsCommand(g), newReservationsCommand(g), newExplainCommand(g), newDiffCommand(g), newEventsCommand(g), newDemoCommand(g))
	add("dispatch", newDispatchCommand(g), newReserveCommand(g), newReleaseCommand(g), newPruneCommand(g), newLockCommand(g),
		newKeepCommand(g), newQueueCommand(g), newWorktreeCommand(g))
	add("member", newAttachCommand(g), newScreenCommand(g), newSendCommand(g), newLogsCommand(g), newStopCommand(g), newRestartCommand(g),
		newReportCommand(g), newWhoamiCommand(g), newMCPCommand(g))
	add("setup", newInitCommand(g), newClusterCommand(g), newDoctorCommand(g), newRepairCommand(g), newVersionCommand(g))
	root.SetHelpCommandGroupID("setup")
	root.SetCompletionCommandGroupID("setup")
	return root
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	msg := fmt.Sprintf("unknown command %q", args[0])
	if cmd.HasParent() {
		msg = fmt.Sprintf("%s takes no arguments, and got %q", cmd.CommandPath(), args[0])
	} else if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		msg += fmt.Sprintf(": did you mean %q?", near[0])
	}
	return usagef("%s", msg)
}

// exactly is n positional arguments, named for the error.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usagef("%s needs %s", cmd.CommandPath(), names[len(args)])
		}
		if len(args) > len(names) {
			return usagef("%s: %q is one argument too many", cmd.CommandPath(), args[len(names)])
		}
		for i, arg := range args {
			if arg == "" { // as of a variable that is not set: no path, and not the directory that somebody happens to be in
				return usagef("%s: %s is empty", cmd.CommandPath(), names[i])
			}
		}
		return nil
	}
}

// session is one command's access to the fleet.
type session struct {
	*globals
	dir    state.Dir
	conf   *config.Config
	book   *book.Book // this host's file and admission lock
	ledger ledger.Ledger
	// cluster is the ledger again where the fleet has many hosts, and nil where it has one.
	cluster *cluster.Ledger
	client  *client.Client
}

// open reads the configuration and opens the state directory.
func (g *globals) open() (*session, error) {
	cwd, _ := os.Getwd()
	conf, err := config.Load(g.config, cwd)
	if err != nil {
		return nil, err
	}
	dir, err := state.Open(g.state)
	if err != nil {
		return nil, &usageError{err}
	}
	b, err := book.Open(dir.Path, process.Now)
	if err != nil {
		return nil, err
	}
	b.Warn = func(err error) { g.warn("%v", err) }
	s := &session{globals: g, dir: dir, conf: conf, book: b, client: client.New(dir.Socket, memberToken(dir.Socket))}
	return s, s.chooseLedger()
}

// dispatcher makes the one dispatcher, as program.
func (s *session) dispatcher(program string) *dispatch.Dispatcher {
	now := process.Now()
	return &dispatch.Dispatcher{
		Ledger: s.ledger, Daemon: s.client, LockWait: s.conf.LockWait, Grace: s.conf.Grace, Now: process.Now,
		Allowed: s.may("spawn"), Worktrees: s.worktrees(""),
		Self: fleet.Dispatcher{Pid: os.Getpid(), Host: now.Host, Program: program, Machine: now.Machine},
	}
}

func (s *session) sources() observe.Sources {
	return observe.Sources{Dir: s.dir.Path, Ledger: s.ledger, Lock: s.book, Client: s.client, Config: s.conf, Now: process.Now}
}

// say prints a message for a person: to stderr where stdout belongs to a JSON document.
func (g *globals) say(format string, args ...any) {
	if g.quiet {
		return
	}
	w := g.out
	if g.json {
		w = g.err
		g.said = fmt.Sprintf(format, cleaned(args)...)
	}
	fmt.Fprintf(w, format+"\n", cleaned(args)...)
}

// warn prints a warning for a person.
func (g *globals) warn(format string, args ...any) {
	fmt.Fprintf(g.err, "fleetdeck: warning: %s\n", plain.Clean(fmt.Sprintf(format, args...), -1))
}

// cleaned is args with what others may have written made safe to print.
func cleaned(args []any) []any {
	safe := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case string:
			safe[i] = plain.Clean(a, -1)
		case error:
			safe[i] = plain.Clean(a.Error(), -1)
		default:
			safe[i] = a
		}
	}
	return safe
}

func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
