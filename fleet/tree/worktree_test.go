package tree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

// hostile is the name of a branch that git takes.
const hostile = "\u202egnp;$(touch\u00a0owned)'\"`&|<>é%s"

func TestWorktreeIsMadeOnItsBranch(t *testing.T) {
	other := tempDir(t)
	for _, tt := range []struct {
		name   string
		from   func(t *testing.T, repo string) string // prepares, and gives the tree to name
		w      tree.Worktrees
		branch string
		path   func(repo string) string
		isNew  bool
		file   string
	}{
		{name: "new branch from HEAD", branch: "feat/login", isNew: true, file: "one\n",
			path: func(repo string) string { return repo + ".worktrees/feat-login" }},
		{name: "existing branch", branch: "old", file: "old\n",
			from: func(t *testing.T, repo string) string {
				git(t, repo, "checkout", "--quiet", "-b", "old")
				write(t, filepath.Join(repo, "file"), "old\n")
				git(t, repo, "commit", "--quiet", "-am", "old")
				git(t, repo, "checkout", "--quiet", "main")
				return repo
			},
			path: func(repo string) string { return repo + ".worktrees/old" }},
		{name: "from a revision", branch: "back", w: tree.Worktrees{From: "HEAD~1"}, isNew: true, file: "one\n",
			from: func(t *testing.T, repo string) string {
				write(t, filepath.Join(repo, "file"), "two\n")
				git(t, repo, "commit", "--quiet", "-am", "two")
				return repo
			},
			path: func(repo string) string { return repo + ".worktrees/back" }},
		{name: "in the configured directory", branch: "a/b", w: tree.Worktrees{Dir: filepath.Join(other, "deep", "wt")}, isNew: true, file: "one\n",
			path: func(string) string { return filepath.Join(other, "deep", "wt", "api", "a-b") }},
		{name: "named by a sub-directory", branch: "x", isNew: true, file: "one\n",
			from: func(t *testing.T, repo string) string {
				write(t, filepath.Join(repo, "sub", "f"), "")
				return filepath.Join(repo, "sub")
			},
			path: func(repo string) string { return repo + ".worktrees/x" }},
		{name: "from a linked worktree: its HEAD, the repository's place", branch: "y", isNew: true, file: "linked\n",
			from: func(t *testing.T, repo string) string {
				linked := filepath.Join(filepath.Dir(repo), "linked")
				git(t, repo, "worktree", "add", "--quiet", "-b", "linked", linked)
				write(t, filepath.Join(linked, "file"), "linked\n")
				git(t, linked, "commit", "--quiet", "-am", "linked")
				return linked
			},
			path: func(repo string) string { return repo + ".worktrees/y" }},
		{name: "a branch with a hostile name", branch: hostile, isNew: true, file: "one\n",
			path: func(repo string) string { return repo + ".worktrees/" + hostile }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := repo(t)
			from := repo
			if tt.from != nil {
				from = tt.from(t, repo)
			}
			before := branches(t, repo)
			w, err := tt.w.AddWorktree(t.Context(), from, tt.branch)
			if err != nil {
				t.Fatal(err)
			}
			if want := tt.path(repo); w.Path != want {
				t.Errorf("it is at %q, want %q", w.Path, want)
			}
			if got, err := tree.Resolve(t.Context(), w.Path, false); err != nil || got != w.Tree {
				t.Errorf("Resolve = %v, %v, want %v", got, err, w.Tree)
			}
			if got := git(t, w.Path, "symbolic-ref", "HEAD"); got != "refs/heads/"+tt.branch {
				t.Errorf("it is on %q", got)
			}
			if got, err := os.ReadFile(filepath.Join(w.Path, "file")); string(got) != tt.file {
				t.Errorf("it holds %q, %v, want %q", got, err, tt.file)
			}
			if w.NewBranch != tt.isNew {
				t.Errorf("NewBranch = %v", w.NewBranch)
			}

			parent := exists(filepath.Dir(w.Path))
			if err := w.Remove(t.Context(), vacant); err != nil {
				t.Fatalf("Remove: %v", err)
			}
			if exists(w.Path) || exists(filepath.Dir(w.Path)) || !parent {
				t.Errorf("%s or the directory made for it stays", w.Path)
			}
			if diff := cmp.Diff(before, branches(t, repo)); diff != "" {
				t.Errorf("branches (-before +after):\n%s", diff)
			}
			if got := worktrees(t, repo); slices.Contains(got, w.Path) {
				t.Errorf("git still lists %s", got)
			}
		})
	}
}

func vacant(string) error { return nil }

// bare makes a bare repository in the directory name of a project, and a worktree of it.
func bare(t *testing.T, name string) (project, linked string) {
	t.Helper()
	project = filepath.Join(tempDir(t), "project")
	git(t, ".", "clone", "--quiet", "--bare", repo(t), filepath.Join(project, name))
	linked = filepath.Join(project, "main")
	git(t, filepath.Join(project, name), "worktree", "add", "--quiet", linked, "main")
	return project, linked
}

func TestWorktreeOfABareRepositoryGoesBesideIt(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"api.git", "project/api.worktrees/x"},
		{".bare", "project.worktrees/x"},
		{".git", "project.worktrees/x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			project, linked := bare(t, tt.name)
			w, err := tree.Worktrees{}.AddWorktree(t.Context(), linked, "x")
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(filepath.Dir(project), tt.want); w.Path != want {
				t.Errorf("it is at %s, want %s", w.Path, want)
			}
			if err := w.Remove(t.Context(), vacant); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWorktreeOfASubmoduleGoesBesideIt(t *testing.T) {
	inner, outer := repo(t), repo(t)
	git(t, outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "sub")
	w, err := tree.Worktrees{}.AddWorktree(t.Context(), filepath.Join(outer, "sub"), "x")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(outer, "sub.worktrees", "x"); w.Path != want {
		t.Errorf("it is at %s, want %s", w.Path, want)
	}
	if err := w.Remove(t.Context(), vacant); err != nil {
		t.Error(err)
	}
}

func TestRefusedWorktreeLeavesNothing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		branch  string
		w       tree.Worktrees
		prepare func(t *testing.T, repo string) (tree string)
		want    string // in the message or the hint
		code    fleet.Code
	}{
		{name: "option", branch: "--help", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "short option", branch: "-f", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "empty", branch: "", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "last branch", branch: "-", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "earlier branch", branch: "@{-1}", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "at", branch: "@", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "HEAD", branch: "HEAD", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "full name", branch: "refs/heads/x", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "way out", branch: "../../x", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "revision", branch: "main~1", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "line break", branch: "a\nb", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "escape", branch: "a\x1b[31m", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "NUL", branch: "a\x00b", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "not UTF-8", branch: "a\xffb", want: "is no name for a branch", code: fleet.CodeBadRequest},
		{name: "too long", branch: strings.Repeat("x", 300), want: "file name too long", code: fleet.CodeWorktreeRefused},
		{name: "below another branch", branch: "main/x", want: "git says:", code: fleet.CodeWorktreeRefused},
		{name: "checked out here", branch: "main", want: "is checked out at REPO already", code: fleet.CodeWorktreeRefused},
		{name: "checked out elsewhere", branch: "x", want: "dispatch there: fleetdeck dispatch REPO.elsewhere", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, repo string) string {
				git(t, repo, "worktree", "add", "--quiet", "-b", "x", repo+".elsewhere")
				return repo
			}},
		{name: "checked out where it is gone", branch: "x", want: "git -C REPO worktree prune", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, repo string) string {
				git(t, repo, "worktree", "add", "--quiet", "-b", "x", repo+".elsewhere")
				os.RemoveAll(repo + ".elsewhere")
				return repo
			}},
		{name: "rebased elsewhere", branch: "x", want: "rebases or bisects it", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, repo string) string {
				git(t, repo, "worktree", "add", "--quiet", "-b", "x", repo+".elsewhere")
				rebase(t, repo+".elsewhere")
				return repo
			}},
		{name: "rebase going on here", branch: "x", want: "a rebase is going on in REPO", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, repo string) string {
				rebase(t, repo)
				return repo
			}},
		{name: "directory is there", branch: "x", want: "is there already", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, repo string) string {
				write(t, repo+".worktrees/x/precious", "")
				return repo
			}},
		{name: "file is there", branch: "x", want: "is there already", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, repo string) string {
				write(t, repo+".worktrees/x", "")
				return repo
			}},
		{name: "directory is there and empty", branch: "x", want: "rmdir REPO.worktrees/x", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, repo string) string {
				os.MkdirAll(repo+".worktrees/x", 0o755)
				return repo
			}},
		{name: "gone, and git thinks it is there", branch: "y", want: "git -C REPO worktree prune", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, repo string) string {
				git(t, repo, "worktree", "add", "--quiet", "--detach", repo+".worktrees/y")
				os.RemoveAll(repo + ".worktrees")
				return repo
			}},
		{name: "no place", branch: "x", want: "name another place with dir in [worktrees]", code: fleet.CodeWorktreeRefused, w: tree.Worktrees{Dir: "/proc/none"}},
		{name: "no commit yet", branch: "x", want: "has no commit yet", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, _ string) string { return emptyRepo(t) }},
		{name: "from what is no commit", branch: "x", want: "names no commit", code: fleet.CodeWorktreeRefused, w: tree.Worktrees{From: "nowhere"}},
		{name: "from an option", branch: "x", want: "names no commit", code: fleet.CodeWorktreeRefused, w: tree.Worktrees{From: "--since=1"}},
		{name: "from, of a branch that is there", branch: "old", want: "leave --from out", code: fleet.CodeWorktreeRefused, w: tree.Worktrees{From: "HEAD"},
			prepare: func(t *testing.T, repo string) string {
				git(t, repo, "branch", "old")
				return repo
			}},
		{name: "branch of a remote", branch: "feat/x", want: "--from origin/feat/x", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, repo string) string {
				git(t, repo, "update-ref", "refs/remotes/origin/feat/x", "HEAD")
				return repo
			}},
		{name: "bare", branch: "x", want: "it is a bare repository",
			prepare: func(t *testing.T, _ string) string {
				project, _ := bare(t, "api.git")
				return filepath.Join(project, "api.git")
			}},
		{name: "no repository", branch: "x", want: "not in a git working tree",
			prepare: func(t *testing.T, _ string) string { return tempDir(t) }},
		{name: "hook that fails", branch: "x", w: tree.Worktrees{Trust: true}, want: "git says: no such luck", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, repo string) string {
				hook(t, repo, "echo no such luck >&2; exit 3")
				return repo
			}},
		{name: "hook that asks", branch: "x", w: tree.Worktrees{Trust: true}, want: "git says: nobody to ask", code: fleet.CodeWorktreeRefused,
			prepare: func(t *testing.T, repo string) string {
				hook(t, repo, `(read answer </dev/tty) 2>/dev/null || read answer || { $GIT_EDITOR; code=$?; echo nobody to ask >&2; exit $code; }`)
				return repo
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := repo(t)
			from := repo
			if tt.prepare != nil {
				from = tt.prepare(t, repo)
			}
			before, were, files := branches(t, repo), worktrees(t, repo), ls(t, filepath.Dir(repo))
			_, err := tt.w.AddWorktree(t.Context(), from, tt.branch)
			if err == nil {
				t.Fatal("it was made")
			}
			said := err.Error()
			if r := fleet.RefusalOf(err); r != nil {
				said += "\n" + r.Hint
				if r.Code != tt.code {
					t.Errorf("code %q, want %q", r.Code, tt.code)
				}
			} else if tt.code != "" {
				t.Errorf("no refusal: %v", err)
			}
			if want := strings.ReplaceAll(tt.want, "REPO", repo); !strings.Contains(said, want) {
				t.Errorf("%q does not say %q", said, want)
			}
			if strings.Contains(said, "stays") {
				t.Errorf("something stays: %s", said)
			}
			if diff := cmp.Diff(before, branches(t, repo)); diff != "" {
				t.Errorf("branches (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(were, worktrees(t, repo)); diff != "" {
				t.Errorf("worktrees (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(files, ls(t, filepath.Dir(repo))); diff != "" {
				t.Errorf("files (-before +after):\n%s", diff)
			}
		})
	}
}

// rebase leaves the tree in the middle of a rebase.
func rebase(t *testing.T, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "file"), "two\n")
	git(t, dir, "commit", "--quiet", "-am", "two")
	git(t, dir, "-c", "sequence.editor=sed -i.bak s/^pick/edit/", "rebase", "--quiet", "--interactive", "HEAD~1")
	if !strings.Contains(git(t, dir, "status"), "rebas") {
		t.Fatal("no rebase is going on")
	}
}

// hook makes script what git runs after a checkout.
func hook(t *testing.T, repo, script string) {
	t.Helper()
	path := filepath.Join(repo, ".git", "hooks", "post-checkout")
	write(t, path, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// ls gives what is below dir, without the insides of git directories.
func ls(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" && d.IsDir() {
			return filepath.SkipDir
		}
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestOfManyForOneBranchOneWins(t *testing.T) {
	for _, existing := range []bool{false, true} {
		t.Run(fmt.Sprintf("existing=%v", existing), func(t *testing.T) {
			repo := repo(t)
			if existing {
				git(t, repo, "branch", "x")
			}
			errs := together(8, func(int) error {
				_, err := tree.Worktrees{}.AddWorktree(t.Context(), repo, "x")
				return err
			})
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else if r := fleet.RefusalOf(err); r == nil || r.Code != fleet.CodeWorktreeRefused {
					t.Errorf("refused without a reason: %v", err)
				}
			}
			if won != 1 {
				t.Errorf("%d won, want 1: %v", won, errs)
			}
			if got := git(t, repo+".worktrees/x", "symbolic-ref", "HEAD"); got != "refs/heads/x" {
				t.Errorf("the winner's worktree is on %s", got)
			}
			if got := git(t, repo+".worktrees/x", "status", "--porcelain"); got != "" {
				t.Errorf("the winner's worktree is not whole: %s", got)
			}
			if got := worktrees(t, repo); len(got) != 2 {
				t.Errorf("worktrees: %v", got)
			}
		})
	}
}

func TestManyBranchesOfOneRepositoryAtOnceAreAllMade(t *testing.T) {
	repo := repo(t)
	errs := together(8, func(i int) error {
		_, err := tree.Worktrees{}.AddWorktree(t.Context(), repo, fmt.Sprintf("x%d", i))
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// together runs f n times at once.
func together(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func TestCancelledWorktreeLeavesNothingAndEndsItsHooks(t *testing.T) {
	repo := repo(t)
	fifo := filepath.Join(tempDir(t), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	hook(t, repo, `touch half; sleep 600 & echo $$ $! > "`+fifo+`"; wait`)
	before, files := branches(t, repo), ls(t, filepath.Dir(repo))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := tree.Worktrees{Trust: true}.AddWorktree(ctx, repo, "x")
		done <- err
	}()
	said, err := os.ReadFile(fifo) // the hook runs
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("AddWorktree: %v, want %v", err, context.Canceled)
	}
	if diff := cmp.Diff(before, branches(t, repo)); diff != "" {
		t.Errorf("branches (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(files, ls(t, filepath.Dir(repo))); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	if got := worktrees(t, repo); len(got) != 1 {
		t.Errorf("worktrees: %v", got)
	}
	for _, field := range strings.Fields(string(said)) {
		var pid int
		fmt.Sscan(field, &pid)
		for end := time.Now().Add(30 * time.Second); running(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				syscall.Kill(pid, syscall.SIGKILL)
				t.Errorf("process %d of the hook goes on", pid)
				break
			}
		}
	}
}

// running reports whether a process runs that is no zombie.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err != nil || !strings.HasPrefix(rest, "Z")
}

func TestWorktreeThatIsNotAsItWasMadeStays(t *testing.T) {
	for _, tt := range []struct {
		name       string
		change     func(t *testing.T, repo, path string)
		vacant     func(string) error
		want       string
		keepsTree  bool
		keepsOther string
	}{
		{name: "untracked file", keepsTree: true, want: "stays",
			change: func(t *testing.T, _, path string) { write(t, filepath.Join(path, "new"), "") }},
		{name: "changed file", keepsTree: true, want: "stays",
			change: func(t *testing.T, _, path string) { write(t, filepath.Join(path, "file"), "mine\n") }},
		{name: "somebody in it", keepsTree: true, want: "somebody", vacant: func(string) error { return errors.New("somebody is in it") }},
		{name: "another directory", keepsTree: true, want: "another directory",
			change: func(t *testing.T, _, path string) {
				os.Rename(path, path+".old")
				write(t, filepath.Join(path, "precious"), "")
			}},
		{name: "commit on its branch", want: `branch "x" stays`,
			change: func(t *testing.T, _, path string) { git(t, path, "commit", "--quiet", "--allow-empty", "-m", "mine") }},
		{name: "branch checked out elsewhere by now", want: `branch "x" stays: it is checked out at`,
			change: func(t *testing.T, repo, path string) {
				git(t, path, "checkout", "--quiet", "--detach")
				git(t, repo, "checkout", "--quiet", "x")
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := repo(t)
			w, err := tree.Worktrees{}.AddWorktree(t.Context(), repo, "x")
			if err != nil {
				t.Fatal(err)
			}
			if tt.change != nil {
				tt.change(t, repo, w.Path)
			}
			ask := vacant
			if tt.vacant != nil {
				ask = tt.vacant
			}
			files := ls(t, repo+".worktrees")
			if err := w.Remove(t.Context(), ask); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Remove: %v, want %q", err, tt.want)
			}
			if !slices.Contains(branches(t, repo), "x") {
				t.Error("its branch is gone")
			}
			if tt.keepsTree {
				if diff := cmp.Diff(files, ls(t, repo+".worktrees")); diff != "" {
					t.Errorf("files (-before +after):\n%s", diff)
				}
			} else if exists(repo + ".worktrees") {
				t.Error("the worktree stays too")
			}
		})
	}
}

func TestWhileItIsAskedWhetherATreeIsVacantNobodyCanComeToIt(t *testing.T) {
	repo := repo(t)
	w, err := tree.Worktrees{}.AddWorktree(t.Context(), repo, "x")
	if err != nil {
		t.Fatal(err)
	}
	err = w.Remove(t.Context(), func(string) error {
		if _, err := tree.Resolve(t.Context(), w.Path, true); !errors.Is(err, tree.ErrNotFound) {
			t.Errorf("Resolve: %v, want %v", err, tree.ErrNotFound)
		}
		return errors.New("no")
	})
	if err == nil {
		t.Fatal("it was removed")
	}
	if got, err := tree.Resolve(t.Context(), w.Path, false); err != nil || got != w.Tree {
		t.Errorf("put back: %v, %v, want %v", got, err, w.Tree)
	}
}
