package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"fleetdeck/fleet/plain"
)

// evilText would clear a screen, write the clipboard, set the title, turn the text around, hide a part of it and begin a row of its own,
// if a terminal got it as it stands.
const evilText = "a\x1b[2J\x1b[H\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07\u009b31m\u202eoccupied\u2066\u200b\u2028\nfree  dev  fake\r\x08\x7fz"

// harmless fails where text holds more than printable characters and line breaks.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s is not UTF-8: %q", what, text)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); plain.Text(line) != line {
			t.Errorf("%s prints %q", what, line)
			return
		}
	}
	if strings.Contains(text, "\nfree  dev  fake") {
		t.Errorf("%s lets a text begin a row of its own: %q", what, text)
	}
}

func TestForeignTextReachesNoTerminalRawByAnyCommand(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, `grace = "20s"
lock_wait = "300ms"
trees = ["src"]
roots = ["src"]
[profiles.loud]
command = ["sh", "-c", "cat evil; printf '\\033]9;'; cat evil; printf '\\a'; echo ready; exec sleep 600"]
ready = "pattern:ready"
[profiles.dies]
command = ["sh", "-c", "cat evil; exit 9"]
ready = "pattern:never"
`)
	name := strings.ReplaceAll(evilText, "/", "_")
	repo := r.committed("x" + name)
	if err := os.WriteFile(filepath.Join(repo, "evil"), []byte(evilText), 0o644); err != nil {
		t.Fatal(err)
	}
	// Git makes no such branch, but whoever works in a tree can write any HEAD.
	free := r.repo("free" + name)
	if err := os.WriteFile(filepath.Join(free, ".git", "HEAD"), []byte("ref: refs/heads/"+strings.ReplaceAll(evilText, "\n", " ")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// A writer in another language can say what it likes.
	held := r.repo("held" + name)
	entry, err := json.Marshal(map[string]any{held: map[string]any{
		"id": "id" + evilText, "role": evilText, "profile": evilText, "slot": evilText, "expires_at": time.Now().Add(time.Hour),
		"dispatcher": map[string]any{"pid": 1, "host": evilText, "program": evilText},
	}})
	if err == nil {
		err = os.MkdirAll(r.state, 0o700)
	}
	if err == nil {
		err = os.WriteFile(r.file(), entry, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.must(nil, "up")
	out, code := r.dispatch(repo, "--profile", "loud", "--wait", "--task="+evilText)
	if code != 0 {
		t.Fatalf("exit %d, %+v", code, out)
	}
	identity := r.identity(out.Member)
	if _, code := r.as(identity, "report", "waiting", "--message", evilText); code != 0 {
		t.Fatalf("report: exit %d", code)
	}
	if _, code := r.as(identity, "stop", out.Member); code == 0 { // refused, and loud
		t.Error("a dev may stop")
	}
	commands := [][]string{
		{"trees"}, {"members"}, {"slots"}, {"reservations"}, {"status"}, {"events"}, {"doctor"}, {"prune", "--dry-run"}, {"prune"}, {"keep", "--status"}, {"dispatch", repo, "--profile", "loud"},
		{"explain", repo}, {"explain", held}, {"explain", out.Member}, {"worktree", "ls", repo}, {"screen", out.Member}, {"logs", out.Member},
		{"dispatch", held, "--profile", "loud"}, {"dispatch", free, "--profile", evilText}, {"dispatch", free, "--profile", "dies", "--wait"},
		{"dispatch", repo, "--profile", "loud", "--new-worktree", evilText}, {"dispatch", evilText}, {"reserve", held}, {"release", free}, {"release", evilText},
		{"worktree", "rm", repo}, {"worktree", "rm", evilText}, {"queue", "add", held, "--profile", "loud", "--task", evilText}, {"queue", "ls"}, {"queue", "rm", evilText},
		{"diff", evilText}, {"send", evilText, "x"}, {"stop", evilText}, {"restart", evilText}, {"lock", "--", evilText}, {evilText}, {"trees", evilText}, {"trees", "--" + evilText},
		{"whoami"}, {"trees", "--config", filepath.Join(r.dir, evilText)}, {"trees", "--state", r.file() + "/" + evilText},
		{"release", held}, {"stop", out.Member},
	}
	for i, args := range commands {
		for _, flags := range [][]string{nil, {"--json"}} {
			if len(flags) > 0 && i > 15 {
				continue // what is an error prints the same document
			}
			what := fmt.Sprintf("%q %v", args, flags)
			cmd := append(args[:1:1], append(flags, args[1:]...)...)
			stdout, stderr, code := r.fleetdeck(cmd...)
			harmless(t, what, stdout)
			harmless(t, what+" on stderr", stderr)
			if args[0] == "trees" && len(args) == 1 && flags == nil && strings.Count(stdout, "\n") != 4 {
				t.Errorf("three trees are %q", stdout)
			}
			if len(flags) > 0 && code == 0 && stdout != "" && args[0] != "events" && args[0] != "logs" && !json.Valid([]byte(stdout)) {
				t.Errorf("%s: no JSON: %q", what, stdout)
			}
		}
	}
	// Escaped, the text is what it was.
	var rows []struct{ Tree string }
	r.must(&rows, "trees")
	found := false
	for _, row := range rows {
		found = found || row.Tree == repo
	}
	if !found {
		t.Errorf("trees --json names %q, and not %q", rows, repo)
	}
	for _, name := range []string{"daemon.log", "events.jsonl"} {
		data, err := os.ReadFile(filepath.Join(r.state, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "daemon.log" {
			harmless(t, name, string(data))
		} else if strings.ContainsAny(string(data), "\x1b\x07\x08\r") {
			t.Errorf("%s holds %q", name, data)
		}
	}
	// Line by line, as it stands at first.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := r.command("--plain")
	cmd.Args = append(cmd.Args[:1:1], "--plain", "--state", r.state, "--config", r.config)
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	var told strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		told.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "trees, ") {
			break
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	harmless(t, "--plain", told.String())
	if told.Len() == 0 {
		t.Error("--plain says nothing")
	}
}
