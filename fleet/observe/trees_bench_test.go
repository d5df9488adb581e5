package observe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

// forest makes n repositories of a hundred files each, in directories of fifty.
func forest(b *testing.B, n int) (root string, rows []fleet.TreeRow) {
	b.Helper()
	run := func(dir string, args ...string) {
		b.Helper()
		c := exec.Command(args[0], args[1:]...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x")
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	root = b.TempDir()
	first := filepath.Join(root, "00", "000")
	for i := range 100 {
		dir := filepath.Join(first, fmt.Sprintf("d%d", i%10))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, 1000), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	run(first, "git", "init", "--quiet", "--template=")
	run(first, "git", "add", ".")
	run(first, "git", "commit", "--quiet", "-m", "one")
	for i := range n {
		path := filepath.Join(root, fmt.Sprintf("%02d", i/50), fmt.Sprintf("%03d", i))
		if i > 0 {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				b.Fatal(err)
			}
			run(root, "cp", "-a", first, path)
			run(path, "git", "status") // the index is of the copy from here on
		}
		rows = append(rows, fleet.TreeRow{Tree: path})
	}
	return root, rows
}

// BenchmarkForest is what 500 trees cost, beside a git status in each of them: the yardstick, in the same run.
func BenchmarkForest(b *testing.B) {
	root, rows := forest(b, 500)
	b.Run("discovery/first", func(b *testing.B) {
		for b.Loop() {
			if got := tree.Discover(root); len(got) != len(rows) {
				b.Fatalf("%d trees", len(got))
			}
		}
	})
	b.Run("discovery/again", func(b *testing.B) {
		finder := tree.NewFinder(nil)
		finder.Find(root)
		for b.Loop() {
			if got := finder.Find(root); len(got) != len(rows) {
				b.Fatalf("%d trees", len(got))
			}
		}
	})
	b.Run("status/git", func(b *testing.B) {
		for b.Loop() {
			for _, row := range rows {
				c := exec.Command("git", "status", "--porcelain=v2", "--branch")
				c.Dir = row.Tree
				if err := c.Run(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("status/ours", func(b *testing.B) {
		for b.Loop() {
			fillNow(b.Context(), rows)
		}
		if rows[0].Branch == "" || rows[0].Dirty {
			b.Fatalf("%+v", rows[0])
		}
	})
	b.Run("refresh", func(b *testing.B) { // a look whether anything changed in each
		for b.Loop() {
			for _, row := range rows {
				if headStampOf(row.Tree) == (headStamp{}) {
					b.Fatal(row.Tree)
				}
			}
		}
	})
}
