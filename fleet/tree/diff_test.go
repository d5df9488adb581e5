package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"fleetdeck/fleet/tree"
)

func TestDiffShowsWhatDiffersFromHead(t *testing.T) {
	repo := repo(t)
	write(t, filepath.Join(repo, "file"), "two\n")
	write(t, filepath.Join(repo, "staged"), "staged\n")
	git(t, repo, "add", "staged")
	write(t, filepath.Join(repo, ".gitignore"), "ignored\n")
	write(t, filepath.Join(repo, "ignored"), "")
	write(t, filepath.Join(repo, "sub", "new"), "new\n")
	for name, diff := range map[string]string{
		"top":           must(t)(tree.Diff(t.Context(), repo, 0)),
		"sub-directory": must(t)(tree.Diff(t.Context(), filepath.Join(repo, "sub"), 0)),
	} {
		for _, want := range []string{"-one\n", "+two\n", "+staged\n", "\n? .gitignore\n", "\n? sub/new\n"} {
			if !strings.Contains(diff, want) {
				t.Errorf("%s: no %q in\n%s", name, want, diff)
			}
		}
		if strings.Contains(diff, "? ignored") || strings.Contains(diff, "+new") {
			t.Errorf("%s: more than it should hold:\n%s", name, diff)
		}
	}
	stat := must(t)(tree.DiffStat(t.Context(), repo, 0))
	if !strings.Contains(stat, " file   |") || strings.Contains(stat, "+two") || !strings.Contains(stat, "\n? sub/new\n") {
		t.Errorf("stat:\n%s", stat)
	}
}

func must(t *testing.T) func(string, error) string {
	return func(s string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func TestDiffOfACleanTreeIsEmpty(t *testing.T) {
	if diff := must(t)(tree.Diff(t.Context(), repo(t), 100)); diff != "" {
		t.Errorf("%q", diff)
	}
}

func TestDiffWithoutACommitIsAgainstNothing(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			repo := filepath.Join(tempDir(t), "api")
			git(t, ".", "init", "--quiet", "--object-format="+format, repo)
			write(t, filepath.Join(repo, "staged"), "staged\n")
			git(t, repo, "add", "staged")
			write(t, filepath.Join(repo, "new"), "new\n")
			diff := must(t)(tree.Diff(t.Context(), repo, 0))
			if !strings.Contains(diff, "+staged\n") || !strings.HasSuffix(diff, "? new\n") {
				t.Errorf("%s", diff)
			}
		})
	}
}

func TestDiffIsCutAtItsLimitByWholeLines(t *testing.T) {
	repo := repo(t)
	write(t, filepath.Join(repo, "file"), strings.Repeat("a line of some length\n", 20000))
	for range 3 {
		diff := must(t)(tree.Diff(t.Context(), repo, 1000))
		body, ok := strings.CutSuffix(diff, "… cut at 1000 bytes: there is more\n")
		if !ok || len(body) > 1000 || len(body) < 900 || !strings.HasSuffix(body, "+a line of some length\n") {
			t.Errorf("%d bytes: %q", len(diff), diff[max(0, len(diff)-100):])
		}
	}
	git(t, repo, "checkout", "--quiet", ".")
	for i := range 100 {
		write(t, filepath.Join(repo, "untracked", strings.Repeat("x", 50)+string(rune('a'+i%26))+strings.Repeat("y", i)), "")
	}
	diff := must(t)(tree.Diff(t.Context(), repo, 1000))
	if body, ok := strings.CutSuffix(diff, "… cut at 1000 bytes: there is more\n"); !ok || len(body) > 1000 || !strings.HasSuffix(body, "\n") {
		t.Errorf("untracked: %q", diff)
	}
}

func TestDiffQuotesHostileNames(t *testing.T) {
	repo := repo(t)
	made := 0
	for _, name := range []string{"--output=owned", "a\nb", "esc\x1b[2J", "bidi\u202e", "bad\xff", `quote"`} {
		if err := os.WriteFile(filepath.Join(repo, name), []byte("x\n"), 0o644); err != nil {
			t.Logf("%q cannot be made here: %v", name, err)
			continue
		}
		made++
	}
	git(t, repo, "add", "--", "--output=owned")
	diff := must(t)(tree.Diff(t.Context(), repo, 0))
	if strings.ContainsAny(diff, "\x1b\u202e") || !utf8.ValidString(diff) || strings.Contains(diff, "\nb\n") {
		t.Errorf("not quoted: %q", diff)
	}
	if got, want := strings.Count(diff, "\n? "), made-1; got != want {
		t.Errorf("%d untracked names, want %d: %q", got, want, diff)
	}
	if exists(filepath.Join(repo, "owned")) {
		t.Error("a name was taken for an option")
	}
}

func TestDiffRunsNoProgramOfTheRepositorys(t *testing.T) {
	repo := repo(t)
	owned := filepath.Join(tempDir(t), "owned")
	script := filepath.Join(filepath.Dir(owned), "script")
	write(t, script, "#!/bin/sh\necho owned > "+owned+"\ncat \"$1\"\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"diff.external", "diff.x.command", "diff.x.textconv", "core.fsmonitor", "core.pager", "pager.diff"} {
		git(t, repo, "config", key, script)
	}
	git(t, repo, "config", "color.ui", "always")
	write(t, filepath.Join(repo, ".gitattributes"), "* diff=x\n")
	write(t, filepath.Join(repo, "file"), "two\n")
	diff := must(t)(tree.Diff(t.Context(), repo, 0))
	if exists(owned) {
		t.Error("a program was run")
	}
	if !strings.Contains(diff, "\n+two\n") {
		t.Errorf("%q", diff)
	}
}
