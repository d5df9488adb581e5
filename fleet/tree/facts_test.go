package tree_test

import (
	"path/filepath"
	"testing"

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
