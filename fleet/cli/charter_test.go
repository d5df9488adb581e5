package cli_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
)

// ways is a profile for each way of handing over a charter. The agent keeps the bytes that it received, and asks who it is:
// before it is listed where its readiness is a report.
const ways = `
grace = "25s"
[roles.dev]
charter = "dev.md"
[profiles.argument]
command = ["sh", "-c", "printf %s \"$1\" > DIR/got; printf %s \"$2\" > DIR/task; WHO; $FLEETDECK_EXE report idle; exec sleep 600", "sh", "{charter}", "{task}"]
charter = "argument"
ready = "report"
[profiles.file]
command = ["sh", "-c", "cat \"$FLEETDECK_CHARTER_FILE\" > DIR/got; cat \"$FLEETDECK_TASK_FILE\" > DIR/task; WHO; $FLEETDECK_EXE report idle; exec sleep 600"]
charter = "file"
ready = "report"
[profiles.named]
command = ["sh", "-c", "cat \"$1\" > DIR/got; cat \"$2\" > DIR/task; WHO; $FLEETDECK_EXE report idle; exec sleep 600", "sh", "{charter_file}", "{task_file}"]
ready = "report"
[profiles.env]
command = ["sh", "-c", "printf %s \"$FLEETDECK_CHARTER\" > DIR/got; printf %s \"$1\" > DIR/task; WHO; $FLEETDECK_EXE report idle; exec sleep 600", "sh", "{task}"]
charter = "env"
ready = "report"
[profiles.typed]
command = ["sh", "-c", "echo ready; n=$(wc -c < $FLEETDECK_CHARTER_FILE); head -c $n > DIR/got; READTASK; while [ ! -e DIR/listed ]; do sleep 0.05; done; WHO; exec sleep 600"]
charter = "typed"
ready = "pattern:ready"
[profiles.pasted]
command = ["sh", "-c", "printf '\\033[?2004hready'; n=$(wc -c < $FLEETDECK_CHARTER_FILE); head -c 6 > /dev/null; head -c $n > DIR/got; READTASK; while [ ! -e DIR/listed ]; do sleep 0.05; done; WHO; exec sleep 600"]
charter = "typed"
ready = "pattern:ready"
`

// theCharter is text that a careless hand would change: quotes, dollars, placeholders, and an empty line at its end.
const theCharter = "You are a \"worker\" of $HOME, isn't it?\n\nNever write {task} or {charter_file}. Ünïcödé.\n\n"

func TestTheReceiptIsOfTheBytesThatTheAgentReceived(t *testing.T) {
	t.Parallel()
	full(t)
	const task = "mend {charter} and 'that'"
	config := strings.NewReplacer(
		"WHO", "$FLEETDECK_EXE whoami --json > DIR/who.new; mv DIR/who.new DIR/who",
		// What is typed after the charter is an empty line and the task; a paste ends with its mark.
		"READTASK", `read empty; IFS= read -r task; printf %s \"$task\" > DIR/task`,
	).Replace(ways)
	for _, way := range []string{"argument", "file", "named", "env", "typed", "pasted"} {
		t.Run(way, func(t *testing.T) {
			r := newRig(t, config)
			if err := os.WriteFile(filepath.Join(r.dir, "dev.md"), []byte(theCharter), 0o644); err != nil {
				t.Fatal(err)
			}
			r.must(nil, "up")
			if out, code := r.dispatch(r.repo("api"), "--profile", way, "--task", task, "--wait"); code != 0 {
				t.Fatalf("exit %d: %s", code, out.Message)
			}
			if err := os.WriteFile(filepath.Join(r.dir, "listed"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			var who api.Identity
			r.await("the agent knows who it is", func() bool {
				data, err := os.ReadFile(filepath.Join(r.dir, "who"))
				return err == nil && json.Unmarshal(data, &who) == nil
			})
			got := r.text("got")
			if got != theCharter {
				t.Errorf("the agent received %q, want %q", got, theCharter)
			}
			if task2 := strings.TrimSuffix(r.text("task"), "\x1b[201~"); task2 != task {
				t.Errorf("the agent received the task %q, want %q", task2, task)
			}
			hash := hashOf(got)
			if who.CharterSHA256 != hash {
				t.Errorf("whoami says charter %s, the agent received %s", who.CharterSHA256, hash)
			}
			if m := r.members()[0]; m.CharterSHA256 != hash || m.CharterOutdated || m.CharterMismatch {
				t.Errorf("the roster says charter %s, outdated %t, mismatch %t; want %s and neither",
					m.CharterSHA256, m.CharterOutdated, m.CharterMismatch, hash)
			}
		})
	}
}

func TestACharterChangedOnDiskIsForNewLaunchesOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents+"\n[roles.dev]\ncharter = \"DIR/dev.md\"\n")
	charter := filepath.Join(r.dir, "dev.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(charter, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	member := func(id string) fleet.Member {
		t.Helper()
		for _, m := range r.members() {
			if m.ID == id {
				return m
			}
		}
		t.Fatalf("no member %s", id)
		return fleet.Member{}
	}
	write("the first\n")
	r.must(nil, "up")
	first, _ := r.dispatch(r.repo("api"), "--profile", "worker", "--wait")
	before := member(first.Member)
	write("the second\n")
	second, _ := r.dispatch(r.repo("web"), "--profile", "worker", "--wait")
	r.kill() // what the registry keeps is the old receipt too
	r.must(nil, "up")
	after, newer := member(first.Member), member(second.Member)
	if before.CharterOutdated || after.CharterSHA256 != before.CharterSHA256 || !after.CharterOutdated {
		t.Errorf("the first member: charter %s outdated %t, then %s outdated %t; want the same hash, and outdated then only",
			before.CharterSHA256, before.CharterOutdated, after.CharterSHA256, after.CharterOutdated)
	}
	if newer.CharterSHA256 == before.CharterSHA256 || newer.CharterOutdated {
		t.Errorf("the second member: charter %s, outdated %t; want another than %s, not outdated", newer.CharterSHA256, newer.CharterOutdated, before.CharterSHA256)
	}
	write("the first\n")
	if member(first.Member).CharterOutdated {
		t.Error("the old text is back, and the first member is outdated still")
	}
}

// text reads a file of the rig's.
func (r *rig) text(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
