package tree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"fleetdeck/lockfile"
)

// listed is one worktree as git lists it.
type listed struct {
	path   string
	branch string // as "refs/heads/NAME", empty where HEAD is detached
	bare   bool
	locked bool
}

// listWorktrees gives the worktrees of the repository of the tree whose top is dir, the main one first.
func listWorktrees(ctx context.Context, dir string) ([]listed, error) {
	end := "\x00"
	out, err := git(ctx, dir, "worktree", "list", "--porcelain", "-z")
	var said *gitError
	if errors.As(err, &said) && strings.Contains(said.Stderr, "unknown switch") { // git before 2.36
		end = "\n"
		out, err = git(ctx, dir, "worktree", "list", "--porcelain")
	}
	if err != nil {
		return nil, err
	}
	var all []listed
	for record := range strings.SplitSeq(string(out), end) {
		if path, ok := strings.CutPrefix(record, "worktree "); ok {
			all = append(all, listed{path: path})
		}
		if len(all) == 0 {
			continue
		}
		last := &all[len(all)-1]
		if branch, ok := strings.CutPrefix(record, "branch "); ok {
			last.branch = branch
		}
		last.bare = last.bare || record == "bare"
		last.locked = last.locked || record == "locked" || strings.HasPrefix(record, "locked ")
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("git lists no worktree of %s", dir)
	}
	// Git names the main worktree by where the git directory is, which may be elsewhere, as a submodule's is.
	dirs, err := git(ctx, dir, "rev-parse", "--path-format=absolute", "--absolute-git-dir", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	if own, common, ok := strings.Cut(strings.TrimSuffix(string(dirs), "\n"), "\n"); ok && own == common {
		all[0].path = dir
	}
	return all, nil
}

// lockRepository waits until no other fleetdeck makes or removes a worktree of the repository: git itself trips over worktrees
// that another git is just adding ("failed to read .git/worktrees/NAME/commondir").
func lockRepository(ctx context.Context, dir string) (unlock func() error, err error) {
	out, err := git(ctx, dir, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	file, err := lockfile.Open(filepath.Join(strings.TrimSuffix(string(out), "\n"), "fleetdeck-worktrees"))
	if err != nil {
		return nil, err
	}
	held, err := file.Lock(ctx, checkoutTimeout)
	if errors.Is(err, lockfile.ErrBusy) {
		return nil, refuse("another dispatch makes a worktree of the same repository: %w", err).WithHint("try again")
	}
	if err != nil {
		return nil, err
	}
	return held.Unlock, nil
}
