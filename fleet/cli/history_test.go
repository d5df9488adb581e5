package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/history"
)

func TestACommandLineIsSplitByAShellIntoWhatItWasMadeOf(t *testing.T) {
	tests := [][]string{
		{"fleetdeck", "prune"},
		{"fleetdeck", "dispatch", "/src/my api", "--task", "it's a \"task\" with $HOME, `id`, \\ and *"},
		{"", " ", "~", "#x", "a=b", "=ls", "-", "!x", "é…", "a;b|c&d", "{x,y}", "line one\nline two"},
	}
	shells := map[string][][]string{"sh": tests, "bash": append(tests, []string{"tab\tand \x1b]0;owned\x07 and ' and \\n", "\x7f", "é\x01"}), "zsh": tests}
	for shell, lines := range shells {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("no %s here", shell)
			}
			for _, args := range lines {
				line := commandLine(args...)
				if strings.ContainsAny(line, "\x1b\x07\x01\x7f\t") {
					t.Errorf("%q holds what would change a terminal", line)
				}
				out, err := exec.Command(shell, "-c", `printf '%s\0' `+line).Output()
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				if d := cmp.Diff(args, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")); d != "" {
					t.Errorf("%s: %s", line, d)
				}
			}
		})
	}
}

func TestADeedIsWrittenDownByHowItEnded(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name    string
		ctx     context.Context
		err     error
		outcome string
		code    fleet.Code
	}{
		{"done", t.Context(), nil, "done", ""},
		{"done, though called off", cancelled, nil, "done", ""},
		{"refused", t.Context(), fleet.Refuse(fleet.CodeTreeOccupied, "x"), "refused", fleet.CodeTreeOccupied},
		{"not found", t.Context(), &notFoundError{what: "x"}, "refused", fleet.CodeNotFound},
		{"failed", t.Context(), errors.New("disk full"), "failed", ""},
		{"cancelled", cancelled, context.Canceled, "cancelled", ""},
		{"unknown, though called off", cancelled, fleet.Refuse(fleet.CodeOutcomeUnknown, "x"), "unknown", fleet.CodeOutcomeUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			if outcome, code := judgeDeed(test.ctx, test.err); outcome != test.outcome || code != test.code {
				t.Errorf("judgeDeed = %s, %s, want %s, %s", outcome, code, test.outcome, test.code)
			}
		})
	}
}

func TestAHistoryThatCannotBeWrittenIsAWarningOnly(t *testing.T) {
	var warned warnings
	r := newRecorder(history.In(filepath.Join(t.TempDir(), "gone")), fleet.Dispatcher{}, warned.add)
	r.add(t.Context(), fleet.Deed{What: "prune"}, nil)
	r.close()
	r.close()
	if len(warned.kept) != 1 || !errors.Is(warned.kept[0], os.ErrNotExist) {
		t.Errorf("warnings: %v", warned.kept)
	}
}

func TestAnActDoesNotWaitForItsRecord(t *testing.T) {
	dir, err := os.MkdirTemp("", "fd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) // as far as it goes: the recorder may still be writing
	// A pipe that nobody reads takes little, and then whoever writes waits.
	if err := exec.Command("mkfifo", filepath.Join(dir, "history.jsonl")).Run(); err != nil {
		t.Skipf("mkfifo: %v", err)
	}
	var warned warnings
	r := newRecorder(history.In(dir), fleet.Dispatcher{}, warned.add)
	added := make(chan struct{})
	go func() {
		defer close(added)
		for range 200 {
			r.add(t.Context(), fleet.Deed{What: "prune", Command: strings.Repeat("x", 4000)}, nil)
		}
	}()
	select {
	case <-added:
	case <-time.After(time.Minute):
		t.Fatal("an act waits for its record")
	}
}
