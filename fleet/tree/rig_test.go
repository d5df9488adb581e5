package tree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet/tree"
)

// git runs git in dir as a person would, with no configuration but the repository's.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(tree.Environ(os.Environ()), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=kim", "GIT_AUTHOR_EMAIL=kim@example.org", "GIT_COMMITTER_NAME=kim", "GIT_COMMITTER_EMAIL=kim@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// tempDir is t.TempDir as git would name it.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// emptyRepo makes a repository without a commit, named api, in a directory of its own.
func emptyRepo(t testing.TB) string {
	t.Helper()
	repo := filepath.Join(tempDir(t), "api")
	git(t, ".", "init", "--quiet", "--initial-branch=main", repo)
	return repo
}

// repo makes a repository with one commit.
func repo(t testing.TB) string {
	t.Helper()
	repo := emptyRepo(t)
	write(t, filepath.Join(repo, "file"), "one\n")
	git(t, repo, "add", ".")
	git(t, repo, "commit", "--quiet", "-m", "one")
	return repo
}

// branches gives the branches of a repository.
func branches(t testing.TB, dir string) []string {
	t.Helper()
	return strings.Fields(git(t, dir, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"))
}

// worktrees gives the paths of the worktrees of a repository.
func worktrees(t testing.TB, dir string) (paths []string) {
	t.Helper()
	for line := range strings.Lines(git(t, dir, "worktree", "list", "--porcelain")) {
		if path, ok := strings.CutPrefix(line, "worktree "); ok {
			paths = append(paths, strings.TrimSpace(path))
		}
	}
	return paths
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
