// Package tmux holds each agent in a session of tmux's, which any tmux user can attach to.
//
// The session's pane runs a holder of package embedded, and by it everything is known and done: whether the agent runs, its
// exit, its output, its deadline, its end. tmux is asked to open the session, and for nothing else that matters. So it
// may hang, be of an old version or lose an exit code, and nobody is told anything untrue.
//
// The agent ends with its pane: kill-pane, kill-session, kill-server and a tmux that dies end it, and its exit is on record.
package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/sockpath"
)

// patience bounds one call of tmux: a server that hangs must not hang us.
const patience = 10 * time.Second

// passingPatience is how long what is ending may take for it.
const passingPatience = time.Second

// User is the server of the user's own, the one that plain tmux talks to.
const User = "user"

// Launcher is the [launch.Launcher] whose holders run in tmux.
type Launcher struct {
	holders *embedded.Launcher
	state   string // where a server of the fleet's own listens
	server  string
}

var _ launch.Launcher = (*Launcher)(nil)

// New makes a launcher whose holders run exe, this very program: see [embedded.Launcher.StartIn]. An empty server is one
// of the fleet's own, without anybody's configuration, at [Socket]; others are [User], and the path of a server's socket.
func New(exe, state, server string) *Launcher {
	return &Launcher{holders: embedded.New(exe), state: state, server: server}
}

// Socket is where the server of the fleet with this state directory listens.
func Socket(state string) string { return sockpath.SocketPath(state, "tmux.sock") }

// Session is the name of the session of agent id.
func Session(id string) string { return "fleetdeck-" + id }

// Name is "tmux".
func (l *Launcher) Name() string { return "tmux" }

// Start starts the agent of spec in a session of its own, or finds the one already started under its id.
func (l *Launcher) Start(ctx context.Context, spec launch.Spec) (launch.Terminal, error) {
	tmux, err := l.command()
	if err != nil {
		return nil, fmt.Errorf("start agent %s: %w: %w", spec.ID, launch.ErrNotStarted, err)
	}
	// Not while somebody looks: the size is theirs. Nor must it stay fixed for somebody who attaches later.
	resize := append(tmux, "if-shell", "-F", "-t", target(spec.ID), "#{session_attached}", "",
		"resize-window -t "+target(spec.ID)+" -x {cols} -y {rows} ; set-option -w -u -t "+target(spec.ID)+" window-size")
	return l.holders.StartIn(ctx, spec, embedded.Pane{
		Open:   func(ctx context.Context, argv []string) error { return l.open(ctx, tmux, spec, argv) },
		Resize: resize,
	})
}

// Find finds a terminal that was started earlier. tmux is not asked.
func (l *Launcher) Find(ctx context.Context, id, dir string) (launch.Terminal, error) {
	return l.holders.Find(ctx, id, dir)
}

// command is tmux, talking to the server in question.
func (l *Launcher) command() ([]string, error) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		return nil, fmt.Errorf("%w: install tmux, or choose another launcher in fleetdeck.toml", err)
	}
	switch l.server {
	case User:
		return []string{tmux}, nil
	case "":
		socket, err := sockpath.In(l.state, "tmux.sock")
		return []string{tmux, "-S", socket, "-f", "/dev/null"}, err
	}
	return []string{tmux, "-S", l.server}, nil
}

// target is the session of id and no other that begins alike.
func target(id string) string { return "=" + Session(id) + ":" }

// open opens the session. One that is there already, of an earlier try, does as well unless it is ending.
func (l *Launcher) open(ctx context.Context, tmux []string, spec launch.Spec, argv []string) error {
	if err := l.survives(ctx, tmux); err != nil {
		return err
	}
	args := []string{"new-session", "-d", "-s", Session(spec.ID), "-n", windowName(spec.Tree.Path),
		"-x", strconv.Itoa(spec.Cols), "-y", strconv.Itoa(spec.Rows), "-c", guard(strings.ReplaceAll(spec.Tree.Path, "#", "##")), "--"} // a "#(" would be run
	for _, arg := range argv {
		args = append(args, guard(arg))
	}
	// What a user has set for all sessions must neither end this one nor keep it.
	for _, more := range [][]string{
		{"set-option", "-t", target(spec.ID), "destroy-unattached", "off"},
		{"set-option", "-w", "-t", target(spec.ID), "remain-on-exit", "off"},
	} {
		args = append(append(args, ";"), more...)
	}
	if l.server == "" {
		args = append(args, ";", "set-option", "-s", "escape-time", "20")
	}
	for began := time.Now(); ; {
		_, err := l.output(ctx, tmux, args...)
		if err == nil || !passing(err) {
			return err
		}
		if time.Since(began) > passingPatience {
			if duplicate(err) {
				return nil // it stays, so it is one that holds the agent, or is about to
			}
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// survives makes sure that a new session does not kill the user's server: with window-size manual for all windows, 3.3 to
// 3.6a crash, and every session is lost.
func (l *Launcher) survives(ctx context.Context, tmux []string) error {
	if l.server == "" {
		return nil
	}
	size, err := l.output(ctx, tmux, "show-options", "-g", "-w", "-v", "window-size")
	if err == nil && strings.TrimSpace(size) == "manual" {
		return errors.New("this tmux server has the global option window-size manual, with which many versions crash when a session is made: " +
			"set it by window, or let fleetdeck have a server of its own")
	}
	return nil // there is no server yet, or it says no more than the next call will
}

// passing reports whether another try may do: the session of an earlier one, or the server with its last session, may be
// ending just now.
func passing(err error) bool {
	for _, said := range []string{"server exited", "lost server", "no server running", "error connecting"} {
		if strings.Contains(err.Error(), said) {
			return true
		}
	}
	return duplicate(err)
}

func duplicate(err error) bool { return strings.Contains(err.Error(), "duplicate session") }

// output runs tmux. An error says nothing of what tmux did.
func (l *Launcher) output(ctx context.Context, tmux []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, tmux[0], append(tmux[1:len(tmux):len(tmux)], args...)...)
	cmd.Dir = "/"
	cmd.Env = l.environment()
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("tmux does not answer: %w", ctx.Err())
	case err != nil && stderr.Len() > 0:
		return "", fmt.Errorf("tmux: %s", strings.TrimSpace(stderr.String()))
	case err != nil:
		return "", fmt.Errorf("tmux: %w", err)
	}
	return stdout.String(), nil
}

// ownEnv is what a server of the fleet's own gets of the environment.
var ownEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"}

// environment is tmux's, which may be the first of a new server and then stands in each of its panes.
func (l *Launcher) environment() []string {
	env := []string{}
	if l.server != "" {
		for _, kv := range os.Environ() {
			if !strings.HasPrefix(kv, "FLEETDECK_") {
				env = append(env, kv)
			}
		}
		return env
	}
	for _, name := range ownEnv {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// windowName is what a tmux user reads in the list of windows.
func windowName(tree string) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '#' || r == ';' {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(filepath.Base(tree), "_"))
	return guard(name)
}

// guard keeps tmux from taking the end of an argument for the end of the command.
func guard(arg string) string {
	if s, ok := strings.CutSuffix(arg, ";"); ok {
		return s + `\;`
	}
	return arg
}
