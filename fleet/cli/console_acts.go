package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/tree"
	"fleetdeck/tui"
)

// consoleConfig is what the configuration says of the console, in the console's words. A name that the console does not
// know, and a key that two acts have, is an error with its line.
func consoleConfig(c *config.Config) (tui.Config, error) {
	look := tui.Config{
		Theme: c.Console.Theme, Mouse: c.Console.Mouse, StrictKeys: c.Console.StrictKeys, Notify: c.Console.Notify,
		Keys: c.Console.Keys, Columns: c.Console.Columns, Sort: c.Console.Sort,
	}
	var errs []error
	for _, p := range look.Check() {
		errs = append(errs, &config.Error{Path: c.Path, Line: c.Console.Pos[p.Key], Msg: "console." + p.Key + ": " + p.Text})
	}
	if len(errs) > 0 {
		return look, &usageError{errors.Join(errs...)}
	}
	return look, nil
}

// Explain says why a tree can or cannot be dispatched into, as `explain` prints it.
func (f *consoleFleet) Explain(ctx context.Context, path string) (string, error) {
	if node, _ := f.elsewhere(path); node != "" {
		text, err := f.there(ctx, "", "explain", path)
		return string(text), err
	}
	order := fleet.Order{Tree: path, Role: fleet.RoleDev}
	if names := f.conf.ProfileNames(); len(names) > 0 {
		order.Profile = names[0]
	}
	e, err := explain(ctx, f.session, order)
	return strings.Join(e.lines(), "\n"), err
}

// Look asks for a look now, at a tree above all.
func (f *consoleFleet) Look(path string) { f.live.Look(path) }

// mostShown is how much of a diff the console shows.
const mostShown = 1 << 20

// Diff is what a tree holds that is not committed, or all since its branch began.
func (f *consoleFleet) Diff(ctx context.Context, path string, since bool) (string, error) {
	if node, _ := f.elsewhere(path); node != "" {
		return f.diffThere(ctx, path, since)
	}
	defer f.live.Look(path) // what its row says may be older than what is shown now
	if !since {
		return tree.Diff(ctx, path, mostShown)
	}
	from, err := tree.SinceBase(ctx, path, "")
	if err != nil {
		return "", err
	}
	return from.Diff(ctx, path, mostShown)
}

// Witnesses says who says what of a member, as `explain` prints it.
func (f *consoleFleet) Witnesses(ctx context.Context, member string) (string, error) {
	if f.hostOf(ctx, member) != "" {
		text, err := f.there(ctx, "", "explain", member)
		return string(text), err
	}
	w, err := f.client.Witnesses(ctx, member)
	if err != nil {
		return "", err
	}
	return strings.Join(witnessLines(w, now().Wall), "\n"), nil
}

// Attach is this program again: it takes over the terminal while the console waits.
func (f *consoleFleet) Attach(member string) (*exec.Cmd, error) {
	if f.readOnly {
		return nil, errors.New("this console may only look: who attaches can type")
	}
	return f.program(context.Background(), "attach", member)
}

// Shell is the operator's shell in a tree.
func (f *consoleFleet) Shell(path string) (*exec.Cmd, error) {
	return f.inTree(path, f.conf.Console.Shell)
}

// Editor is the operator's editor on a tree.
func (f *consoleFleet) Editor(path string) (*exec.Cmd, error) {
	return f.inTree(path, slices.Concat(f.conf.Console.Editor, []string{"."}))
}

func (f *consoleFleet) inTree(path string, argv []string) (*exec.Cmd, error) {
	if f.readOnly {
		return nil, errors.New("this console may only look")
	}
	if node, _ := f.elsewhere(path); node != "" {
		return nil, fmt.Errorf("%s is on another host: use ssh %s", path, node)
	}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory", path)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = path
	cmd.Env = append(os.Environ(), "PWD="+path, "FLEETDECK_TREE="+path)
	return cmd, nil
}

// EditText is the operator's editor on a text, in a file that nobody else can read and that goes afterwards.
func (f *consoleFleet) EditText(text string) (*exec.Cmd, func() (string, error), error) {
	dir, err := os.MkdirTemp("", "fleetdeck-task-")
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, "TASK.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	argv := slices.Concat(f.conf.Console.Editor, []string{path})
	edited := func() (string, error) {
		defer os.RemoveAll(dir)
		data, err := os.ReadFile(path)
		return strings.TrimRight(string(data), "\n"), err
	}
	return exec.Command(argv[0], argv[1:]...), edited, nil
}
