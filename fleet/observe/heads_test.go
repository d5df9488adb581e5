package observe

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

const patience = 30 * time.Second

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(tree.Environ(os.Environ()), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=kim", "GIT_AUTHOR_EMAIL=kim@example.org", "GIT_COMMITTER_NAME=kim", "GIT_COMMITTER_EMAIL=kim@example.org")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// TestWhatGitChangesIsSeenWithoutATurn never lets a tree have its turn: only what is told of it can show.
func TestWhatGitChangesIsSeenWithoutATurn(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	main, linked := filepath.Join(dir, "main"), filepath.Join(dir, "linked")
	git(t, dir, "init", "--quiet", "--initial-branch=main", main)
	git(t, main, "commit", "--quiet", "--allow-empty", "-m", "one")
	git(t, main, "worktree", "add", "--quiet", linked)
	f := newFacts()
	f.heads = newHeads(t.Context(), f.moved)
	if f.heads.notify == nil {
		t.Skip("this system has no more watches to give: trees are looked at in turns")
	}
	rows := []fleet.TreeRow{{Tree: main}, {Tree: linked}}
	await := func(what string, ok func() bool) {
		t.Helper()
		f.fill(t.Context(), rows)
		for give := time.After(patience); !ok(); {
			select {
			case <-f.changed:
				f.fill(t.Context(), rows)
			case <-give:
				t.Fatalf("%s: not within %s: %+v", what, patience, rows)
			}
		}
	}
	await("both are known", func() bool { return rows[0].Branch == "main" && rows[1].Branch == "linked" })
	git(t, main, "checkout", "--quiet", "-b", "other")
	git(t, linked, "checkout", "--quiet", "--detach")
	await("both have moved", func() bool { return rows[0].Branch == "other" && len(rows[1].Branch) == 7 })
	if err := os.WriteFile(filepath.Join(linked, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, linked, "add", ".")
	await("what is added is dirt", func() bool { return rows[1].Dirty && !rows[0].Dirty })
	git(t, linked, "commit", "--quiet", "-m", "two")
	await("what is committed is none", func() bool { return !rows[1].Dirty })

	// Another repository in the same place is watched too.
	if err := os.RemoveAll(main); err != nil {
		t.Fatal(err)
	}
	await("it is gone", func() bool { return rows[0].Missing })
	git(t, dir, "init", "--quiet", "--initial-branch=new", main)
	f.look(t.Context(), main) // as its turn would have it
	git(t, main, "symbolic-ref", "HEAD", "refs/heads/newer")
	await("the new one has moved", func() bool { return rows[0].Branch == "newer" })
}

// TestATreeThatCannotBeWatchedHasItsTurn is the same without any watch.
func TestATreeThatCannotBeWatchedHasItsTurn(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "--quiet", "--initial-branch=main", dir)
	f := newFacts()
	rows := []fleet.TreeRow{{Tree: dir}}
	f.fill(t.Context(), rows)
	git(t, dir, "symbolic-ref", "HEAD", "refs/heads/other")
	f.step(t.Context(), []fleet.Tree{{Path: dir}}, newIndex(look{}))
	if f.fill(t.Context(), rows); rows[0].Branch != "other" {
		t.Errorf("%+v", rows)
	}
	// One that is watched has its turn too, only more rarely.
	f.known[dir].watched = true
	git(t, dir, "symbolic-ref", "HEAD", "refs/heads/third")
	for range watchedEvery {
		f.step(t.Context(), []fleet.Tree{{Path: dir}}, newIndex(look{}))
	}
	if f.fill(t.Context(), rows); rows[0].Branch != "third" {
		t.Errorf("%+v", rows)
	}
}
