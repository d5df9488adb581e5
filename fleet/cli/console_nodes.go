package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"fleetdeck/fleet"
)

// screenThereEvery is how often the screen of a member of another host is asked for while it is looked at: each time a command runs.
const screenThereEvery = 2 * time.Second

// hostOf says on which other host a member is; empty where it is on this one, or unknown.
func (f *consoleFleet) hostOf(ctx context.Context, member string) string {
	if f.cluster == nil {
		return ""
	}
	snap, err := f.live.Snapshot(ctx, 0)
	if err != nil {
		return ""
	}
	for _, m := range snap.Members {
		if m.ID == member && m.Node != f.conf.Cluster.Node {
			return m.Node
		}
	}
	return ""
}

// program is this program again, with the same fleet.
func (f *consoleFleet) program(ctx context.Context, args ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	var same []string
	if !f.dir.Usual {
		same = append(same, "--state", f.dir.Path)
	}
	if f.conf.Path != "" {
		same = append(same, "--config", f.conf.Path)
	}
	return exec.CommandContext(ctx, exe, append(same, args...)...), nil
}

// there runs the command line that reaches another host, and gives what it printed. It has no terminal, so that nothing it starts can ask
// for a password across the console.
func (f *consoleFleet) there(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	cmd, err := f.program(ctx, args...)
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &said
	cmd.Env = append(os.Environ(), "SSH_ASKPASS_REQUIRE=never")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Second
	if err = cmd.Run(); err != nil && ctx.Err() == nil {
		err = whySaid(out.Bytes(), said.String(), err)
	}
	return out.Bytes(), err
}

// whySaid is why a command failed, as it says itself: in the document that it prints with --json, or on the standard error stream.
func whySaid(out []byte, said string, err error) error {
	var doc struct {
		Error *fleet.Refusal `json:"error"`
	}
	if json.Unmarshal(out, &doc) == nil && doc.Error != nil {
		return doc.Error
	}
	var why []string
	hint := ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "fleetdeck: hint: "); ok {
			hint = rest
		} else if line != "" {
			why = append(why, strings.TrimPrefix(line, "fleetdeck: error: "))
		}
	}
	if len(why) == 0 {
		return err
	}
	return fleet.Refuse(fleet.CodeInternal, "%s", strings.Join(why, "; ")).WithHint("%s", hint)
}

// screenThere is the screen of a member of another host.
func (f *consoleFleet) screenThere(ctx context.Context, member string, rev uint64) (s fleet.Screen, err error) {
	if rev > 0 {
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(screenThereEvery):
		}
	}
	out, err := f.there(ctx, "", "screen", "--json", member)
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	s.Rev = rev + 1
	return s, err
}

// sendThere types text to a member of another host.
func (f *consoleFleet) sendThere(ctx context.Context, member, text string, enter bool) error {
	args := []string{"send", "--json"}
	if !enter {
		args = append(args, "--no-enter")
	}
	stdin := ""
	if text == "-" { // which as an argument stands for the standard input
		stdin = text
	}
	_, err := f.there(ctx, stdin, append(args, "--", member, text)...)
	return err
}

// restartThere restarts a member of another host, which names its tree as its own.
func (f *consoleFleet) restartThere(ctx context.Context, node, member string) (out fleet.Outcome, err error) {
	text, err := f.there(ctx, "", "restart", "--json", member)
	if json.Unmarshal(text, &out) != nil || out.Outcome == "" {
		if err == nil {
			err = errors.New("the other host's answer cannot be read")
		}
		return refusedOutcome(out, err), err
	}
	if out.Tree != "" {
		out.Tree = fleet.At(node, out.Tree)
	}
	if err != nil {
		err = fleet.Refuse(out.Code, "%s", out.Message).WithHint("%s", out.Hint)
	}
	return out, err
}

// diffThere is the diff of a tree of another host.
func (f *consoleFleet) diffThere(ctx context.Context, tree string, since bool) (string, error) {
	args := []string{"diff", "--json", tree}
	if since {
		args = append(args, "--commits")
	}
	out, err := f.there(ctx, "", args...)
	if err != nil {
		return "", err
	}
	var doc struct {
		Diff string `json:"diff"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return "", fmt.Errorf("diff of %s: %w", tree, err)
	}
	return doc.Diff[:min(len(doc.Diff), mostShown)], nil
}

// notThere refuses what can only be done on a tree's own host.
func (f *consoleFleet) notThere(tree, what string) error {
	node, path := f.elsewhere(tree)
	if node == "" {
		return nil
	}
	return fleet.Refuse(fleet.CodeBadRequest, "%s is of node %s", path, node).WithHint("%s there", what)
}

// send has an order carried out on the host that its tree names.
func (f *consoleFleet) send(ctx context.Context, order fleet.Order) (fleet.Outcome, error) {
	node, path := f.elsewhere(order.Tree)
	order.Tree, order.Also = path, slices.Clone(order.Also)
	for i, also := range order.Also {
		var other string
		if other, order.Also[i] = f.elsewhere(also); other != node {
			err := usagef("an agent's trees are of one host: %s is not", also)
			return refusedOutcome(fleet.Outcome{Tree: order.Tree, Role: order.Role, Profile: order.Profile}, err), err
		}
	}
	if node == "" {
		return f.dispatch.Dispatch(ctx, order)
	}
	out, err := f.sendElsewhere(ctx, node, order, dispatchOptions{})
	if err != nil && out.Outcome == "" {
		out = refusedOutcome(fleet.Outcome{Tree: fleet.At(node, path), Role: order.Role, Profile: order.Profile}, err)
	}
	return out, err
}

// settled waits for the end of a launch, on whichever host.
func (f *consoleFleet) settled(ctx context.Context, out fleet.Outcome) (fleet.Outcome, error) {
	node, _ := f.elsewhere(out.Tree)
	if node == "" {
		return f.dispatch.Wait(ctx, out)
	}
	hosts := &allHosts{s: f.session}
	until := time.Now().Add(f.conf.Grace + sendMargin)
	var seen fleet.Snapshot
	for time.Now().Before(until) {
		looking, cancel := context.WithTimeout(ctx, askFate)
		if snap, err := f.live.Snapshot(looking, seen.Rev); err == nil {
			seen = snap
		}
		cancel()
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		switch heldAs(seen.Nodes, node, out.Reservation) {
		case "member":
			return out, nil
		case "": // it has ended, or has not been seen here yet: its own host knows
			status, err := hosts.Reservation(ctx, out.Tree, out.Reservation)
			r := status.Failed
			if err != nil && fleet.RefusalOf(err) != nil && fleet.RefusalOf(err).Code == fleet.CodeNotFound {
				r = fleet.RefusalOf(err)
			}
			switch {
			case r != nil:
				r = fleet.Refuse(r.Code, "its launch on node %s has ended: %s", node, r.Message).WithHint("%s", r.Hint)
				return refusedOutcome(out, r), r
			case status.Member != nil:
				return out, nil
			}
		}
	}
	return out, nil // nobody can say: its host is not to be reached, which is shown
}

// askFate is how long a look waits for news of a launch on another host.
const askFate = time.Second

// heldAs is the state of what node holds under a reservation; empty where it holds nothing.
func heldAs(nodes []fleet.Node, node, reservation string) string {
	for _, n := range nodes {
		for _, t := range n.Held {
			if n.Name == node && t.ID == reservation {
				return t.State
			}
		}
	}
	return ""
}
