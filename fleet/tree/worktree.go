package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"fleetdeck/fleet"
)

// besideRepository ends the name of the directory for worktrees beside their repository.
const besideRepository = ".worktrees"

// checkoutTimeout bounds a call to git that writes a whole tree and runs hooks.
const checkoutTimeout = 10 * time.Minute

// Worktrees says how linked worktrees are made.
type Worktrees struct {
	// Dir is the directory below which they go, each at REPOSITORY/BRANCH. Empty means beside the repository, at
	// REPOSITORY.worktrees/BRANCH.
	Dir string
	// From is the revision at which a new branch begins. Empty means the HEAD of the tree that was named.
	From string
	// Trust lets git run the programs that the repository names: its hooks, the filters that its own configuration has, what a partial
	// clone fetches with. Without it git runs none of them, and a repository that has such filters is refused.
	Trust bool
	// Reserve, where set, is called once the new tree's directory is there, empty, and before git makes anything: an error takes the
	// directory back.
	Reserve func(context.Context, fleet.Tree) error
}

// Worktree is a linked worktree that this process made.
type Worktree struct {
	fleet.Tree
	Branch string
	// NewBranch says that the branch was made for it.
	NewBranch bool
	// Trust lets git run what the repository names, as [Worktrees] says.
	Trust bool

	main    string // a directory of the same repository that stays
	start   string // the commit at which a new branch began
	parents []string
}

// AddWorktree makes a linked worktree of the repository of tree, on branch: one that exists is checked out, another is made.
//
// Who makes the directory has the branch: of two that try at once, one is refused. A refusal leaves neither directory nor
// branch behind, unless it says so. Hooks run only where they are trusted, and have nobody to ask.
func (w Worktrees) AddWorktree(ctx context.Context, tree, branch string) (*Worktree, error) {
	from, err := Resolve(ctx, tree, false)
	if err != nil {
		return nil, err
	}
	if err := checkBranch(ctx, from.Path, branch); err != nil {
		return nil, err
	}
	unlock, err := lockRepository(ctx, from.Path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := listWorktrees(ctx, from.Path)
	if err != nil {
		return nil, err
	}
	made := &Worktree{Branch: branch, Trust: w.Trust, main: all[0].path}
	if err := w.checkFilters(ctx, made.main); err != nil {
		return nil, err
	}
	if made.NewBranch, made.start, err = w.begin(ctx, from.Path, branch, all); err != nil {
		return nil, err
	}
	if err := made.claim(w.place(all[0], branch)); err != nil {
		return nil, err
	}
	if w.Reserve != nil {
		if err := w.Reserve(ctx, made.Tree); err != nil {
			return nil, errors.Join(err, made.unclaim())
		}
	}
	if err := made.checkOut(ctx); err != nil {
		// What was begun goes, whether or not the caller still waits.
		return nil, errors.Join(err, made.abandon(context.WithoutCancel(ctx), ctx.Err() != nil))
	}
	return made, nil
}

func refuse(format string, args ...any) *fleet.Refusal {
	return fleet.Refuse(fleet.CodeWorktreeRefused, format, args...)
}

// checkFilters refuses a repository whose files git would write other than they are meant, for want of a filter that it may not run.
func (w Worktrees) checkFilters(ctx context.Context, main string) error {
	if w.Trust {
		return nil
	}
	names, err := filters(ctx, main)
	if err != nil || len(names) == 0 {
		return err
	}
	return refuse("the configuration of %s names a filter, %q, that git would run for its files", main, names[0]).WithHint("%s", trustHint)
}

// trustHint says how to let git run what it was not allowed to.
const trustHint = "if you trust this repository's hooks and filters, set trust = true in [worktrees]"

// checkBranch lets pass what git would take as the name of a branch, and means nothing else.
func checkBranch(ctx context.Context, dir, branch string) error {
	wrong := fleet.Refuse(fleet.CodeBadRequest, "%q is no name for a branch", branch)
	if branch == "@" || strings.HasPrefix(branch, "refs/") || strings.ContainsRune(branch, 0) || !utf8.ValidString(branch) {
		return wrong
	}
	out, err := git(ctx, dir, "check-ref-format", "--branch", branch)
	var said *gitError
	if errors.As(err, &said) || err == nil && string(out) != branch+"\n" {
		return wrong
	}
	return err
}

// begin looks whether branch is there to be checked out, or at which commit it is to begin.
func (w Worktrees) begin(ctx context.Context, from, branch string, all []listed) (isNew bool, start string, err error) {
	for _, l := range all {
		if l.branch != "refs/heads/"+branch {
			continue
		}
		if _, err := os.Stat(l.path); err != nil {
			return false, "", refuse("branch %q is checked out at %s, which is gone", branch, l.path).
				WithHint("if it was removed by hand, run: git -C %s worktree prune", all[0].path)
		}
		return false, "", refuse("branch %q is checked out at %s already", branch, l.path).
			WithHint("dispatch there: fleetdeck dispatch %s", l.path)
	}
	_, err = commit(ctx, from, "refs/heads/"+branch)
	if err == nil {
		if w.From != "" {
			return false, "", refuse("branch %q is there already, so it cannot begin at %s", branch, w.From).
				WithHint("leave --from out to check it out as it is, or name another branch")
		}
		return false, "", nil
	}
	if !errors.Is(err, errNoCommit) {
		return false, "", err
	}
	rev := w.From
	if rev == "" {
		if err := plainHead(ctx, from, branch); err != nil {
			return false, "", err
		}
		rev = "HEAD"
	}
	start, err = commit(ctx, from, rev)
	if errors.Is(err, errNoCommit) {
		if w.From != "" {
			return false, "", refuse("--from: %q names no commit in %s", rev, from)
		}
		return false, "", refuse("%s has no commit yet, so no branch can begin there", from).WithHint("make a first commit")
	}
	return true, start, err
}

// plainHead refuses where a branch that begins at HEAD would hardly be what is wanted.
func plainHead(ctx context.Context, from, branch string) error {
	for _, at := range []string{"rebase-merge", "rebase-apply"} {
		out, err := git(ctx, from, "rev-parse", "--path-format=absolute", "--git-path", at)
		if err != nil {
			return err
		}
		if _, err := os.Stat(strings.TrimSuffix(string(out), "\n")); err == nil {
			return refuse("a rebase is going on in %s: its HEAD is somewhere in between", from).
				WithHint("finish it, or say where the branch begins with --from REV")
		}
	}
	out, err := git(ctx, from, "for-each-ref", "--count=1", "--format=%(refname:lstrip=2)", "refs/remotes/*/"+branch)
	if err != nil {
		return err
	}
	if remote := strings.TrimSpace(string(out)); remote != "" {
		return refuse("there is no branch %q here, but %s: a new one from HEAD would be another", branch, remote).
			WithHint("begin at it with --from %s, or name another branch", remote)
	}
	return nil
}

var errNoCommit = errors.New("no such commit")

// commit is the commit that rev names.
func commit(ctx context.Context, dir, rev string) (string, error) {
	out, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	var said *gitError
	if errors.As(err, &said) {
		return "", errNoCommit
	}
	return strings.TrimSpace(string(out)), err
}

// place is where the worktree of branch goes. It goes by the repository's main worktree, whichever of them was named.
func (w Worktrees) place(main listed, branch string) string {
	repo := main.path
	if main.bare {
		repo = strings.TrimSuffix(repo, ".git")
		if strings.HasPrefix(filepath.Base(main.path), ".") { // the bare repository is hidden in the project's directory
			repo = filepath.Dir(main.path)
		}
	}
	name := strings.ReplaceAll(branch, "/", "-")
	if w.Dir != "" {
		return filepath.Join(w.Dir, filepath.Base(repo), name)
	}
	return filepath.Join(repo+besideRepository, name)
}

// claim makes the directory at path, and notes those that it made on the way.
func (made *Worktree) claim(path string) error {
	if err := made.makeParents(filepath.Dir(path)); err != nil {
		made.dropParents()
		return refuse("make a worktree at %s: %w", path, err).WithHint("name another place with dir in [worktrees]")
	}
	err := os.Mkdir(path, 0o777)
	if errors.Is(err, fs.ErrExist) {
		hint := "name another branch, or move it away"
		if left, err := os.ReadDir(path); err == nil && len(left) == 0 {
			hint = "if nobody is making it at this moment, remove it: rmdir " + path
		}
		return refuse("%s, where the worktree of %q goes, is there already", path, made.Branch).WithHint("%s", hint)
	}
	if err != nil {
		made.dropParents()
		return refuse("make a worktree for %q: %w", made.Branch, err)
	}
	// The key is the path that git would name.
	if made.Path, err = filepath.EvalSymlinks(path); err == nil {
		made.File, err = Identify(made.Path)
	}
	return err
}

// unclaim removes the directory, in which nothing is yet.
func (made *Worktree) unclaim() error {
	if err := os.Remove(made.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the directory %s stays: %w", made.Path, err)
	}
	made.dropParents()
	return nil
}

func (made *Worktree) makeParents(dir string) error {
	err := os.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrNotExist) {
		if err := made.makeParents(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o777)
	}
	if err == nil {
		made.parents = append(made.parents, dir)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// dropParents removes the directories that were made on the way, as far as nothing else is in them by now.
func (made *Worktree) dropParents() {
	for i := len(made.parents) - 1; i >= 0; i-- {
		os.Remove(made.parents[i])
	}
	made.parents = nil
}

// checkOut makes the branch where it is new, and lets git fill the directory.
func (made *Worktree) checkOut(ctx context.Context) error {
	if made.NewBranch {
		args := []string{"branch", "--no-track", "--", made.Branch, made.start}
		if _, _, err := (call{dir: made.main, args: args, timeout: gitTimeout, trust: made.Trust}).run(ctx); err != nil {
			made.NewBranch = false // whoever else made it keeps it
			return made.refusal(err)
		}
	}
	_, _, err := call{
		dir: made.main, timeout: checkoutTimeout, alone: true, reads: true, trust: made.Trust,
		args: []string{"worktree", "add", "--quiet", "--", made.Path, made.Branch},
	}.run(ctx)
	if err != nil {
		return made.refusal(err)
	}
	t, err := Resolve(ctx, made.Path, false)
	if err != nil {
		return err
	}
	if t != made.Tree {
		return refuse("git names the new worktree %s, not %s", t.Path, made.Path)
	}
	return nil
}

// refusal puts git's own refusal in plain words.
func (made *Worktree) refusal(err error) error {
	var said *gitError
	if !errors.As(err, &said) {
		return fmt.Errorf("make a worktree for %q: %w", made.Branch, err)
	}
	r := refuse("no worktree for %q: git says: %s", made.Branch, said.said())
	switch {
	case strings.Contains(said.Stderr, "already checked out at"), strings.Contains(said.Stderr, "already used by worktree at"):
		r = r.WithHint("somebody works on this branch, or rebases or bisects it: name another")
	case strings.Contains(said.Stderr, "already registered worktree"):
		r = r.WithHint("if that was removed by hand, run: git -C %s worktree prune", made.main)
	case !made.Trust && (strings.Contains(said.Stderr, "unable to read") || strings.Contains(said.Stderr, "Could not reset")):
		r = r.WithHint("it may be a partial clone, which fetches: %s", trustHint)
	case strings.Contains(said.Stderr, ".lock': File exists"):
		r = r.WithHint("another git works in this repository: try again")
	}
	return r
}
