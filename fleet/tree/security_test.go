package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

// trap is a program that a repository names, and that notes when it is run.
type trap struct{ program, marker string }

func newTrap(t *testing.T) trap {
	t.Helper()
	dir := tempDir(t)
	tr := trap{filepath.Join(dir, "evil"), filepath.Join(dir, "marker")}
	write(t, tr.program, "#!/bin/sh\necho \"$0 $*\" >> "+tr.marker+"\ncat\n")
	if err := os.Chmod(tr.program, 0o755); err != nil {
		t.Fatal(err)
	}
	return tr
}

// ran gives what was run since the last call.
func (tr trap) ran() string {
	data, _ := os.ReadFile(tr.marker)
	os.Remove(tr.marker)
	return string(data)
}

// set makes every setting of the repository at dir that can name a program name the trap's, but for filters.
func (tr trap) set(t *testing.T, dir string) {
	t.Helper()
	hooks := filepath.Join(filepath.Dir(tr.program), "hooks")
	for _, name := range []string{"post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman", "pre-auto-gc", "post-rewrite"} {
		if err := os.MkdirAll(hooks, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(tr.program, filepath.Join(hooks, name)); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	for key, value := range map[string]string{
		"core.hooksPath": hooks, "core.fsmonitor": tr.program, "core.pager": tr.program, "core.editor": tr.program,
		"core.sshCommand": tr.program, "core.askPass": tr.program, "core.alternateRefsCommand": tr.program, "core.gitProxy": tr.program,
		"pager.status": tr.program, "pager.diff": tr.program, "pager.worktree": tr.program, "alias.status": "!" + tr.program,
		"alias.rev-parse": "!" + tr.program, "diff.external": tr.program, "diff.evil.textconv": tr.program, "diff.evil.command": tr.program,
		"diff.submodule": "diff", "merge.evil.driver": tr.program, "gpg.program": tr.program, "log.showSignature": "true",
		"credential.helper": "!" + tr.program, "interactive.diffFilter": tr.program, "uploadpack.packObjectsHook": tr.program,
		"status.submoduleSummary": "true",
	} {
		git(t, dir, "config", key, value)
	}
}

// setFilters makes the repository's own configuration name filters. They are taken in from another file, as they can be.
func (tr trap) setFilters(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(filepath.Dir(tr.program), "more")
	write(t, file, "[filter \"evil.one\"]\n\tclean = "+tr.program+" clean\n\tsmudge = "+tr.program+" smudge\n\trequired = true\n")
	git(t, dir, "config", "include.path", file)
}

// trapped makes a repository with a submodule, both of which set the trap for whoever looks at them.
func trapped(t *testing.T, tr trap) string {
	t.Helper()
	inner, repo := repo(t), repo(t)
	write(t, filepath.Join(repo, ".gitattributes"), "* filter=evil.one diff=evil merge=evil\n")
	git(t, repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "sub")
	git(t, repo, "add", ".")
	git(t, repo, "commit", "--quiet", "-m", "two")
	git(t, repo, "worktree", "add", "--quiet", "-b", "linked", filepath.Join(filepath.Dir(repo), "linked"))
	sub := filepath.Join(repo, "sub")
	write(t, filepath.Join(sub, ".git-attributes"), "* diff=evil\n")
	write(t, filepath.Join(sub, "file"), "another\n")
	git(t, sub, "commit", "--quiet", "-am", "another")
	write(t, filepath.Join(sub, "file"), "more\n")
	write(t, filepath.Join(repo, "file"), "changed\n")
	write(t, filepath.Join(repo, "untracked"), "new\n")
	tr.set(t, sub)
	tr.set(t, repo)
	return repo
}

func TestLookingAtAHostileRepositoryRunsNothingOfIts(t *testing.T) {
	tr := newTrap(t)
	repo := trapped(t, tr)
	tr.setFilters(t, repo)
	tr.ran()
	looks := []struct {
		name string
		look func(dir string) error
	}{
		{"resolve", func(dir string) error { _, err := tree.Resolve(t.Context(), dir, false); return err }},
		{"facts", func(dir string) error {
			if f := tree.FactsNow(t.Context(), dir); dir == repo && !f.Dirty {
				t.Errorf("a changed tree is not dirty: %+v", f)
			}
			return nil
		}},
		{"diff", func(dir string) error {
			text, err := tree.Diff(t.Context(), dir, 0)
			if dir == repo && !strings.Contains(text, "+changed") {
				t.Errorf("the diff does not show what changed: %s", text)
			}
			return err
		}},
		{"diff stat", func(dir string) error { _, err := tree.DiffStat(t.Context(), dir, 0); return err }},
		{"worktrees", func(dir string) error {
			all, err := tree.LinkedOf(t.Context(), dir)
			for _, l := range all {
				if _, err := l.Look(t.Context()); err != nil {
					return err
				}
			}
			return err
		}},
	}
	for _, tt := range looks {
		for _, dir := range []string{repo, filepath.Join(filepath.Dir(repo), "linked"), filepath.Join(repo, "sub")} {
			if err := tt.look(dir); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if ran := tr.ran(); ran != "" {
				t.Errorf("%s of %s ran a program of the repository's:\n%s", tt.name, dir, ran)
			}
		}
	}
	// The trap is one: whoever asks git without care falls into it.
	for what, args := range map[string][]string{
		"evil 2 ": {"status"}, " clean": {"diff", "--no-ext-diff"}, "file ": {"diff"}, // the monitor, a filter, a tool for differences
	} {
		if git(t, repo, args...); !strings.Contains(tr.ran(), what) {
			t.Errorf("a careless git %v runs nothing: the test proves nothing", args)
		}
	}
}

func TestMakingAndRemovingAWorktreeRunsNothingOfTheRepositorysUnlessItIsTrusted(t *testing.T) {
	for _, trust := range []bool{false, true} {
		tr := newTrap(t)
		repo := trapped(t, tr)
		tr.ran()
		made, err := tree.Worktrees{Trust: trust}.AddWorktree(t.Context(), repo, "x")
		if err != nil {
			t.Fatal(err)
		}
		if ran := tr.ran(); (ran != "") != trust {
			t.Errorf("trust %v: making it ran %q", trust, ran)
		}
		linked, err := tree.LinkedAt(t.Context(), made.Tree)
		if err != nil {
			t.Fatal(err)
		}
		nobody := func(string) error { return nil }
		if !trust {
			// Git itself removes no worktree of a repository with submodules, unless it is forced.
			if err := linked.Remove(t.Context(), tree.Removal{Branch: true, Uncommitted: true}, nobody); err != nil {
				t.Errorf("remove: %v", err)
			}
			if ran := tr.ran(); ran != "" {
				t.Errorf("removing it ran %q", ran)
			}
		}
	}
}

func TestARepositoryWithFiltersOfItsOwnIsNotCheckedOutUnlessItIsTrusted(t *testing.T) {
	tr := newTrap(t)
	repo := trapped(t, tr)
	tr.setFilters(t, repo)
	tr.ran()
	_, err := tree.Worktrees{}.AddWorktree(t.Context(), repo, "x")
	if r := fleet.RefusalOf(err); r == nil || r.Code != fleet.CodeWorktreeRefused || !strings.Contains(r.Hint, "trust = true") {
		t.Errorf("%v, want a refusal that says how to trust it", err)
	}
	if ran := tr.ran(); ran != "" || exists(repo+".worktrees") {
		t.Errorf("it ran %q, or left something", ran)
	}
	if _, err := (tree.Worktrees{Trust: true}).AddWorktree(t.Context(), repo, "x"); err != nil || !strings.Contains(tr.ran(), "smudge") {
		t.Errorf("trusted: %v, or no filter ran", err)
	}
}

func TestAHostilePartialCloneFetchesNothing(t *testing.T) {
	tr := newTrap(t)
	repo := repo(t)
	write(t, tr.program, "#!/bin/sh\necho fetched >> "+tr.marker+"\nexit 1\n") // which nobody waits for
	for key, value := range map[string]string{
		"remote.origin.url": "ext::" + tr.program, "remote.origin.promisor": "true", "protocol.ext.allow": "always",
		"remote.origin.uploadpack": tr.program, "extensions.partialClone": "origin",
	} {
		git(t, repo, "config", key, value)
	}
	git(t, repo, "config", "core.repositoryFormatVersion", "1")
	blob := git(t, repo, "rev-parse", "HEAD:file")
	if err := os.Remove(filepath.Join(repo, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(repo, "file"), "changed\n")
	tree.FactsNow(t.Context(), repo)
	if _, err := tree.Diff(t.Context(), repo, 0); err == nil {
		t.Error("there is a diff to what is not there")
	}
	_, err := tree.Worktrees{}.AddWorktree(t.Context(), repo, "x")
	if r := fleet.RefusalOf(err); r == nil || !strings.Contains(r.Hint, "trust = true") {
		t.Errorf("%v, want a refusal that says how to trust it", err)
	}
	if ran := tr.ran(); ran != "" {
		t.Errorf("it was fetched with %q", ran)
	}
	if _, err := (tree.Worktrees{Trust: true}).AddWorktree(t.Context(), repo, "y"); err == nil || tr.ran() == "" {
		t.Errorf("the trap is none: %v", err)
	}
}

// The user's own filters are what the files are meant to pass, whatever a repository says of them.
func TestAFilterOfTheUsersOwnCountsOverTheRepositorys(t *testing.T) {
	own, tr := newTrap(t), newTrap(t)
	repo := repo(t)
	home := tempDir(t)
	write(t, filepath.Join(home, ".gitconfig"), "[filter \"both\"]\n\tclean = "+own.program+" own\n")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	git(t, repo, "config", "filter.both.clean", tr.program)
	write(t, filepath.Join(repo, ".gitattributes"), "* filter=both\n")
	write(t, filepath.Join(repo, "file"), "changed\n")
	if _, err := tree.Diff(t.Context(), repo, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(own.ran(), "own") || tr.ran() != "" {
		t.Error("the user's filter did not run, or the repository's did")
	}
}

func TestAConfigurationThatNamesAnotherDirectoryAsItsTreeIsRefused(t *testing.T) {
	elsewhere, repo := tempDir(t), repo(t)
	git(t, repo, "config", "core.worktree", elsewhere)
	got, err := tree.Resolve(t.Context(), repo, false)
	if !errors.Is(err, tree.ErrUnusable) {
		t.Errorf("%s is the tree %+v, %v", repo, got, err)
	}
	for _, noGit := range []bool{true, false} {
		if got, err := tree.Resolve(t.Context(), repo, noGit); err == nil && got.Path == elsewhere {
			t.Errorf("an agent for %s is sent to %s", repo, elsewhere)
		}
	}
}

// Whoever works in a tree can put anything in place of the files that a list looks at.
func TestWhatIsNoPlainFileIsNeitherWaitedForNorReadToItsEnd(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"pipe that is held open": func(path string) error {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				return err
			}
			pipe, err := os.OpenFile(path, os.O_RDWR, 0)
			t.Cleanup(func() { pipe.Close() })
			return err
		},
		"endless":     func(path string) error { return os.Symlink("/dev/zero", path) },
		"socket-like": func(path string) error { return os.Mkdir(path, 0o700) },
		"huge": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		},
	} {
		for _, file := range []string{"HEAD", "config", "commondir"} {
			t.Run(name+" "+file, func(t *testing.T) {
				repo := repo(t)
				path := filepath.Join(repo, ".git", file)
				os.Remove(path)
				if err := put(path); err != nil {
					t.Skip(err)
				}
				o := tree.NewObserver()
				if f := o.Facts(t.Context(), repo, nil); file == "HEAD" && f.Branch != "" {
					t.Errorf("%+v", f)
				}
			})
		}
		t.Run(name+" .git", func(t *testing.T) {
			dir := tempDir(t)
			if err := put(filepath.Join(dir, ".git")); err != nil {
				t.Skip(err)
			}
			tree.NewObserver().Facts(t.Context(), dir, nil)
			tree.Repository(dir)
		})
	}
}
