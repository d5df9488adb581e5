package dispatch_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/tree"
)

// noting is a ledger that takes a note, if fails is nil.
type noting struct {
	*book.Book
	fails error
	of    string
	tree  fleet.Tree
	made  *fleet.MadeWorktree
}

func (n *noting) NoteMade(_ context.Context, _ time.Duration, order fleet.Order, t fleet.Tree, m *fleet.MadeWorktree) error {
	n.of, n.tree, n.made = order.ID, t, m
	return n.fails
}

func (n *noting) Made(_ context.Context, _ time.Duration, id string) (fleet.Tree, *fleet.MadeWorktree, error) {
	if n.fails != nil || n.of != id {
		return fleet.Tree{}, nil, n.fails
	}
	return n.tree, n.made, nil
}

func (n *noting) ForgetMade(_ context.Context, _ time.Duration, id string) error {
	if n.of == id {
		n.of, n.made = "", nil
	}
	return nil
}

func gitRepo(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(dir, "api")
	git(t, dir, "init", "--quiet", repo)
	git(t, repo, "-c", "user.name=kim", "-c", "user.email=kim@example.org", "commit", "--quiet", "--allow-empty", "-m", "one")
	return repo
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// stands reports whether the worktree of branch topic, and the branch, do.
func stands(t *testing.T, repo string) bool {
	t.Helper()
	_, err := os.Stat(repo + ".worktrees/topic")
	if branch := git(t, repo, "branch", "--list", "topic"); (branch != "") != (err == nil) {
		t.Errorf("of worktree and branch one stands: %v, %q", err, branch)
	}
	return err == nil
}

func TestAWorktreeWhoseDispatcherDiedIsTakenBackUnlessSomebodyHasIt(t *testing.T) {
	for _, tt := range []struct {
		name   string
		meet   func(t *testing.T, n *noting, path string)
		status *api.LaunchStatus // that the daemon knows
		want   string
		says   string
		stands bool
	}{
		{"nothing came of it", nil, nil, fleet.Refused, "", false},
		{"something in it is new", func(t *testing.T, _ *noting, path string) {
			if err := os.WriteFile(filepath.Join(path, "mine"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, nil, fleet.Refused, "stays", true},
		{"somebody else has it by now", func(t *testing.T, n *noting, _ string) {
			if err := n.Settle(t.Context(), time.Second, "R1"); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Reserve(t.Context(), time.Second, ledger.Draft{Tree: n.tree, ID: "R2", Grace: time.Minute, Role: fleet.RoleDev, Profile: "p"},
				func(context.Context) (fleet.Roster, error) { return fleet.Roster{}, nil }); err != nil {
				t.Fatal(err)
			}
		}, nil, fleet.Refused, "somebody came to it", true},
		{"git was at it still", func(t *testing.T, n *noting, _ string) {
			if err := n.ForgetMade(t.Context(), time.Second, "R1"); err != nil {
				t.Fatal(err)
			}
		}, nil, fleet.Refused, "that was begun at", true},
		{"git had not come to it", func(t *testing.T, n *noting, path string) {
			git(t, n.made.Main, "worktree", "remove", path)
			git(t, n.made.Main, "branch", "-D", "topic")
			if err := errors.Join(os.Mkdir(path, 0o700), n.ForgetMade(t.Context(), time.Second, "R1")); err != nil {
				t.Fatal(err)
			}
		}, nil, fleet.Refused, "", false},
		{"it became a launch", nil, &api.LaunchStatus{Launch: &fleet.Launch{ID: "L1"}}, fleet.Accepted, "", true},
		{"a launch that failed has it", nil, &api.LaunchStatus{Failed: fleet.Refuse(fleet.CodeLaunchFailed, "it exited")}, fleet.Refused, "it exited", true},
		{"it was removed by hand", func(t *testing.T, n *noting, path string) {
			git(t, n.made.Main, "worktree", "remove", path)
			git(t, n.made.Main, "branch", "-D", "topic")
		}, nil, fleet.Refused, "", false},
		{"nobody says what was made", func(_ *testing.T, n *noting, _ string) { n.fails = errors.New("etcd is away") }, nil, fleet.Unknown, "etcd is away", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := book.Open(t.TempDir(), process.Now)
			if err != nil {
				t.Fatal(err)
			}
			n := &noting{Book: b}
			d := dispatch.Dispatcher{Ledger: n, Daemon: &knowing{status: tt.status}, LockWait: time.Second, Grace: time.Minute, Now: process.Now}
			repo := gitRepo(t)
			order := fleet.Order{ID: "R1", Tree: repo, Branch: "topic", Role: fleet.RoleDev, Profile: "p"}
			made, err := tree.Worktrees{Reserve: func(ctx context.Context, at fleet.Tree) error {
				_, err := n.Reserve(ctx, time.Second, ledger.Draft{Tree: at, ID: "R1", Grace: time.Minute, Role: fleet.RoleDev, Profile: "p"}, d.Daemon.Roster)
				return err
			}}.AddWorktree(t.Context(), repo, "topic")
			if err != nil {
				t.Fatal(err)
			}
			if err := n.NoteMade(t.Context(), time.Second, order, made.Tree, made.Made()); err != nil {
				t.Fatal(err)
			}
			if tt.meet != nil {
				tt.meet(t, n, made.Path)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if tt.want == fleet.Unknown {
				cancel() // else it asks on
			}
			defer cancel()
			out, err := d.Recall(ctx, order)
			said := err != nil && strings.Contains(err.Error(), tt.says)
			if out.Outcome != tt.want || tt.says != "" && !said || !tt.stands && strings.Contains(err.Error(), "stays") {
				t.Errorf("recall: %+v, %v, want it %s, with %q", out, err, tt.want, tt.says)
			}
			if got := stands(t, repo); got != tt.stands {
				t.Errorf("the worktree stands: %t, want %t", got, tt.stands)
			}
			if _, err := os.Stat(filepath.Dir(made.Path)); tt.meet == nil && !tt.stands && err == nil {
				t.Errorf("the directory that was made on the way stays")
			}
			if noted := n.made != nil; noted != (tt.want == fleet.Unknown) {
				t.Errorf("it is still noted: %t", noted)
			}
		})
	}
}

// deciding is a daemon that answers a spawn with err, and looks what is noted then.
type deciding struct {
	slowDaemon
	n     *noting
	err   error
	noted string
}

func (d *deciding) Spawn(_ context.Context, req api.Spawn) (api.Accepted, error) {
	if d.n.made != nil {
		d.noted = d.n.of + " " + d.n.tree.Path
	}
	return api.Accepted{Launch: &fleet.Launch{ID: "L1", Reservation: req.Reservation}}, d.err
}

func TestWhatIsMadeIsNotedUntilItIsDecidedOn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fails  error // the note does
		err    error
		want   string
		stands bool
	}{
		{"accepted", nil, nil, fleet.Accepted, true},
		{"refused", nil, fleet.Refuse(fleet.CodeSlotUnavailable, "every slot is taken"), fleet.Refused, false},
		{"not noted", errors.New("etcd is away"), nil, fleet.Refused, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := book.Open(t.TempDir(), process.Now)
			if err != nil {
				t.Fatal(err)
			}
			n := &noting{Book: b, fails: tt.fails}
			daemon := &deciding{n: n, err: tt.err}
			d := dispatch.Dispatcher{Ledger: n, Daemon: daemon, LockWait: time.Second, Grace: time.Minute, Now: process.Now}
			repo := gitRepo(t)
			out, err := d.Dispatch(t.Context(), fleet.Order{ID: "R1", Tree: repo, Branch: "topic", Role: fleet.RoleDev, Profile: "p"})
			if out.Outcome != tt.want {
				t.Errorf("dispatch: %+v, %v, want it %s", out, err, tt.want)
			}
			if want := "R1 " + repo + ".worktrees/topic"; tt.fails == nil && daemon.noted != want || tt.fails != nil && daemon.noted != "" {
				t.Errorf("at the spawn %q is noted, want %q, and no spawn without a note", daemon.noted, want)
			}
			if got := stands(t, repo); got != tt.stands || n.made != nil {
				t.Errorf("the worktree stands: %t, want %t; noted is %+v, want nothing any more", got, tt.stands, n.made)
			}
		})
	}
}
