package embedded_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet/launch"
)

func TestTheGateHandsOverTheBytesOfTheReceipt(t *testing.T) {
	const mark = "{charter:XYZ}"
	charter := "You are a \"worker\".\n\nNever write {charter}.\n"
	spec := specOf(t, "env", "text: "+mark, mark+mark, "plain {charter}")
	spec.Env = append(spec.Env, "HANDED="+mark)
	spec.CharterMark, spec.CharterFile = mark, filepath.Join(t.TempDir(), "charter.md")
	if err := os.WriteFile(spec.CharterFile, []byte(charter), 0o600); err != nil {
		t.Fatal(err)
	}
	term := start(t, spec)
	out := strings.ReplaceAll(printed(t, term, "up"), "\r\n", "")
	for _, want := range []string{
		fmt.Sprintf("args=%q", []string{"env", "text: " + charter, charter + charter, "plain {charter}"}),
		fmt.Sprintf("%q", "HANDED="+charter),
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the agent saw %s, want %s", out, want)
		}
	}
	sum := sha256.Sum256([]byte(charter))
	if got, want := running(t, term).Receipt, hex.EncodeToString(sum[:]); got != want {
		t.Errorf("receipt = %s, want %s", got, want)
	}
}

func TestTheGateRefusesACharterThatNoArgumentCanHold(t *testing.T) {
	for _, tt := range []struct {
		name, charter, want string
		code                int
	}{
		{"a NUL byte", "You are\x00a worker", "NUL byte", launch.ExitGate},
		{"too long", strings.Repeat("x", 3<<20), "by file", launch.ExitNotExecutable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := specOf(t, "env", "MARK")
			spec.CharterMark, spec.CharterFile = "MARK", filepath.Join(t.TempDir(), "charter.md")
			if err := os.WriteFile(spec.CharterFile, []byte(tt.charter), 0o600); err != nil {
				t.Fatal(err)
			}
			s := exited(t, start(t, spec))
			if s.Exit.Code != tt.code || !strings.Contains(s.Failure, tt.want) {
				t.Errorf("code %d, failure %q, want %d, %q", s.Exit.Code, s.Failure, tt.code, tt.want)
			}
		})
	}
}
