package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/foreign"
	"fleetdeck/fleet/keeper"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/plain"
)

const starterConfig = `# fleetdeck.toml. Every key may be left out; what stands behind a # is the default or an example.

# grace = "90s"          # boot grace: how long a launch may take until it is listed
# lock_wait = "5s"       # acquire window of a dispatcher
# prune_wait = "1s"      # acquire window of a prune

roots = []               # where to look for trees, for example ["~/src"]
trees = []               # trees named one by one

# [roles.dev]
# charter = "charters/dev.md"

# [roles.architect]
# charter = "charters/architect.md"
# may = ["spawn", "send", "stop"]

# [profiles.claude]
# agent = "claude"

[profiles.shell]
command = ["sh", "-c", "exec ${SHELL:-sh}"]
ready = "started"        # listed when: started | output | report | "pattern:REGEX"
# charter = "file"       # handed over by: argument ({charter} in command) | file | env | typed
# env = ["MY_API_KEY"]   # variables that the agent gets beside the usual ones

# [[slots]]
# name = "architect-1"
# role = "architect"
# profile = "claude"

# [worktrees]
# trust = true          # let git run the hooks and filters that their repository names
# dir = "~/worktrees"    # where new linked worktrees go, at REPOSITORY/BRANCH (else beside the repository)

# [console]
# theme = "auto"         # auto | dark | light | plain | colour-blind
# mouse = false
# strict_keys = false    # every act that changes the fleet takes a shifted letter
# notify = "bell"        # of a member that begins to wait: bell | none | osc9 | osc777
# editor = ["vi"]        # else $VISUAL or $EDITOR
# shell = ["bash"]       # else $SHELL

# [console.keys]         # ACTION = "KEY" or ["KEY", "KEY"]; [] takes its keys away
# [console.columns]      # VIEW = ["COLUMN", "COLUMN"]
# [console.sort]         # VIEW = "COLUMN"; "-COLUMN" for the greatest first
`

func newInitCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "init", Short: "write a starter configuration", Args: noArgs,
		Long: "init writes a starter fleetdeck.toml where fleetdeck looks for it, or where --config says. It never writes over one.\n" + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, _ := config.Locate(g.config)
			if path == "" {
				return usagef("no place for a configuration: use --config FILE")
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return fmt.Errorf("write %s: %w", path, err)
			}
			file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			if errors.Is(err, os.ErrExist) {
				return usagef("%s is there already: nothing was written", path)
			}
			if err != nil {
				return fmt.Errorf("write the configuration: %w", err)
			}
			_, err = file.WriteString(starterConfig)
			if err := errors.Join(err, file.Close()); err != nil {
				return fmt.Errorf("write %s: %w", path, err)
			}
			g.say("wrote %s", path)
			return nil
		},
	}
}

func newVersionCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "which build this is", Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return g.printVersion() },
	}
}

func (g *globals) printVersion() error {
	if g.json {
		return g.printJSON(map[string]string{
			"version": g.build.String(), "commit": g.build.Commit, "date": g.build.Date,
			"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		})
	}
	fmt.Fprintf(g.out, "fleetdeck %s %s/%s %s\n", g.build, runtime.GOOS, runtime.GOARCH, runtime.Version())
	return nil
}

func newRepairCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "repair", Short: "set a corrupt reservation file aside and rebuild it", Args: noArgs,
		Long: `repair sets a corrupt reservation file aside, byte for byte, and writes a new one with an entry for each launch that the
daemon knows. A file that is whole, or of a newer format, is left alone.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			if err := s.ofOneHost("etcd keeps them whole, and there is nothing to repair here"); err != nil {
				return err
			}
			roster, rerr := s.client.Roster(cmd.Context())
			if rerr != nil && fleet.RefusalOf(rerr) == nil {
				return fmt.Errorf("ask the daemon for its launches: %w", rerr)
			}
			done, err := s.book.Repair(cmd.Context(), s.conf.LockWait, roster)
			if err != nil {
				return err
			}
			if g.json {
				return g.printJSON(done)
			}
			if done.Aside == "" {
				g.say("nothing to repair: %s is whole", s.book.Path())
				return nil
			}
			g.say("set aside: %s", done.Aside)
			g.say("rebuilt %s with %d entries", s.book.Path(), done.Rebuilt)
			if rerr != nil {
				g.say("the daemon is not running: launches that it knows are still guarded once it is up")
			}
			return nil
		},
	}
}

// finding is one line of doctor.
type finding struct {
	Level string `json:"level"` // ok, warn or fail
	What  string `json:"what"`
	Hint  string `json:"hint,omitempty"`
}

func newDoctorCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "check the set-up, and say how to mend it", Args: noArgs,
		Long: "doctor checks configuration, state directory, lock, reservation file, daemon, git and profiles. It changes nothing.\n" + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := examine(cmd.Context(), g)
			failed := 0
			for _, f := range findings {
				if f.Level == "fail" {
					failed++
				}
			}
			if g.json {
				if err := g.printJSON(findings); err != nil {
					return err
				}
			} else {
				for _, f := range findings {
					fmt.Fprintf(g.out, "%-4s  %s\n", f.Level, plain.Clean(f.What, -1))
					if f.Hint != "" {
						fmt.Fprintf(g.out, "      → %s\n", plain.Clean(f.Hint, -1))
					}
				}
			}
			if failed > 0 {
				return exitError(exitFailure)
			}
			return nil
		},
	}
}

func examine(ctx context.Context, g *globals) []finding {
	var found []finding
	add := func(level, hint, format string, args ...any) {
		found = append(found, finding{level, fmt.Sprintf(format, args...), hint})
	}
	if out, err := exec.CommandContext(ctx, "git", "--version").Output(); err != nil {
		add("fail", "install git", "git cannot be run: %v", err)
	} else {
		add("ok", "", "%s", strings.TrimSpace(string(out)))
	}
	s, err := g.open()
	if err != nil {
		hint := ""
		if r := fleet.RefusalOf(err); r != nil {
			hint = r.Hint
		}
		add("fail", hint, "%v", err)
		return found
	}
	if s.conf.Path == "" {
		path, _ := config.Locate(g.config)
		add("ok", "'fleetdeck init' writes a starter", "no configuration at %s: the defaults serve", path)
	} else {
		add("ok", "", "configuration %s", s.conf.Path)
	}
	if _, err := consoleConfig(s.conf); err != nil {
		add("fail", "mend it: the console does not start with it", "%v", err)
	}
	add("ok", "", "state directory %s", s.dir.Path)
	examineLock(ctx, s, add)
	s.examineLedger(ctx, add)
	s.examineFile(add)
	if queue, err := keeper.OpenQueue(s.dir.Path); err != nil {
		add("fail", "", "%v", err)
	} else if tasks, err := queue.List(); err != nil {
		add("fail", "mend the file, or set it aside: nothing of it is sent meanwhile", "queue: %v", err)
	} else {
		add("ok", "", "queue: %d tasks", len(tasks))
	}
	if h, err := s.client.Health(ctx); err != nil {
		add("warn", "'fleetdeck up' starts it", "daemon: %v", err)
	} else {
		add("ok", "", "daemon pid %d, version %s, up %s", h.Pid, h.Version, age(h.Since, time.Now()))
		if h.Version != g.build.String() {
			add("warn", "'fleetdeck down' and 'fleetdeck up': members go on running", "the daemon is another version than this command (%s)", g.build)
		}
	}
	for _, name := range s.conf.ProfileNames() {
		p := s.conf.Profiles[name]
		if _, err := exec.LookPath(p.Command[0]); err != nil {
			add("warn", "install it, or mend the profile", "profile %s: %v", name, err)
		} else {
			add("ok", "", "profile %s: %s", name, strings.Join(p.Command, " "))
		}
	}
	if s.conf.Foreign && !foreign.Supported {
		add("warn", "'foreign = false' says that nobody need look", "agents that fleetdeck did not start are not seen on this system: no tree is ever foreign")
	}
	if process.Boot() == "" {
		add("warn", "", "the system tells no boot id: graces go by the wall clock")
	}
	return found
}

func examineLock(ctx context.Context, s *session, add func(level, hint, format string, args ...any)) {
	unlock, err := s.book.Lock(ctx, 200*time.Millisecond)
	if err == nil {
		err = unlock()
	}
	switch r := fleet.RefusalOf(err); {
	case err == nil:
		add("ok", "", "the admission lock works")
	case r != nil && r.Code == fleet.CodeLockBusy:
		add("warn", "if the holder hangs, end it: the lock goes with the process", "%v", err)
	default:
		add("fail", "put the state directory on a local file system", "%v", err)
	}
}
