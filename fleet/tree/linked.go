package tree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"fleetdeck/fleet"
)

// Linked is a linked worktree, as its repository lists it.
type Linked struct {
	fleet.Tree
	// Main is the repository's main worktree, or the repository itself where that is bare.
	Main string
	// Branch is empty where HEAD is detached.
	Branch string
	// Missing says that the directory is gone, Locked that somebody locked the worktree with git.
	Missing, Locked bool

	// Trust lets git run what the repository names, as [Worktrees] says.
	Trust bool

	mainBranch string // the ref that the main worktree is on
}

// Work is what a linked worktree holds that might be found nowhere else.
type Work struct {
	// Head is the commit that it stands on, empty where there is none yet.
	Head string
	// Uncommitted says what is not committed: "changes", or what goes on in it, such as "a rebase". Empty means nothing.
	Uncommitted string
	// MergedInto is another branch, here or of a remote, that has all its commits: the main worktree's, where that has. Empty means
	// that none does.
	MergedInto string
	// Unpushed is a submodule that has commits which none of its remotes has. Empty means that none does.
	Unpushed string
}

// Repository names the repository of the tree at path: its main worktree, or the repository itself where that is bare. It asks
// no git, and is not found for a directory outside git.
func Repository(path string) (repo string, ok bool) {
	gitDir, ok := findGitDir(path)
	if !ok {
		return "", false
	}
	return repositoryOf(path, gitDir), true
}

// LinkedOf gives the linked worktrees of the repository that dir belongs to.
func LinkedOf(ctx context.Context, dir string) ([]Linked, error) {
	all, err := listWorktrees(ctx, dir)
	if err != nil {
		return nil, err
	}
	linked := make([]Linked, 0, len(all)-1)
	for _, w := range all[1:] {
		l := Linked{Tree: fleet.Tree{Path: w.path}, Main: all[0].path, Branch: strings.TrimPrefix(w.branch, "refs/heads/"), Locked: w.locked, mainBranch: all[0].branch}
		if l.File, err = Identify(w.path); err != nil {
			l.Missing = true
		} else if real, err := filepath.EvalSymlinks(w.path); err == nil {
			l.Path = real
		}
		linked = append(linked, l)
	}
	return linked, nil
}

// LinkedAt gives the linked worktree that t is. The main worktree of a repository is refused.
func LinkedAt(ctx context.Context, t fleet.Tree) (Linked, error) {
	dirs, err := git(ctx, t.Path, "rev-parse", "--path-format=absolute", "--absolute-git-dir", "--git-common-dir")
	if err != nil {
		return Linked{}, err
	}
	if own, common, ok := strings.Cut(strings.TrimSuffix(string(dirs), "\n"), "\n"); !ok || own == common {
		return Linked{}, refuse("%s is the main worktree of its repository", t.Path).WithHint("only linked worktrees are removed: see 'fleetdeck worktree ls'")
	}
	all, err := LinkedOf(ctx, t.Path)
	if err != nil {
		return Linked{}, err
	}
	for _, l := range all {
		if l.Same(t) {
			return l, nil
		}
	}
	return Linked{}, refuse("git does not list %s among its worktrees", t.Path).WithHint("see: git -C %s worktree list", t.Path)
}

// inProgress is what a worktree keeps of its own while something goes on in it.
var inProgress = []struct{ file, what string }{
	{"rebase-merge", "a rebase"}, {"rebase-apply", "a rebase"}, {"MERGE_HEAD", "a merge"},
	{"CHERRY_PICK_HEAD", "a cherry-pick"}, {"REVERT_HEAD", "a revert"}, {"BISECT_LOG", "a bisection"},
}

// Look looks what l holds. Files that git ignores are nothing to it.
func (l Linked) Look(ctx context.Context) (Work, error) { return l.lookAt(ctx, l.Path) }

// lookAt is Look where l is at path for the moment.
func (l Linked) lookAt(ctx context.Context, path string) (Work, error) {
	var w Work
	gitDir, ok := findGitDir(path)
	if !ok {
		return w, refuse("%s is no worktree any more", path)
	}
	var err error
	if w.Uncommitted, err = uncommitted(ctx, path, gitDir, l.Trust); err != nil {
		return w, err
	}
	if w.Unpushed, err = unpushed(ctx, path, gitDir); err != nil {
		return w, err
	}
	if w.Head, err = commit(ctx, path, "HEAD"); errors.Is(err, errNoCommit) {
		w.MergedInto = "nothing" // there is no commit to lose
		return w, nil
	}
	if err != nil {
		return w, err
	}
	out, err := git(ctx, path, "for-each-ref", "--contains", w.Head, "--format=%(refname)", "refs/heads", "refs/remotes")
	if err != nil {
		return w, err
	}
	for ref := range strings.Lines(string(out)) {
		if ref = strings.TrimSuffix(ref, "\n"); ref != "refs/heads/"+l.Branch && (w.MergedInto == "" || ref == l.mainBranch) {
			w.MergedInto = strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/remotes/")
		}
	}
	return w, nil
}

// Removal is what may be lost by removing a linked worktree.
type Removal struct {
	Uncommitted, Unmerged bool
	// Branch says that its branch goes too.
	Branch bool
}

// Allows refuses where w is more than may be lost.
func (r Removal) Allows(l Linked, w Work) error {
	if w.Uncommitted != "" && !r.Uncommitted {
		return refuse("%s holds uncommitted work: %s", l.Path, w.Uncommitted).
			WithHint("see it with 'fleetdeck diff %s'; --force-uncommitted lets it be lost", l.Path)
	}
	if w.Unpushed != "" && !r.Unmerged {
		return refuse("%s holds commits in its submodule %s that none of that one's remotes has", l.Path, w.Unpushed).
			WithHint("push them; --force-unmerged removes the worktree all the same, and they are lost")
	}
	if w.MergedInto == "" && !r.Unmerged {
		fate := "its branch stays"
		if r.Branch || l.Branch == "" {
			fate = "they are lost"
		}
		return refuse("%s holds commits that no other branch has", l.Path).
			WithHint("merge or push them; --force-unmerged removes the worktree all the same: %s", fate)
	}
	return nil
}

// Remove removes the worktree l, as far as may allows it. The branch is never touched unless may says so.
//
// The tree is first moved out of the way, so that nobody can come to it any more; only then vacant is asked, with the place where
// it is for the moment, whether anybody is in it, and it is looked once more what it holds. If either says no, it is put back.
func (l Linked) Remove(ctx context.Context, may Removal, vacant func(at string) error) error {
	if l.Locked {
		return refuse("%s is locked", l.Path).WithHint("unlock it: git -C %s worktree unlock %s", l.Main, l.Path)
	}
	var w Work
	check := func(at string) (err error) {
		if w, err = l.lookAt(ctx, at); err == nil {
			err = may.Allows(l, w)
		}
		return errors.Join(err, vacant(at))
	}
	if err := check(l.Path); err != nil {
		return err
	}
	if err := takeAway(ctx, repository{l.Main, l.Trust}, l.Tree, may.Uncommitted, check); err != nil {
		return err
	}
	if dir := filepath.Dir(l.Path); strings.HasSuffix(dir, besideRepository) {
		os.Remove(dir) // once it is empty; AddWorktree made it
	}
	if !may.Branch || l.Branch == "" {
		return nil
	}
	made := Worktree{Branch: l.Branch, NewBranch: true, main: l.Main, start: w.Head}
	return made.dropBranch(context.WithoutCancel(ctx))
}
