package tree_test

import (
	"path/filepath"
	"testing"
	"time"

	"fleetdeck/fleet/tree"
)

// What groups the trees of a repository must be one name for all of them, however git wrote it down.
func TestLinkedWorktreesBelongToTheRepositoryOfTheMainOne(t *testing.T) {
	main := repo(t)
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, main, "worktree", "add", "-q", "-b", "feature", linked)
	bare := filepath.Join(t.TempDir(), "bare.git")
	git(t, main, "clone", "-q", "--bare", main, bare)
	ofBare := filepath.Join(t.TempDir(), "of-bare")
	git(t, bare, "worktree", "add", "-q", "-b", "other", ofBare)
	for path, want := range map[string]string{main: main, linked: main, ofBare: bare} {
		if got := tree.FactsNow(t.Context(), path).Repo; got != want {
			t.Errorf("the repository of %s is %s, want %s", path, got, want)
		}
		if got := tree.NewObserver().Facts(t.Context(), path, nil).Repo; got != want {
			t.Errorf("as observed, the repository of %s is %s, want %s", path, got, want)
		}
	}
}

// Dirt that neither HEAD nor the index tells of is believed for a while, unless somebody doubts it.
func TestDoubtedFactsAreLookedAtAgain(t *testing.T) {
	path := repo(t)
	o := tree.NewObserver()
	changed := make(chan struct{}, 8)
	tell := func() { changed <- struct{}{} }
	write(t, filepath.Join(path, "file"), "two\n")
	await := func(dirty bool) {
		t.Helper()
		o.Facts(t.Context(), path, tell)
		select {
		case <-changed:
		case <-time.After(30 * time.Second):
			t.Fatal("nothing changed")
		}
		if got := o.Facts(t.Context(), path, tell).Dirty; got != dirty {
			t.Fatalf("dirty: %t, want %t", got, dirty)
		}
	}
	await(true)
	write(t, filepath.Join(path, "file"), "one\n")
	if !o.Facts(t.Context(), path, tell).Dirty {
		t.Fatal("it was looked at again at once: the test shows nothing")
	}
	o.Doubt(path)
	await(false)
}
