package tree_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet/tree"
)

// workedOn makes a repository and a linked worktree of it on a branch with one commit of its own, and a change that is not committed.
func workedOn(t *testing.T) (main, side string) {
	t.Helper()
	main = repo(t)
	side = filepath.Join(filepath.Dir(main), "side")
	git(t, main, "worktree", "add", "--quiet", "-b", "side", side)
	write(t, filepath.Join(side, "made"), "by the agent\n")
	git(t, side, "add", ".")
	git(t, side, "commit", "--quiet", "-m", "Make it\n\nwith a body")
	write(t, filepath.Join(side, "file"), "changed\n")
	write(t, filepath.Join(main, "later"), "")
	git(t, main, "add", ".")
	git(t, main, "commit", "--quiet", "-m", "meanwhile")
	return main, side
}

func TestDiffSinceTheBaseHoldsWhatTheBranchAddedAndNothingElse(t *testing.T) {
	main, side := workedOn(t)
	root := git(t, main, "rev-parse", "HEAD~1")
	for _, base := range []string{"", "main", root} {
		since, err := tree.SinceBase(t.Context(), side, base)
		if err != nil {
			t.Fatal(err)
		}
		if since.Commit != root {
			t.Errorf("base %q: it began at %s, want %s", base, since.Commit, root)
		}
		diff := must(t)(since.Diff(t.Context(), side, 0))
		for _, want := range []string{"since ", "\ncommit ", " Make it\n", "+by the agent\n", "-one\n+changed\n"} {
			if !strings.Contains(diff, want) {
				t.Errorf("base %q: no %q in\n%s", base, want, diff)
			}
		}
		if strings.Contains(diff, "meanwhile") || strings.Contains(diff, "later") || strings.Contains(diff, "body") {
			t.Errorf("base %q: more than the branch added:\n%s", base, diff)
		}
		stat := must(t)(since.DiffStat(t.Context(), side, 0))
		if !strings.Contains(stat, " made | 1 +") || strings.Contains(stat, "+by the agent") {
			t.Errorf("stat:\n%s", stat)
		}
	}
	since, _ := tree.SinceBase(t.Context(), side, "HEAD")
	git(t, side, "checkout", "--quiet", "file")
	if diff := must(t)(since.Diff(t.Context(), side, 0)); diff != "" {
		t.Errorf("nothing was changed since HEAD, and it says %q", diff)
	}
}

func TestBaseOfABranchIsItsUpstreamBeforeAnythingElse(t *testing.T) {
	main, side := workedOn(t)
	head := func(dir string) string { return git(t, dir, "rev-parse", "HEAD") }
	base := func(dir string) string {
		t.Helper()
		since, err := tree.SinceBase(t.Context(), dir, "")
		if err != nil {
			t.Fatal(err)
		}
		return since.Base + " " + since.Commit
	}
	if got, want := base(side), "main "+git(t, main, "rev-parse", "HEAD~1"); got != want {
		t.Errorf("without an upstream: %s, want %s", got, want)
	}
	git(t, main, "branch", "pushed", head(side))
	git(t, side, "branch", "--quiet", "--set-upstream-to=pushed")
	if got, want := base(side), "pushed "+head(side); got != want {
		t.Errorf("with an upstream: %s, want %s", got, want)
	}

	_, err := tree.SinceBase(t.Context(), main, "") // the only branch that others begin from
	if !errors.Is(err, tree.ErrNoBase) {
		t.Errorf("main: %v", err)
	}
	clone := filepath.Join(tempDir(t), "clone")
	git(t, ".", "clone", "--quiet", main, clone)
	git(t, clone, "checkout", "--quiet", "--detach")
	if got, want := base(clone), "origin/HEAD "+head(main); got != want {
		t.Errorf("a clone with a detached HEAD: %s, want %s", got, want)
	}
	git(t, main, "checkout", "--quiet", "--orphan", "alone")
	git(t, main, "commit", "--quiet", "--allow-empty", "-m", "another beginning")
	if _, err := tree.SinceBase(t.Context(), main, "main"); !errors.Is(err, tree.ErrNoBase) {
		t.Errorf("no common commit: %v", err)
	}
	if _, err := tree.SinceBase(t.Context(), main, "--all"); err == nil || !strings.Contains(err.Error(), `"--all"`) {
		t.Errorf("a base that is none: %v", err)
	}
}
