package tree

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Since is where the work in a tree began.
type Since struct {
	// Base is what the work is compared with, as it was named.
	Base string
	// Commit is the commit at which HEAD left it.
	Commit string
}

// ErrNoBase means that nothing says what a branch is to be compared with.
var ErrNoBase = errors.New("nothing to compare with")

// SinceBase finds where the HEAD of the tree at path left base. Where base is empty it is the first of these that there is: the
// branch's upstream, the default branch of origin, the branch of the main worktree, main, master; never the branch itself.
func SinceBase(ctx context.Context, path, base string) (Since, error) {
	bases := []string{base}
	if base == "" {
		bases = basesOf(ctx, path)
	}
	for _, name := range bases {
		at, err := commit(ctx, path, name)
		if errors.Is(err, errNoCommit) && base == "" {
			continue
		}
		if err != nil {
			return Since{}, fmt.Errorf("%s has no commit %q: %w", path, name, err)
		}
		out, err := git(ctx, path, "merge-base", "--", at, "HEAD")
		var said *gitError
		if errors.As(err, &said) && said.Stderr == "" {
			return Since{}, fmt.Errorf("HEAD of %s has no commit in common with %s: %w", path, shortRef(name), ErrNoBase)
		}
		if err != nil {
			return Since{}, fmt.Errorf("where HEAD of %s left %s: %w", path, shortRef(name), err)
		}
		return Since{shortRef(name), strings.TrimSpace(string(out))}, nil
	}
	return Since{}, fmt.Errorf("the branch of %s has no upstream, and there is no other that it can have begun from: %w", path, ErrNoBase)
}

// basesOf gives what the branch of the tree at path may have begun from, the likeliest first.
func basesOf(ctx context.Context, path string) []string {
	own := ""
	if out, err := git(ctx, path, "symbolic-ref", "--quiet", "HEAD"); err == nil {
		own = strings.TrimSpace(string(out))
	}
	var bases []string
	add := func(ref string) {
		if ref != "" && ref != own {
			bases = append(bases, ref)
		}
	}
	if own != "" {
		out, err := git(ctx, path, "for-each-ref", "--format=%(upstream)", "--", own)
		if err == nil {
			add(strings.TrimSpace(string(out)))
		}
	}
	add("refs/remotes/origin/HEAD")
	if all, err := listWorktrees(ctx, path); err == nil {
		add(all[0].branch)
	}
	add("refs/heads/main")
	add("refs/heads/master")
	return bases
}

// shortRef is a reference as people name it.
func shortRef(ref string) string {
	for _, prefix := range []string{"refs/heads/", "refs/remotes/"} {
		if short, ok := strings.CutPrefix(ref, prefix); ok {
			return short
		}
	}
	return ref
}

// maxCommits bounds what is said of the commits, in bytes.
const maxCommits = 64 << 10

// Diff gives what the tree at path holds since then, committed or not: a line that says since when, a line "commit ID SUBJECT" for
// each commit, the newest first, and then as [Diff] does.
func (s Since) Diff(ctx context.Context, path string, limit int) (string, error) {
	return s.diff(ctx, path, limit, "--patch")
}

// DiffStat is Diff with a line for each changed file instead of the patch.
func (s Since) DiffStat(ctx context.Context, path string, limit int) (string, error) {
	return s.diff(ctx, path, limit, "--stat=100")
}

func (s Since) diff(ctx context.Context, path string, limit int, how string) (string, error) {
	log := []string{"log", "--no-color", "--no-show-signature", "--format=commit %h %s", s.Commit + "..HEAD", "--"}
	commits, cut, err := call{dir: path, args: log, timeout: diffTimeout, limit: maxCommits}.run(ctx)
	if err != nil {
		return "", fmt.Errorf("commits of %s since %s: %w", path, s.Base, err)
	}
	text := string(commits)
	if cut {
		text = text[:strings.LastIndexByte(text, '\n')+1] + "commit … and more\n"
	}
	changes, err := diff(ctx, path, s.Commit, limit, how)
	if err != nil || text+changes == "" {
		return "", err
	}
	return fmt.Sprintf("since %s, at %.10s\n", s.Base, s.Commit) + text + changes, nil
}
