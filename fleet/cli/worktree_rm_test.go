package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fleetdeck/fleet"
)

// linked makes a linked worktree of repo on a new branch and gives its path.
func (r *rig) linked(repo, branch string) string {
	r.t.Helper()
	path := repo + ".worktrees/" + branch
	r.git(repo, "worktree", "add", "--quiet", "-b", branch, path)
	return path
}

// commit commits a new file in the tree at path.
func (r *rig) commit(path, name string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(path, name), []byte(name), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.git(path, "add", ".")
	r.git(path, "commit", "--quiet", "-m", name)
}

// scribble writes a file at path.
func (r *rig) scribble(path, text string) {
	r.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func TestWorktreeIsRemovedOnlyIfNothingIsLost(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, impatient)
	r.must(nil, "up")
	for i, tt := range []struct {
		name    string
		prepare func(repo, path string)
		flags   []string
		says    string // of a refusal; empty means that it is removed
		force   string // the flag that removes it then
	}{
		{name: "nothing new in it"},
		{name: "an untracked file", says: "uncommitted work: changes", force: "--force-uncommitted",
			prepare: func(_, path string) { r.scribble(path+"/new", "x") }},
		{name: "a changed file", says: "uncommitted work: changes", force: "--force-uncommitted",
			prepare: func(_, path string) { r.scribble(path+"/file", "x") }},
		{name: "an untracked file that the configuration hides", says: "uncommitted work: changes", force: "--force-uncommitted",
			prepare: func(repo, path string) {
				r.git(repo, "config", "status.showUntrackedFiles", "no")
				r.scribble(path+"/new", "x")
			}},
		{name: "a bisection", says: "uncommitted work: a bisection", force: "--force-uncommitted",
			prepare: func(_, path string) { r.git(path, "bisect", "start") }},
		{name: "a commit of its own", says: "commits that no other branch has", force: "--force-unmerged",
			prepare: func(_, path string) { r.commit(path, "own") }},
		{name: "a commit on no branch", says: "commits that no other branch has", force: "--force-unmerged",
			prepare: func(_, path string) {
				r.git(path, "checkout", "--quiet", "--detach")
				r.commit(path, "own")
			}},
		{name: "a commit that is merged", prepare: func(repo, path string) {
			r.commit(path, "own")
			r.git(repo, "merge", "--quiet", filepath.Base(path))
		}},
		{name: "a commit that a remote has", prepare: func(repo, path string) {
			r.commit(path, "own")
			r.git(path, "update-ref", "refs/remotes/origin/pushed", "HEAD")
		}},
		{name: "the wrong force for changes", flags: []string{"--force-unmerged"}, says: "uncommitted work", force: "--force-uncommitted",
			prepare: func(_, path string) { r.scribble(path+"/new", "x") }},
		{name: "the wrong force for commits", flags: []string{"--force-uncommitted"}, says: "commits that no other branch has", force: "--force-unmerged",
			prepare: func(_, path string) { r.commit(path, "own") }},
		{name: "a lock of git's", says: "is locked", prepare: func(_, path string) { r.git(path, "worktree", "lock", path) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := r.committed("r" + strconv.Itoa(i))
			path := r.linked(repo, "x")
			if tt.prepare != nil {
				tt.prepare(repo, path)
			}
			stdout, stderr, code := r.fleetdeck(append([]string{"worktree", "rm", path}, tt.flags...)...)
			_, err := os.Stat(path)
			if tt.says == "" {
				if code != 0 || err == nil {
					t.Errorf("exit %d, %v: %s%s", code, err, stdout, stderr)
				}
			} else {
				if code != 3 || err != nil || !strings.Contains(stderr, tt.says) || !strings.Contains(stderr, tt.force) {
					t.Errorf("exit %d, %v: %s", code, err, stderr)
				}
				if got := r.git(path, "rev-parse", "--show-toplevel"); got != path {
					t.Errorf("it is at %s", got)
				}
			}
			if tt.force != "" {
				if _, stderr, code := r.fleetdeck("worktree", "rm", tt.force, path); code != 0 {
					t.Errorf("%s: exit %d: %s", tt.force, code, stderr)
				}
			}
			if got := r.git(repo, "branch", "--list", "x"); got == "" {
				t.Error("its branch is gone")
			}
			if got := r.reservations(); len(got) > 0 {
				t.Errorf("reservations %+v", got)
			}
		})
	}
}

func TestBranchGoesOnlyWhereThatIsAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, impatient)
	r.must(nil, "up")
	repo := r.committed("api")
	path := r.linked(repo, "x")
	r.must(nil, "worktree", "rm", "--delete-branch", path)
	if got := r.made(repo); len(got) > 0 {
		t.Errorf("%v stay", got)
	}
	if _, err := os.Stat(repo + ".worktrees"); err == nil {
		t.Error("an empty directory stays")
	}
	path = r.linked(repo, "y")
	r.commit(path, "own")
	if _, stderr, code := r.fleetdeck("worktree", "rm", "--delete-branch", path); code != 3 || !strings.Contains(stderr, "they are lost") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if got := r.made(repo); len(got) != 3 {
		t.Errorf("%v stay", got)
	}
}

func TestNoWorktreeIsRemovedThatSomebodyIsIn(t *testing.T) {
	full(t)
	t.Parallel()
	r := newRig(t, impatient+"[profiles.boots]\ncommand = [\"sh\", \"-c\", \"sleep 600\"]\nready = \"report\"\n")
	r.must(nil, "up")
	for _, tt := range []struct {
		name  string
		enter func(t *testing.T, path string) (leave func())
		code  fleet.Code
	}{
		{"a member", func(t *testing.T, path string) func() {
			out, _ := r.dispatch(path, "--profile", "worker", "--wait")
			return func() { r.must(nil, "stop", out.Member) }
		}, fleet.CodeTreeOccupied},
		{"a launch", func(t *testing.T, path string) func() {
			out, _ := r.dispatch(path, "--profile", "boots")
			return func() { r.must(nil, "stop", out.Member) }
		}, fleet.CodeTreeReserved},
		{"a reservation", func(t *testing.T, path string) func() {
			r.must(nil, "reserve", path, "--profile", "worker")
			return func() { r.must(nil, "release", path) }
		}, fleet.CodeTreeReserved},
		{"a process that stands in it", func(t *testing.T, path string) func() {
			c := exec.Command("sleep", "600")
			c.Dir = filepath.Join(path, "sub")
			if err := os.Mkdir(c.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			return func() { c.Process.Kill(); c.Wait() }
		}, fleet.CodeWorktreeRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := r.committed(strings.ReplaceAll(tt.name, " ", "-"))
			path := r.linked(repo, "x")
			leave := tt.enter(t, path)
			stdout, stderr, code := r.fleetdeck("worktree", "rm", "--json", "--force-uncommitted", "--force-unmerged", path)
			if code != 3 || !strings.Contains(stdout, string(tt.code)) {
				t.Errorf("exit %d: %s%s", code, stdout, stderr)
			}
			if _, err := os.Stat(filepath.Join(path, "file")); err != nil {
				t.Error(err)
			}
			leave()
			r.await("it is removed", func() bool {
				_, _, code := r.fleetdeck("worktree", "rm", path)
				return code == 0
			})
		})
	}
}

func TestTheMainWorktreeIsNeverRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, impatient)
	r.must(nil, "up")
	repo := r.committed("api")
	r.linked(repo, "x")
	for _, path := range []string{repo, filepath.Join(repo, "sub")} {
		if _, stderr, code := r.fleetdeck("worktree", "rm", "--force-uncommitted", "--force-unmerged", "--delete-branch", path); code != 3 || !strings.Contains(stderr, "main worktree") {
			t.Errorf("exit %d: %s", code, stderr)
		}
	}
	r.must(nil, "down")
	if _, stderr, code := r.fleetdeck("worktree", "rm", repo+".worktrees/x"); code != 6 {
		t.Errorf("without the daemon: exit %d: %s", code, stderr)
	}
	if got := r.made(repo); len(got) != 3 {
		t.Errorf("%v stay", got)
	}
}

func TestWorktreesAreListedWithWhatTheyHold(t *testing.T) {
	t.Parallel()
	r := newRig(t, "roots = [\"src\"]\n"+impatient)
	r.must(nil, "up")
	repo := r.committed("api")
	r.committed("alone")
	paths := []string{r.linked(repo, "busy"), r.linked(repo, "gone"), r.linked(repo, "own")}
	out, _ := r.dispatch(paths[0], "--profile", "worker", "--wait")
	r.scribble(paths[0]+"/new", "x")
	os.RemoveAll(paths[1])
	r.commit(paths[2], "own")
	type row struct {
		Tree, Repo, Branch, Uncommitted, Member string
		MergedInto                              string `json:"merged_into"`
		Occupancy                               fleet.Occupied
		Missing                                 bool
	}
	main := r.git(repo, "symbolic-ref", "--short", "HEAD")
	want := []row{
		{Tree: paths[0], Repo: repo, Branch: "busy", Uncommitted: "changes", Member: out.Member, MergedInto: main, Occupancy: fleet.Taken},
		{Tree: paths[1], Repo: repo, Branch: "gone", Occupancy: fleet.Free, Missing: true},
		{Tree: paths[2], Repo: repo, Branch: "own", Occupancy: fleet.Free},
	}
	for _, args := range [][]string{{"worktree", "ls"}, {"worktree", "ls", paths[2]}} {
		var got []row
		r.must(&got, args...)
		if !slices.Equal(got, want) {
			t.Errorf("%v gives\n%+v, want\n%+v", args, got, want)
		}
	}
}
