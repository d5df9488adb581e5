package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Remove undoes AddWorktree for a dispatch that came to nothing: the worktree goes if it is the one that was made and nothing
// in it is new, and with it a branch that was made for it and is where it began.
//
// Nobody else must be in it. The tree is first moved out of the way, so that nobody can come to it any more, and only then
// vacant is asked whether anybody has: if that fails, the tree is put back.
func (made *Worktree) Remove(ctx context.Context, vacant func() error) error {
	if err := made.remove(ctx, vacant); err != nil {
		return made.stays(err)
	}
	return nil
}

func (made *Worktree) remove(ctx context.Context, vacant func() error) error {
	unlock, err := lockRepository(ctx, made.main)
	if err != nil {
		return err
	}
	defer unlock()
	if file, err := Identify(made.Path); err != nil {
		return err
	} else if file != made.File {
		return errors.New("another directory is there by now")
	}
	out, err := os.MkdirTemp(filepath.Dir(made.Path), ".removing-")
	if err != nil {
		return err
	}
	defer os.Remove(out)
	aside := filepath.Join(out, filepath.Base(made.Path))
	if _, err := made.worktree(ctx, "move", "--", made.Path, aside); err != nil {
		return err
	}
	err = vacant()
	if err == nil {
		_, err = made.worktree(ctx, "remove", "--", aside)
	}
	if err != nil {
		_, back := made.worktree(ctx, "move", "--", aside, made.Path)
		return errors.Join(err, back)
	}
	os.Remove(out)
	made.dropParents()
	return made.dropBranch(ctx)
}

// abandon undoes what checkOut began and did not finish. Where it was broken off, what it wrote until then goes too: nobody was
// told of it yet.
func (made *Worktree) abandon(ctx context.Context, brokenOff bool) error {
	args := []string{"remove", "--", made.Path}
	if brokenOff {
		args = []string{"remove", "--force", "--force", "--", made.Path} // twice: git locks what it has not filled yet
	}
	if _, err := made.worktree(ctx, args...); err != nil {
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

func (made *Worktree) worktree(ctx context.Context, args ...string) ([]byte, error) {
	out, _, err := call{
		dir: made.main, timeout: checkoutTimeout, alone: true, args: append([]string{"worktree"}, args...),
	}.run(ctx)
	return out, err
}

func (made *Worktree) stays(err error) error {
	return fmt.Errorf("the new worktree %s stays (to remove it: git -C %s worktree remove %s): %w", made.Path, made.main, made.Path, err)
}
