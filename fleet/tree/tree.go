// Package tree says which tree a path is, finds trees, and knows their branch and dirt.
//
// Identity is decided by git itself, at the moment of the decision. What is only displayed is read cheaply, may be a
// moment old, and never takes a lock that an agent's own git could be waiting for.
package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"fleetdeck/fleet"
)

var (
	// ErrNotFound means that no directory is there.
	ErrNotFound = errors.New("no such directory")
	// ErrNotTree means that the directory is in no git working tree.
	ErrNotTree = errors.New("not in a git working tree")
	// ErrUnusable means that git knows the place, and no agent can work there.
	ErrUnusable = errors.New("not a tree to work in")
)

// Resolve gives the tree that path lies in: its canonical top level, and the directory that it names. With noGit, a directory
// outside git is a tree of its own. Any doubt is an error, and so is an empty path:
// it would be wherever the caller happens to be.
func Resolve(ctx context.Context, path string, noGit bool) (fleet.Tree, error) {
	if path == "" {
		return fleet.Tree{}, fmt.Errorf("tree: %w: its path is empty", ErrNotFound)
	}
	abs := path
	if !filepath.IsAbs(path) {
		cwd, err := os.Getwd()
		if err != nil {
			return fleet.Tree{}, fmt.Errorf("tree %s: %w", path, err)
		}
		abs = cwd + "/" + path // not cleaned: what ".." means is decided where the link before it leads
	}
	dir, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, os.ErrNotExist) {
		return fleet.Tree{}, fmt.Errorf("tree %s: %w", path, ErrNotFound)
	}
	if err != nil {
		return fleet.Tree{}, fmt.Errorf("tree %s: %w", path, err)
	}
	if info, err := os.Stat(dir); err != nil {
		return fleet.Tree{}, fmt.Errorf("tree %s: %w", path, err)
	} else if !info.IsDir() {
		return fleet.Tree{}, fmt.Errorf("tree %s: %w: it is a file", path, ErrNotFound)
	}

	top, err := toplevel(ctx, dir)
	if errors.Is(err, ErrNotTree) && noGit {
		top, err = dir, nil
	}
	if err != nil {
		return fleet.Tree{}, fmt.Errorf("tree %s: %w", path, err)
	}
	if !utf8.ValidString(top) {
		return fleet.Tree{}, fmt.Errorf("tree %q: %w: the path is not valid UTF-8, so it cannot be a key of the reservation file: rename it", top, ErrUnusable)
	}
	file, err := Identify(top)
	if err == nil && !inside(dir, file) {
		err = fmt.Errorf("%w: its configuration names another directory, %q, as its working tree: name that one", ErrUnusable, top)
	}
	if err != nil {
		return fleet.Tree{}, fmt.Errorf("tree %s: %w", path, err)
	}
	return fleet.Tree{Path: top, File: file}, nil
}

// inside reports whether dir, or a directory above it, is file: a repository's configuration can name any directory as its tree.
func inside(dir string, file fleet.FileID) bool {
	for {
		if id, err := Identify(dir); err == nil && id == file {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// Identify gives the device and inode of the directory at path.
func Identify(path string) (fleet.FileID, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("%s: the system tells no inode", path)
	}
	return fleet.FileID(fmt.Sprintf("%d:%d", uint64(st.Dev), uint64(st.Ino))), nil
}

// toplevel asks git, and puts its refusals in plain words.
func toplevel(ctx context.Context, dir string) (string, error) {
	out, err := git(ctx, dir, "rev-parse", "--path-format=absolute", "--show-toplevel")
	if err == nil {
		top := strings.TrimSuffix(string(out), "\n") // a path may hold newlines of its own
		if !filepath.IsAbs(top) {
			return "", fmt.Errorf("git named %q as the top level", top)
		}
		return top, nil
	}
	var gitErr *gitError
	if !errors.As(err, &gitErr) {
		return "", err
	}
	switch said := gitErr.Stderr; {
	case strings.Contains(said, "dubious ownership"):
		return "", fmt.Errorf("%w: git refuses it, since another user owns it: "+
			"if you trust it, run: git config --global --add safe.directory %s", ErrUnusable, dir)
	case strings.Contains(said, "must be run in a work tree"):
		return "", fmt.Errorf("%w: it is a bare repository or the inside of a .git directory: name a working tree", ErrUnusable)
	case strings.Contains(said, "not a git repository"):
		return "", fmt.Errorf("%w (use --no-git to let the directory be a tree of its own)", ErrNotTree)
	default:
		return "", gitErr
	}
}
