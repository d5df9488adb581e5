package tree_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fleetdeck/fleet/tree"
)

// withSubmodule is a repository with a submodule "sub", which has one of its own, "deep".
func withSubmodule(t *testing.T) string {
	t.Helper()
	deep, inner, outer := repo(t), repo(t), repo(t)
	add := func(to, what, name string) {
		git(t, to, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", what, name)
		git(t, to, "commit", "--quiet", "-m", name)
	}
	add(inner, deep, "deep")
	add(outer, inner, "sub")
	return outer
}

// linkedDeep is a linked worktree of outer on a new branch, in which its submodules are checked out.
func linkedDeep(t *testing.T, outer, branch string) tree.Linked {
	t.Helper()
	w, err := tree.Worktrees{Dir: tempDir(t)}.AddWorktree(t.Context(), outer, branch)
	if err != nil {
		t.Fatal(err)
	}
	git(t, w.Path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
	l, err := tree.LinkedAt(t.Context(), w.Tree)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestAWorktreeWithSubmodulesIsRemovedOnlyIfNothingIsLost: git itself would refuse it always, or force it and look for nothing.
func TestAWorktreeWithSubmodulesIsRemovedOnlyIfNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
	outer := withSubmodule(t)
	for i, tt := range []struct {
		name    string
		prepare func(t *testing.T, at string)
		says    string // of a refusal; empty means that it is removed
		may     tree.Removal
	}{
		{name: "clean", prepare: func(*testing.T, string) {}},
		{name: "not checked out any more", prepare: func(t *testing.T, at string) {
			git(t, at, "submodule", "--quiet", "deinit", "--all")
		}},
		{name: "an untracked file", says: "changes in the submodule sub", may: tree.Removal{Uncommitted: true},
			prepare: func(t *testing.T, at string) { write(t, at+"/sub/new", "x") }},
		{name: "an untracked file deep within", says: "changes in the submodule deep in the submodule sub", may: tree.Removal{Uncommitted: true},
			prepare: func(t *testing.T, at string) { write(t, at+"/sub/deep/new", "x") }},
		{name: "a change that the submodule's settings hide", says: "changes in the submodule sub", may: tree.Removal{Uncommitted: true},
			prepare: func(t *testing.T, at string) {
				git(t, at, "config", "submodule.sub.ignore", "all")
				write(t, at+"/sub/file", "x")
			}},
		{name: "another commit checked out", says: "another commit in the submodule sub", may: tree.Removal{Uncommitted: true, Unmerged: true},
			prepare: func(t *testing.T, at string) {
				git(t, at+"/sub", "branch", "own", git(t, at+"/sub", "commit-tree", "-m", "own", "HEAD^{tree}"))
				git(t, at+"/sub", "checkout", "--quiet", "--detach", "own")
			}},
		{name: "a staged commit", says: "changes", may: tree.Removal{Uncommitted: true},
			prepare: func(t *testing.T, at string) {
				git(t, at+"/sub", "checkout", "--quiet", "HEAD~1")
				git(t, at, "add", "sub")
			}},
		{name: "a branch with a commit", says: "submodule sub", may: tree.Removal{Unmerged: true},
			prepare: func(t *testing.T, at string) {
				was := git(t, at+"/sub", "rev-parse", "HEAD")
				git(t, at+"/sub", "checkout", "--quiet", "-b", "own")
				git(t, at+"/sub", "commit", "--quiet", "--allow-empty", "-m", "own")
				git(t, at+"/sub", "checkout", "--quiet", "--detach", was)
			}},
		{name: "a stash deep within", says: "deep", may: tree.Removal{Unmerged: true},
			prepare: func(t *testing.T, at string) {
				write(t, at+"/sub/deep/file", "x")
				git(t, at+"/sub/deep", "stash", "--quiet")
			}},
		{name: "a branch of one that is not checked out any more", says: "submodule sub", may: tree.Removal{Unmerged: true},
			prepare: func(t *testing.T, at string) {
				git(t, at+"/sub", "branch", "own", git(t, at+"/sub", "commit-tree", "-m", "own", "HEAD^{tree}"))
				git(t, at, "submodule", "--quiet", "deinit", "--all")
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			branch := fmt.Sprint("x", i)
			l := linkedDeep(t, outer, branch)
			tt.prepare(t, l.Path)
			t.Parallel() // git itself does not wait for the configuration that all worktrees share
			asked := ""
			vacantAt := func(at string) error { asked = at; return nil }
			err := l.Remove(t.Context(), tree.Removal{}, vacantAt)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) || !exists(l.Path) {
					t.Fatalf("%v, want a refusal with %q", err, tt.says)
				}
				if got := git(t, l.Path, "rev-parse", "--show-toplevel"); got != l.Path {
					t.Errorf("it is at %s", got)
				}
				err = l.Remove(t.Context(), tt.may, vacantAt)
			}
			if err != nil || exists(l.Path) || asked == l.Path {
				t.Errorf("%v; asked at %s", err, asked)
			}
			if got := worktrees(t, outer); slices.Contains(got, l.Path) {
				t.Errorf("worktrees %q", got)
			}
			if left, _ := filepath.Glob(filepath.Dir(l.Path) + "/.*"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			git(t, outer, "rev-parse", "--verify", "refs/heads/"+branch) // it stays
			git(t, outer+"/sub", "status")                               // and so do the others' submodules
		})
	}
}

// TestALaunchThatFailsTakesAWorktreeWithSubmodulesBack: also where a hook has checked them out.
func TestALaunchThatFailsTakesAWorktreeWithSubmodulesBack(t *testing.T) {
	outer := withSubmodule(t)
	for name, checkOut := range map[string]bool{"bare": false, "checked-out": true} {
		t.Run(name, func(t *testing.T) {
			w, err := tree.Worktrees{}.AddWorktree(t.Context(), outer, name)
			if err != nil {
				t.Fatal(err)
			}
			if checkOut {
				git(t, w.Path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
				write(t, w.Path+"/sub/new", "x")
				if err := w.Remove(t.Context(), vacant); err == nil || !exists(w.Path+"/sub/new") {
					t.Fatalf("%v: removed with what is new in it", err)
				}
				git(t, w.Path+"/sub", "clean", "--quiet", "-f")
			}
			if err := w.Remove(t.Context(), vacant); err != nil || exists(w.Path) {
				t.Error(err)
			}
			if got := branches(t, outer); slices.Contains(got, name) {
				t.Errorf("branches %q", got)
			}
		})
	}
}
