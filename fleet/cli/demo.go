package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fleetdeck/fleet/tree"
)

//go:embed demo/agent.sh
var demoAgent []byte

// demoTrees are the names of the demo's repositories.
var demoTrees = []string{"api", "billing", "docs", "infra", "mobile", "web"}

const demoConfig = `grace = "30s"
lock_wait = "5s"
prune_wait = "300ms"
roots = ["src"]

[roles.dev]
[roles.architect]
may = ["spawn", "send", "stop"]

[profiles.worker]
command = ["sh", "%[1]s", "work"]
ready = "report"
env = ["DEMO_BOOT=%[2]s"]

[profiles.asker]
command = ["sh", "%[1]s", "ask"]
ready = "report"
env = ["DEMO_BOOT=%[2]s"]

[profiles.crasher]
command = ["sh", "%[1]s", "crash"]
ready = "report"
env = ["DEMO_BOOT=%[2]s"]

[profiles.finisher]
command = ["sh", "%[1]s", "finish"]
ready = "report"
env = ["DEMO_BOOT=%[2]s"]

[profiles.broken]
command = ["sh", "%[1]s", "broken"]
ready = "report"

[[slots]]
name = "architect-1"
role = "architect"
profile = "worker"
`

func newDemoCommand(g *globals) *cobra.Command {
	var headless, keep bool
	cmd := &cobra.Command{
		Use: "demo", Short: "the console over a fleet to try things on", Args: noArgs,
		Long: `demo makes a throw-away state directory with six real git repositories and agents that are shell scripts, staffs some of
them, and opens the console. Everything is ended and removed when it closes. --headless runs a scripted tour instead, and
exits 0 only if every step held.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !headless && !canDraw() {
				return usagef("the demo opens a console, which needs a terminal: use --headless for the tour without one")
			}
			return runDemo(cmd.Context(), g, headless, keep)
		},
	}
	cmd.Flags().BoolVar(&headless, "headless", false, "run the scripted tour, without a terminal")
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the directory behind")
	return cmd
}

func runDemo(ctx context.Context, g *globals, headless, keep bool) (err error) {
	boot := "4"
	if headless {
		boot = "1"
	}
	d, err := newDemo(ctx, g, boot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close(keep)) }()
	if headless {
		return d.tour(ctx)
	}
	if err := d.staff(ctx); err != nil {
		return err
	}
	return d.session.console(ctx, consoleOptions{})
}

// demo is a throw-away fleet.
type demo struct {
	session *session
	dir     string
	exe     string
}

func newDemo(ctx context.Context, g *globals, boot string) (*demo, error) {
	dir, err := os.MkdirTemp("", "fleetdeck-demo-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	d := &demo{dir: dir}
	if err := d.fill(ctx, g, boot); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return d, nil
}

func (d *demo) fill(ctx context.Context, g *globals, boot string) (err error) {
	if d.exe, err = os.Executable(); err != nil {
		return err
	}
	for _, name := range demoTrees {
		if err := makeRepository(ctx, d.tree(name)); err != nil {
			return err
		}
	}
	script := filepath.Join(d.dir, "agent.sh")
	if err := os.WriteFile(script, demoAgent, 0o755); err != nil {
		return err
	}
	conf := filepath.Join(d.dir, "fleetdeck.toml")
	if err := os.WriteFile(conf, fmt.Appendf(nil, demoConfig, script, boot), 0o644); err != nil {
		return err
	}
	own := *g
	own.state, own.config = filepath.Join(d.dir, "state"), conf
	if d.session, err = own.open(); err != nil {
		return err
	}
	_, _, err = d.session.ensureDaemon(ctx)
	return err
}

func (d *demo) tree(name string) string { return filepath.Join(d.dir, "src", name) }

// makeRepository makes a git repository with a few commits, whatever the user's own git is configured to do.
func makeRepository(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	git := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(tree.Environ(os.Environ()), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=Demo", "GIT_AUTHOR_EMAIL=demo@example.com", "GIT_COMMITTER_NAME=Demo", "GIT_COMMITTER_EMAIL=demo@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("make a demo repository: git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	if err := git("init", "--quiet", "--initial-branch=main"); err != nil {
		return err
	}
	for i := range 2 {
		if err := os.WriteFile(filepath.Join(dir, "README.md"), fmt.Appendf(nil, "# %s\n\nrevision %d\n", filepath.Base(dir), i), 0o644); err != nil {
			return err
		}
		if err := errors.Join(git("add", "."), git("commit", "--quiet", "-m", "revision "+strconv.Itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

// staff fills some trees, so that there is something to see, and leaves a stale reservation to prune.
func (d *demo) staff(ctx context.Context) error {
	for _, s := range []struct{ tree, profile, task string }{
		{"api", "worker", "Work through the open issues."},
		{"docs", "asker", "Choose a database and document it."},
		{"infra", "crasher", "Upgrade everything at once."},
	} {
		if out, code, err := d.run(ctx, "dispatch", d.tree(s.tree), "--profile", s.profile, "--task", s.task); err != nil || code != 0 {
			return errors.Join(fmt.Errorf("staff the demo: exit %d: %s", code, out), err)
		}
	}
	_, _, err := d.run(ctx, "reserve", d.tree("mobile"), "--profile", "worker", "--grace", "1ms")
	return err
}

// run runs this program over the demo's fleet, as another process, and gives what it printed and its exit code.
func (d *demo) run(ctx context.Context, args ...string) (string, int, error) {
	cmd := exec.CommandContext(ctx, d.exe, append(args, "--state", d.session.dir.Path, "--config", d.session.conf.Path)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out) + stderr.String(), exit.ExitCode(), nil
	}
	return string(out), 0, err
}

// close ends every member and the daemon, and removes all that the demo made.
func (d *demo) close(keep bool) error {
	ctx := context.Background()
	out, code, err := d.run(ctx, "down", "--stop-members")
	if err == nil && code != 0 {
		err = fmt.Errorf("end the demo's daemon: exit %d: %s", code, out)
	}
	if keep {
		d.session.say("left behind: %s", d.dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}
