package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"fleetdeck/fleet"
)

// Remove undoes AddWorktree for a dispatch that came to nothing: the worktree goes if it is the one that was made and nothing
// in it is new, and with it a branch that was made for it and is where it began.
//
// Nobody else must be in it. The tree is first moved out of the way, so that nobody can come to it any more, and only then
// vacant is asked, with the place where it is for the moment, whether anybody has: if that fails, the tree is put back.
func (made *Worktree) Remove(ctx context.Context, vacant func(at string) error) error {
	if err := made.remove(ctx, vacant); err != nil {
		return made.stays(err)
	}
	return nil
}

// Made is what another process must know to undo it.
func (made *Worktree) Made() *fleet.MadeWorktree {
	return &fleet.MadeWorktree{Main: made.main, Branch: made.Branch, NewBranch: made.NewBranch, Start: made.start, Parents: made.parents}
}

// Remade is the worktree t that another process made.
func Remade(t fleet.Tree, m fleet.MadeWorktree) *Worktree {
	made := &Worktree{Tree: t, Branch: m.Branch, NewBranch: m.NewBranch, main: m.Main, start: m.Start}
	for _, dir := range m.Parents {
		if strings.HasPrefix(t.Path, dir+"/") {
			made.parents = append(made.parents, dir)
		}
	}
	return made
}

func (made *Worktree) remove(ctx context.Context, vacant func(at string) error) error {
	if err := takeAway(ctx, made.repository(), made.Tree, false, func(aside string) error {
		return errors.Join(vacant(aside), nothingNew(ctx, aside, made.Trust))
	}); err != nil {
		return err
	}
	made.dropParents()
	return made.dropBranch(ctx)
}

// repository is where git is run to change the worktrees of a repository.
type repository struct {
	main  string // a directory of it that stays
	trust bool
}

func (made *Worktree) repository() repository { return repository{made.main, made.Trust} }

// takeAway removes the linked worktree t of the repository, with what is new in it only by force. It is moved aside before
// vacant is asked about it at its new place, and put back if that fails.
func takeAway(ctx context.Context, r repository, t fleet.Tree, force bool, vacant func(aside string) error) error {
	unlock, err := lockRepository(ctx, r.main)
	if err != nil {
		return err
	}
	defer unlock()
	ctx = context.WithoutCancel(ctx) // what has begun is carried through, or undone
	if file, err := Identify(t.Path); err != nil {
		return err
	} else if file != t.File {
		return errors.New("another directory is there by now")
	}
	out, err := os.MkdirTemp(filepath.Dir(t.Path), ".removing-")
	if err != nil {
		return err
	}
	defer os.Remove(out)
	if gitDir, ok := findGitDir(t.Path); ok {
		if subs, err := submodules(ctx, t.Path, gitDir); err != nil {
			return err
		} else if _, kept := os.Lstat(filepath.Join(gitDir, "modules")); len(subs) > 0 || kept == nil {
			return takeAwayDeep(ctx, r, t, out, vacant)
		}
	}
	aside := filepath.Join(out, filepath.Base(t.Path))
	if _, err := r.worktree(ctx, "move", "--", t.Path, aside); err != nil {
		return err
	}
	if err = vacant(aside); err == nil {
		args := []string{"remove", "--", aside}
		if force {
			args = []string{"remove", "--force", "--", aside}
		}
		_, err = r.worktree(ctx, args...)
	}
	if err != nil {
		_, back := r.worktree(ctx, "move", "--", aside, t.Path)
		return errors.Join(err, back)
	}
	return nil
}

// takeAwayDeep is takeAway of a tree with submodules, which git does not move, and removes by force only. What
// that would lose is vacant's to look for, once the tree is at the empty directory out: beside where it was, since submodules find
// their repository by a relative path.
func takeAwayDeep(ctx context.Context, r repository, t fleet.Tree, out string, vacant func(aside string) error) error {
	if err := syscall.Rename(t.Path, out); err != nil { // os.Rename takes no directory's place
		return fmt.Errorf("move %s aside: %w", t.Path, err)
	}
	err := vacant(out)
	if err == nil {
		_, err = r.worktree(ctx, "remove", "--force", "--", t.Path) // what git keeps of it; its files are not there
	}
	if err != nil {
		return errors.Join(err, os.Rename(out, t.Path))
	}
	return os.RemoveAll(out)
}

// nothingNew refuses where the tree at path, or a submodule of it, holds what is nowhere else. Of its own commits its branch takes care.
func nothingNew(ctx context.Context, path string, trust bool) error {
	gitDir, ok := findGitDir(path)
	if !ok {
		return errors.New("it is no worktree any more")
	}
	ctx = context.WithoutCancel(ctx)
	if what, err := uncommitted(ctx, path, gitDir, trust); err != nil {
		return err
	} else if what != "" {
		return fmt.Errorf("it holds uncommitted work: %s", what)
	}
	if sub, err := unpushed(ctx, path, gitDir); err != nil {
		return err
	} else if sub != "" {
		return fmt.Errorf("its submodule %s holds commits that none of its remotes has", sub)
	}
	return nil
}

// abandon undoes what checkOut began and did not finish. Where it was broken off, what it wrote until then goes too: nobody was
// told of it yet.
func (made *Worktree) abandon(ctx context.Context, brokenOff bool) error {
	args := []string{"remove", "--", made.Path}
	if brokenOff {
		args = []string{"remove", "--force", "--force", "--", made.Path} // twice: git locks what it has not filled yet
	}
	if _, err := made.repository().worktree(ctx, args...); err != nil {
		// Where git has not come to it, or has tidied up itself, the directory is empty or gone.
		if rerr := os.Remove(made.Path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			return made.stays(err)
		}
	}
	made.dropParents()
	return made.dropBranch(ctx)
}

// dropBranch removes the branch that was made, unless somebody uses it by now.
func (made *Worktree) dropBranch(ctx context.Context) error {
	if !made.NewBranch {
		return nil
	}
	all, err := listWorktrees(ctx, made.main)
	if err != nil {
		return fmt.Errorf("branch %q stays: %w", made.Branch, err)
	}
	for _, l := range all {
		if l.branch == "refs/heads/"+made.Branch {
			return fmt.Errorf("branch %q stays: it is checked out at %s", made.Branch, l.path)
		}
	}
	if _, err := git(ctx, made.main, "update-ref", "-d", "refs/heads/"+made.Branch, made.start); err != nil {
		return fmt.Errorf("branch %q stays: %w", made.Branch, err)
	}
	return nil
}

// worktree runs git worktree in the repository.
func (r repository) worktree(ctx context.Context, args ...string) ([]byte, error) {
	out, _, err := call{
		dir: r.main, timeout: checkoutTimeout, alone: true, reads: true, trust: r.trust, args: append([]string{"worktree"}, args...),
	}.run(ctx)
	return out, err
}

func (made *Worktree) stays(err error) error {
	return fmt.Errorf("the new worktree %s stays (to remove it: git -C %s worktree remove %s): %w", made.Path, made.main, made.Path, err)
}
