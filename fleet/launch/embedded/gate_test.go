package embedded_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
)

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

func idOf(t *testing.T, dir string) fleet.FileID {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	return fleet.FileID(fmt.Sprintf("%d:%d", uint64(st.Dev), st.Ino))
}

func TestTheGateGivesUp(t *testing.T) {
	tests := []struct {
		name string
		mend func(t *testing.T, s *launch.Spec)
		code int
		want string
	}{
		{"another directory took the tree's place", func(t *testing.T, s *launch.Spec) {
			s.Tree.File = idOf(t, s.Tree.Path)
			if err := os.Rename(s.Tree.Path, s.Tree.Path+".away"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(s.Tree.Path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, launch.ExitGate, "is not the directory that was admitted"},
		{"tree is gone", func(t *testing.T, s *launch.Spec) {
			if err := os.Remove(s.Tree.Path); err != nil {
				t.Fatal(err)
			}
		}, launch.ExitGate, "enter the tree"},
		{"charter unreadable", func(t *testing.T, s *launch.Spec) {
			s.CharterFile = filepath.Join(s.Tree.Path, "missing.md")
		}, launch.ExitGate, "read the charter"},
		{"command not found", func(t *testing.T, s *launch.Spec) {
			s.Argv = []string{filepath.Join(s.Tree.Path, "missing")}
		}, launch.ExitNotFound, "not found"},
		{"command not executable", func(t *testing.T, s *launch.Spec) {
			s.Argv = []string{filepath.Join(s.Tree.Path, "text")}
			if err := os.WriteFile(s.Argv[0], []byte("no program"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, launch.ExitNotExecutable, "permission denied"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := specOf(t, "note", filepath.Join(t.TempDir(), "notes"))
			tt.mend(t, &spec)
			term := start(t, spec)
			s := exited(t, term)
			if s.Exit.Code != tt.code || !strings.Contains(s.Failure, tt.want) {
				t.Errorf("code %d, failure %q, want %d, %q", s.Exit.Code, s.Failure, tt.code, tt.want)
			}
			if out := printed(t, term, "fleetdeck:"); !strings.Contains(out, tt.want) || strings.Count(out, "\n") != 1 {
				t.Errorf("the terminal shows %q, want one line with %q", out, tt.want)
			}
			if strings.Contains(printed(t, term, ""), "up") {
				t.Error("the agent ran")
			}
		})
	}
}

func TestTheGateLetsTheAdmittedTreeThrough(t *testing.T) {
	spec := specOf(t, "idle")
	spec.Tree.File = idOf(t, spec.Tree.Path)
	link := spec.Tree.Path + ".link"
	if err := os.Symlink(spec.Tree.Path, link); err != nil {
		t.Fatal(err)
	}
	spec.Tree.Path = link
	running(t, start(t, spec))
}

func TestTheReceiptIsOfTheBytesAtTheStart(t *testing.T) {
	spec := specOf(t, "idle")
	spec.CharterFile = filepath.Join(t.TempDir(), "charter.md")
	charter := []byte("You are a worker.\n")
	if err := os.WriteFile(spec.CharterFile, charter, 0o600); err != nil {
		t.Fatal(err)
	}
	term := start(t, spec)
	running(t, term)
	if err := os.WriteFile(spec.CharterFile, []byte("You are the king.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(charter)
	if got, want := running(t, term).Receipt, hex.EncodeToString(sum[:]); got != want {
		t.Errorf("receipt = %s, want %s", got, want)
	}
}

func TestTheAgentGetsWhatTheSpecSaysAndNothingElse(t *testing.T) {
	t.Setenv("SECRET_OF_THE_STARTER", "1")
	spec := specOf(t, "env", "a b", "*")
	term := start(t, spec)
	out := printed(t, term, "up")
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", status(t, term).Holder.Pid)); err == nil && strings.Contains(string(b), "SECRET") {
		t.Errorf("the holder keeps %q of the starter's environment", b)
	}
	env := slices.Clone(spec.Env)
	want := fmt.Sprintf("dir=%s env=%q args=%q", spec.Tree.Path, env, []string{"env", "a b", "*"})
	if flat := strings.ReplaceAll(out, "\r\n", ""); !strings.Contains(flat, want) {
		t.Errorf("the agent saw %s, want %s", flat, want)
	}
}
