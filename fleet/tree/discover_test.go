package tree_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet/tree"
)

// mkdirs makes directories below root.
func mkdirs(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDiscoveryFindsTreesAndPassesByWhatIsIgnored(t *testing.T) {
	root := tempDir(t)
	mkdirs(t, root, "a/.git", "a/inner/.git", "b/c/.git", "node_modules/x/.git", "b/node_modules/y/.git", "third_party/z/.git", "old/o/.git",
		"b/old/o/.git", "x.tmp/p/.git", "1/2/3/4/5/.git", "1/2/3/4/5b/6/.git", "unreadable/u/.git")
	write(t, filepath.Join(root, "linked", ".git"), "gitdir: elsewhere\n")
	if err := os.Symlink(filepath.Join(root, "b"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(tempDir(t), "top")
	if err := os.Symlink(root, top); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		os.RemoveAll(filepath.Join(root, "unreadable")) // root reads all
	} else if err := os.Chmod(filepath.Join(root, "unreadable"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(root, "unreadable"), 0o755) })
	want := []string{"1/2/3/4/5", "a", "b/c", "b/old/o", "linked"}
	for i := range want {
		want[i] = filepath.Join(root, want[i])
	}
	got := tree.NewFinder([]string{"third_party", "*.tmp", filepath.Join(root, "old")}).Find(root, top, filepath.Join(root, "b"), "/no/such/root")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := tree.Discover(filepath.Join(root, "a")); !slices.Equal(got, want[1:2]) {
		t.Errorf("a root that is a tree itself: %q", got)
	}
}

// TestAnotherSearchFindsWhatAFirstOneWould changes directories at random, and holds a finder that remembers against one that does not.
func TestAnotherSearchFindsWhatAFirstOneWould(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	root := tempDir(t)
	finder := tree.NewFinder(nil)
	name := func() string {
		dir := root
		for range 1 + random.IntN(4) {
			dir = filepath.Join(dir, fmt.Sprint(random.IntN(3)))
		}
		return dir
	}
	old := time.Now().Add(-time.Hour)
	for i := range 300 {
		switch dir := name(); random.IntN(5) {
		case 0, 1:
			os.MkdirAll(dir, 0o755)
		case 2:
			os.MkdirAll(filepath.Join(dir, ".git"), 0o755)
		case 3:
			os.RemoveAll(dir)
		case 4:
			os.Rename(dir, name())
		}
		// Times long past let directories be believed; what a change sets anew is not touched again.
		filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if info, ierr := d.Info(); err == nil && ierr == nil && time.Since(info.ModTime()) < time.Minute && random.IntN(2) == 0 {
				old = old.Add(time.Second)
				os.Chtimes(path, old, old)
			}
			return nil
		})
		if diff := cmp.Diff(tree.NewFinder(nil).Find(root), finder.Find(root)); diff != "" {
			t.Fatalf("after change %d (-first search +another):\n%s", i, diff)
		}
	}
}

func TestFactsTellHowABranchStandsToItsUpstream(t *testing.T) {
	origin := repo(t)
	clone := filepath.Join(tempDir(t), "clone")
	git(t, ".", "clone", "--quiet", origin, clone)
	commit := func(dir, name string) {
		write(t, filepath.Join(dir, name), name)
		git(t, dir, "add", ".")
		git(t, dir, "commit", "--quiet", "-m", name)
	}
	if f := tree.FactsNow(t.Context(), clone); f.Upstream != "origin/main" || f.Ahead != 0 || f.Behind != 0 || f.Dirty {
		t.Errorf("a fresh clone: %+v", f)
	}
	commit(clone, "a")
	commit(clone, "b")
	commit(origin, "c")
	git(t, clone, "fetch", "--quiet")
	write(t, filepath.Join(clone, "d"), "")
	want := tree.Facts{Branch: "main", Dirty: true, Upstream: "origin/main", Ahead: 2, Behind: 1, Repo: clone}
	if f := tree.FactsNow(t.Context(), clone); f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	changed := make(chan bool, 9)
	o := tree.NewObserver()
	o.Facts(t.Context(), clone, func() { changed <- true })
	<-changed
	if f := o.Facts(t.Context(), clone, nil); f != want {
		t.Errorf("the observer says %+v, want %+v", f, want)
	}
	if f := tree.FactsNow(t.Context(), origin); f.Upstream != "" || f.Ahead != 0 {
		t.Errorf("without an upstream: %+v", f)
	}
}

func TestADirectoryIsNotBelievedByItsTimeAlone(t *testing.T) {
	root := tempDir(t)
	finder := tree.NewFinder(nil)
	at := func(age time.Duration, names ...string) {
		for _, name := range names {
			moment := time.Now().Add(-age).Truncate(time.Hour) // so long past that it is settled, or not past at all
			if age == 0 {
				moment = time.Now().Add(time.Hour)
			}
			if err := os.Chtimes(filepath.Join(root, name), moment, moment); err != nil {
				t.Fatal(err)
			}
		}
	}
	mkdirs(t, root, "a", "b/.git")
	at(48*time.Hour, "a", "b", ".")
	finder.Find(root)
	for _, move := range [][2]string{{"a", "c"}, {"b", "a"}, {"c", "b"}} { // a and b change places, and times stay
		if err := os.Rename(filepath.Join(root, move[0]), filepath.Join(root, move[1])); err != nil {
			t.Fatal(err)
		}
	}
	at(48*time.Hour, "a", "b", ".")
	if got := finder.Find(root); !slices.Equal(got, []string{filepath.Join(root, "a")}) {
		t.Errorf("after they changed places: %q", got)
	}

	at(0, "b")
	finder.Find(root)
	info, err := os.Stat(filepath.Join(root, "b"))
	if err != nil {
		t.Fatal(err)
	}
	mkdirs(t, root, "b/.git")
	if err := os.Chtimes(filepath.Join(root, "b"), info.ModTime(), info.ModTime()); err != nil { // as a coarse clock would have it
		t.Fatal(err)
	}
	if got := finder.Find(root); len(got) != 2 {
		t.Errorf("after a change in the same instant: %q", got)
	}
}
