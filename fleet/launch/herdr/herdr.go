// Package herdr holds each agent in a pane of herdr's, the terminal multiplexer for agents.
//
// As in package tmux the pane runs a holder of package embedded, by which everything is known and done; herdr is asked to
// open the pane, and to close one that came to nothing. The agent ends with its pane.
//
// herdr's agent.start has two generations. The older one runs any command in a new pane. The newer one types one of some
// known commands into a shell that is there, which cannot be our gate; so with that herdr the shell of a new
// workspace is told to become the holder. Which it is, ping tells.
package herdr

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
)

const (
	// envProtocol is the first protocol in which a pane can be given an environment.
	envProtocol = 14
	// kindProtocol is the first one whose agent.start knows kinds of agents only.
	kindProtocol = 17
)

// kinds are the agents that herdr knows, by the names of their programs.
var kinds = []string{
	"pi", "claude", "codex", "gemini", "cursor", "devin", "agy", "cline", "omp", "mastracode", "opencode",
	"copilot", "kimi", "kiro", "droid", "amp", "grok", "hermes", "kilo", "qodercli", "maki",
}

// Launcher is the [launch.Launcher] whose holders run in herdr.
type Launcher struct {
	holders *embedded.Launcher
	socket  string
}

var _ launch.Launcher = (*Launcher)(nil)

// New makes a launcher whose holders run exe, this very program: see [embedded.Launcher.StartIn]. Where socket is empty,
// herdr's is looked for as [Socket] says, at each start.
func New(exe, socket string) *Launcher {
	return &Launcher{holders: embedded.New(exe), socket: socket}
}

// Name is "herdr".
func (l *Launcher) Name() string { return "herdr" }

// AgentName is the name of agent id in herdr's list: lower case and at most 32 characters.
func AgentName(id string) string { return "fd-" + strings.ToLower(id) }

// Start starts the agent of spec in a pane of its own, or finds the one already started under its id.
func (l *Launcher) Start(ctx context.Context, spec launch.Spec) (launch.Terminal, error) {
	socket, err := Socket(l.socket)
	if err != nil {
		return nil, fmt.Errorf("start agent %s: %w: %w", spec.ID, launch.ErrNotStarted, err)
	}
	p := &pane{socket: socket, spec: spec}
	return l.holders.StartIn(ctx, spec, embedded.Pane{Open: p.open, Discard: p.discard})
}

// Find finds a terminal that was started earlier. herdr is not asked.
func (l *Launcher) Find(ctx context.Context, id, dir string) (launch.Terminal, error) {
	return l.holders.Find(ctx, id, dir)
}

// pane is one that is being opened.
type pane struct {
	socket string
	spec   launch.Spec
	opened []closing // what is to be closed if nothing comes of it
}

type closing struct {
	method string
	params any
}

// open opens the pane by whatever generation of herdr there is.
func (p *pane) open(ctx context.Context, argv []string) error {
	var pong struct {
		Version  string `json:"version"`
		Protocol int    `json:"protocol"`
	}
	if err := call(ctx, p.socket, "ping", struct{}{}, &pong); err != nil {
		return err
	}
	switch {
	case pong.Protocol <= 0:
		return fmt.Errorf("herdr at %s tells no protocol: it is of a version that fleetdeck does not know (%q)", p.socket, pong.Version)
	case pong.Protocol < kindProtocol:
		return p.openByCommand(ctx, argv, pong.Protocol)
	}
	return p.openByShell(ctx, argv)
}

// openByCommand has agent.start run argv.
func (p *pane) openByCommand(ctx context.Context, argv []string, protocol int) error {
	params := map[string]any{"name": AgentName(p.spec.ID), "argv": argv, "cwd": p.spec.Tree.Path, "focus": false}
	if env := p.env(); env != nil && protocol >= envProtocol {
		params["env"] = env
	}
	var started struct {
		Agent struct {
			PaneID string `json:"pane_id"`
		} `json:"agent"`
	}
	err := call(ctx, p.socket, "agent.start", params, &started)
	var said *Error
	if errors.As(err, &said) && said.Code == "agent_name_taken" {
		return nil // an earlier try came further than was known
	}
	if err == nil {
		p.opened = append(p.opened, closing{"pane.close", map[string]any{"pane_id": started.Agent.PaneID}})
	}
	return err
}

// openByShell opens a workspace and has its shell become argv.
func (p *pane) openByShell(ctx context.Context, argv []string) error {
	params := map[string]any{"cwd": p.spec.Tree.Path, "label": label(p.spec), "focus": false}
	if env := p.env(); env != nil {
		params["env"] = env
	}
	var created struct {
		Workspace struct {
			ID string `json:"workspace_id"`
		} `json:"workspace"`
		RootPane struct {
			ID string `json:"pane_id"`
		} `json:"root_pane"`
	}
	if err := call(ctx, p.socket, "workspace.create", params, &created); err != nil {
		return err
	}
	p.opened = append(p.opened, closing{"workspace.close", map[string]any{"workspace_id": created.Workspace.ID}})
	return call(ctx, p.socket, "pane.send_input", map[string]any{
		"pane_id": created.RootPane.ID, "text": " exec " + quote(argv), "keys": []string{"enter"},
	}, nil)
}

// discard closes what was opened. What cannot be closed holds nothing: it is a shell, or a holder that finds no spec.
func (p *pane) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), patience+time.Second)
	defer cancel()
	for _, c := range p.opened {
		call(ctx, p.socket, c.method, c.params, nil)
	}
}

// env says which agent is in the pane, since all that herdr sees there is the holder. It is nil for one that herdr does not know.
func (p *pane) env() map[string]string {
	kind := filepath.Base(p.spec.Argv[0])
	if !slices.Contains(kinds, kind) {
		return nil
	}
	return map[string]string{"HERDR_AGENT": kind}
}

// label is what a herdr user reads in the list of workspaces.
func label(spec launch.Spec) string {
	return strings.ToValidUTF8(filepath.Base(spec.Tree.Path), "_") + " " + AgentName(spec.ID)
}

// quote writes argv as a line for any usual shell.
func quote(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}
