package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

// sameTree checks that all paths are one tree, with one key and the directory's own identity.
func sameTree(t *testing.T, key string, paths ...string) fleet.Tree {
	t.Helper()
	file, err := tree.Identify(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		if got, err := tree.Resolve(t.Context(), p, false); err != nil || got != (fleet.Tree{Path: key, File: file}) {
			t.Errorf("Resolve(%q) = %v, %v, want %q (%s)", p, got, err, key, file)
		}
	}
	return fleet.Tree{Path: key, File: file}
}

// distinct checks that no two of the trees are one.
func distinct(t *testing.T, trees ...fleet.Tree) {
	t.Helper()
	for i, a := range trees {
		for _, b := range trees[i+1:] {
			if a.Same(b) || a.Path == b.Path || a.File == b.File {
				t.Errorf("%v and %v are one tree", a, b)
			}
		}
	}
}

func TestEverySpellingOfATreeIsOneKey(t *testing.T) {
	repo := repo(t)
	sub := filepath.Join(repo, "a", "b")
	write(t, filepath.Join(sub, "f"), "")
	dir := tempDir(t)
	links := map[string]string{"top": repo, "deep": sub, "twice": filepath.Join(dir, "top")}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	inside := filepath.Join(repo, "self") // a link in the tree to the tree
	if err := os.Symlink(".", inside); err != nil {
		t.Fatal(err)
	}
	sameTree(t, repo, repo, repo+"/", repo+"//.", sub, sub+"/..", sub+"/../../a/./b", inside, inside+"/a",
		filepath.Join(dir, "top"), filepath.Join(dir, "deep"), filepath.Join(dir, "twice"), filepath.Join(dir, "deep")+"/..")
	t.Chdir(sub)
	sameTree(t, repo, ".", "..", "../../self")
}

func TestVariablesOfGitNameNoOtherTree(t *testing.T) {
	one, other := repo(t), repo(t)
	t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
	t.Setenv("GIT_WORK_TREE", other)
	sameTree(t, one, one)
}

func TestLinkedWorktreesAndNestedRepositoriesAreTreesOfTheirOwn(t *testing.T) {
	top := repo(t)
	linked := filepath.Join(filepath.Dir(top), "linked")
	git(t, top, "worktree", "add", "--quiet", linked)
	within := filepath.Join(top, "within") // a linked worktree below the main one
	git(t, top, "worktree", "add", "--quiet", within)
	git(t, top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", repo(t), "lib")
	lib := filepath.Join(top, "lib")
	git(t, top, "init", "--quiet", "nested")
	nested := filepath.Join(top, "nested")
	for _, d := range []string{lib, nested, linked} {
		write(t, filepath.Join(d, "sub", "f"), "")
	}
	distinct(t,
		sameTree(t, top, top),
		sameTree(t, linked, linked, linked+"/sub"),
		sameTree(t, within, within),
		sameTree(t, lib, lib, lib+"/sub"),
		sameTree(t, nested, nested, nested+"/sub"),
	)
	if !exists(filepath.Join(lib, ".git")) || exists(filepath.Join(lib, ".git", "HEAD")) {
		t.Error("this git makes submodules with a directory .git: the case of a file .git was not tried")
	}
}

func TestDotGitMayBeAFileOrASymbolicLink(t *testing.T) {
	dir := tempDir(t)
	for _, tt := range []struct {
		name string
		make func(top, gitDir string) error
	}{
		{"a file", func(top, gitDir string) error {
			return os.WriteFile(filepath.Join(top, ".git"), []byte("gitdir: "+gitDir+"\n"), 0o644)
		}},
		{"a link to the directory", func(top, gitDir string) error { return os.Symlink(gitDir, filepath.Join(top, ".git")) }},
		{"a relative link", func(top, gitDir string) error {
			rel, err := filepath.Rel(top, gitDir)
			if err != nil {
				return err
			}
			return os.Symlink(rel, filepath.Join(top, ".git"))
		}},
		{"a link to a file", func(top, gitDir string) error {
			file := gitDir + ".file"
			if err := os.WriteFile(file, []byte("gitdir: "+gitDir+"\n"), 0o644); err != nil {
				return err
			}
			return os.Symlink(file, filepath.Join(top, ".git"))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := repo(t)
			write(t, filepath.Join(top, "sub", "f"), "")
			gitDir := filepath.Join(dir, tt.name, "elsewhere")
			if err := os.MkdirAll(filepath.Dir(gitDir), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(top, ".git"), gitDir); err != nil {
				t.Fatal(err)
			}
			if err := tt.make(top, gitDir); err != nil {
				t.Fatal(err)
			}
			sameTree(t, top, top, top+"/sub")
			if f := tree.FactsNow(t.Context(), top); f.Branch != "main" || !f.Dirty {
				t.Errorf("facts %+v, want main, dirty", f)
			}
			if got := tree.Discover(filepath.Dir(top)); len(got) != 1 || got[0] != top {
				t.Errorf("Discover = %q", got)
			}
		})
	}
}

func TestNamesOfAnyBytesAreKeptOrRefused(t *testing.T) {
	for _, name := range []string{
		"two words", "new\nline", "ends in a new line\n", " blanks ", "tab\tand\x01control", `quote"back\slash`, "-dash", "é", "e\u0301", "\u202egnp",
		"~", "$HOME", "*", "a.worktrees",
	} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			top := filepath.Join(dir, name)
			if err := os.Rename(repo(t), top); err != nil {
				t.Skipf("the file system does not take this name: %v", err)
			}
			write(t, filepath.Join(top, "sub", "f"), "")
			sameTree(t, top, top, filepath.Join(top, "sub"))
			if got := tree.Discover(dir); len(got) != 1 || got[0] != top {
				t.Errorf("Discover = %q", got)
			}
			w, err := tree.Worktrees{}.AddWorktree(t.Context(), top, "x")
			if err != nil {
				t.Fatal(err)
			}
			all, err := tree.LinkedOf(t.Context(), top)
			if err != nil || len(all) != 1 || all[0].Tree != w.Tree || all[0].Main != top {
				t.Errorf("LinkedOf = %+v, %v, want %v", all, err, w.Tree)
			}
			distinct(t, w.Tree, sameTree(t, top, top))
		})
	}
	t.Run("not UTF-8", func(t *testing.T) {
		dir := tempDir(t)
		top := filepath.Join(dir, "caf\xe9")
		if err := os.Rename(repo(t), top); err != nil {
			t.Skipf("the file system does not take this name: %v", err)
		}
		link := filepath.Join(dir, "plain")
		if err := os.Symlink(top, link); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{top, link} {
			if got, err := tree.Resolve(t.Context(), p, false); !errors.Is(err, tree.ErrUnusable) || !strings.Contains(err.Error(), `caf\xe9`) || !strings.Contains(err.Error(), "rename it") {
				t.Errorf("Resolve(%q) = %v, %v", p, got, err)
			}
		}
		if got := tree.Discover(dir); len(got) > 0 { // it would show under another name
			t.Errorf("Discover = %q", got)
		}
	})
}

func TestCaseIsNoIdentityWhereTheFileSystemIgnoresIt(t *testing.T) {
	top := repo(t)
	other := filepath.Join(filepath.Dir(top), "API")
	if !exists(other) {
		t.Skip("this file system tells upper from lower case: the case is tried on macOS")
	}
	a, err := tree.Resolve(t.Context(), top, false)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := tree.Resolve(t.Context(), other, false); err != nil || !a.Same(b) {
		t.Errorf("%v and %v (%v) are two trees", a, b, err)
	}
}

func TestATreeThatIsReplacedIsAnotherTree(t *testing.T) {
	top := repo(t)
	before := sameTree(t, top, top)
	if err := os.Rename(top, top+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(repo(t), top); err != nil {
		t.Fatal(err)
	}
	if after := sameTree(t, top, top); after.File == before.File {
		t.Error("the file is the same")
	}
	if moved := sameTree(t, top+".old", top+".old"); !moved.Same(before) {
		t.Error("a tree that was renamed is another one")
	}
}

func TestWhatIsNoTreeIsSaid(t *testing.T) {
	top := repo(t)
	for path, want := range map[string]error{
		"":                                 tree.ErrNotFound,
		filepath.Join(top, "none"):         tree.ErrNotFound,
		filepath.Join(top, "file"):         tree.ErrNotFound,
		filepath.Join(top, ".git"):         tree.ErrUnusable,
		filepath.Join(top, ".git", "refs"): tree.ErrUnusable,
		filepath.Dir(top):                  tree.ErrNotTree,
	} {
		if got, err := tree.Resolve(t.Context(), path, false); !errors.Is(err, want) {
			t.Errorf("Resolve(%s) = %v, %v, want %v", path, got, err, want)
		}
	}
}
