package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
)

const stubborn = agents + `
[profiles.stubborn]
command = ["sh", "-c", "echo $FLEETDECK_MEMBER >> DIR/starts; trap '' TERM HUP; while :; do sleep 1; done"]
ready = "pattern:never"
[profiles.starter]
command = ["sh", "-c", "while [ ! -e DIR/go ]; do sleep 0.05; done; $FLEETDECK_EXE up --state DIR/state --config DIR/fleetdeck.toml > DIR/up 2>&1; echo $? > DIR/code; exec sleep 600"]
`

// nobodyTwice checks that no tree has a living agent of another than the one member that is listed for it.
func (r *rig) nobodyTwice(tree string) {
	r.t.Helper()
	owners := map[string]bool{}
	for _, pid := range marked("FLEETDECK_TREE=" + tree) {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		for _, kv := range strings.Split(string(env), "\x00") {
			if id, ok := strings.CutPrefix(kv, "FLEETDECK_MEMBER="); ok && processAlive(pid) {
				owners[id] = true
			}
		}
	}
	if len(owners) > 1 {
		r.t.Errorf("agents of %d members live in %s", len(owners), tree)
	}
}

func TestDaemonThatEndsWhileItEndsALaunchDoesNotFreeTheTree(t *testing.T) {
	t.Parallel()
	r := newRig(t, stubborn)
	r.must(nil, "up")
	tree := r.repo("api")
	out, code := r.dispatch(tree, "--profile", "stubborn")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	r.await("the agent runs", func() bool { return slices.Contains(r.starts(), out.Member) })
	stop := r.command("stop", out.Member)
	if err := stop.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // into the second between TERM and KILL; any moment must do
	r.must(nil, "down")
	stop.Wait()
	r.must(nil, "up")
	for r.tree(tree).Occupancy != fleet.Free {
		r.nobodyTwice(tree)
		time.Sleep(10 * time.Millisecond) // the pace of the looks
	}
	if left := marked("FLEETDECK_MEMBER=" + out.Member); len(left) > 0 {
		t.Errorf("the tree is free while %v live", left)
	}
}

func TestAgentWhoseDirectoryIsGoneKeepsItsTree(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	tree := r.repo("api")
	out, code := r.dispatch(tree, "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	pid := r.members()[0].Pid
	if err := os.RemoveAll(filepath.Join(r.state, "members", out.Member)); err != nil {
		t.Fatal(err)
	}
	r.must(nil, "down")
	r.must(nil, "up")
	if got, code := r.dispatch(tree, "--profile", "worker"); code != 3 || got.Code != fleet.CodeTreeOccupied {
		t.Errorf("dispatch: exit %d, %+v, want 3, tree_occupied: its agent lives", code, got)
	}
	r.nobodyTwice(tree)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.awaitOccupancy(tree, fleet.Free)
}

func TestLostRegistryForgetsNoAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	tree, booting := r.repo("api"), r.repo("booting")
	out, code := r.dispatch(tree, "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	unlisted, code := r.dispatch(booting, "--profile", "slow")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, unlisted)
	}
	r.await("it boots", func() bool { return slices.Contains(r.starts(), unlisted.Member) })
	before := r.members()[0]
	r.kill()
	r.await("it is gone", func() bool { return r.daemonPid() == 0 })
	if err := os.Remove(filepath.Join(r.state, "registry.json")); err != nil {
		t.Fatal(err)
	}
	r.must(nil, "up")
	members := r.members()
	if len(members) != 1 || members[0].ID != before.ID || members[0].Pid != before.Pid || members[0].Tree != tree ||
		members[0].Role != before.Role || members[0].CharterSHA256 != before.CharterSHA256 || !members[0].Alive() {
		t.Errorf("members: %+v, want %+v", members, before)
	}
	if got, code := r.dispatch(tree, "--profile", "worker"); code != 3 || got.Code != fleet.CodeTreeOccupied {
		t.Errorf("dispatch: exit %d, %+v, want 3, tree_occupied", code, got)
	}
	if left := marked("FLEETDECK_MEMBER=" + unlisted.Member); len(left) > 0 {
		t.Errorf("a launch that nobody knows of lives on: %v", left)
	}
}

func TestAgentCannotStartTheDaemonOfItsFleet(t *testing.T) {
	t.Parallel()
	r := newRig(t, stubborn)
	r.must(nil, "up")
	if out, code := r.dispatch(r.repo("api"), "--profile", "starter", "--wait"); code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	r.must(nil, "down")
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.await("the agent has tried", func() bool {
		code, err := os.ReadFile(filepath.Join(r.dir, "code"))
		return err == nil && len(code) > 0
	})
	code, _ := os.ReadFile(filepath.Join(r.dir, "code"))
	said, _ := os.ReadFile(filepath.Join(r.dir, "up"))
	if string(code) != "2\n" || !strings.Contains(string(said), "Start it outside") {
		t.Errorf("up inside an agent: exit %s, %q, want 2", code, said)
	}
}

func TestSilentDaemonIsToldFromNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	socket := filepath.Join(r.state, "fleetd.sock")
	if err := os.Rename(socket, socket+".away"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"down"}, {"up"}} {
		_, stderr, code := r.fleetdeck(args...)
		if code != 6 || !strings.Contains(stderr, "a daemon runs, pid") {
			t.Errorf("%s with the socket gone: exit %d, %q, want 6 and its pid", args[0], code, stderr)
		}
	}
	if err := os.Rename(socket+".away", socket); err != nil {
		t.Fatal(err)
	}
}

func TestWrongCallsSaySo(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	tree := r.repo("api")
	bare := filepath.Join(r.dir, "bare.git")
	if out, err := exec.Command("git", "init", "--quiet", "--bare", bare).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
	}{
		{"two tasks", []string{"dispatch", tree, "--task", "a", "--task-file", "b"}, 2},
		{"no such task file", []string{"dispatch", tree, "--task-file", "nowhere"}, 2},
		{"an endless task", []string{"dispatch", tree, "--task-file", "/dev/zero"}, 2},
		{"a grace of nothing", []string{"dispatch", tree, "--grace", "0s"}, 2},
		{"a bare repository", []string{"dispatch", bare}, 2},
		{"the inside of .git", []string{"dispatch", filepath.Join(tree, ".git", "objects")}, 2},
		{"no such command", []string{"dispach"}, 2},
		{"no such flag", []string{"trees", "--colour"}, 2},
		{"no such reservation", []string{"release", tree}, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, code := r.fleetdeck(tt.args...)
			if code != tt.code || !strings.Contains(stderr, "fleetdeck: error: ") {
				t.Errorf("fleetdeck %v: exit %d, %q, want %d", tt.args, code, stderr, tt.code)
			}
			stdout, _, code := r.fleetdeck(append(tt.args, "--json")...)
			if tt.name == "no such flag" {
				return // whether JSON was asked for is not known where the flags are wrong
			}
			var said struct{ Error fleet.Refusal }
			if err := json.Unmarshal([]byte(stdout), &said); err != nil || said.Error.Message == "" || code != tt.code {
				t.Errorf("fleetdeck %v --json: exit %d, %q, want one document with the error", tt.args, code, stdout)
			}
		})
	}
	cmd := r.command("status")
	cmd.Args = []string{cmd.Args[0], "status", "--state", r.state, "--config", filepath.Join(r.dir, "nowhere.toml")}
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "nowhere.toml") {
		t.Errorf("a configuration that is not there: exit %d, %s", cmd.ProcessState.ExitCode(), out)
	}
}

func TestTheFirstAnswerOfADaemonKnowsWhoEndedWithoutOne(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, agents)
	r.must(nil, "up")
	for i := range 20 {
		if out, code := r.dispatch(r.repo(fmt.Sprint("tree", i)), "--profile", "worker", "--wait"); code != 0 {
			t.Fatalf("dispatch: exit %d: %+v", code, out)
		}
	}
	before := r.members()
	r.kill()
	for _, m := range before {
		syscall.Kill(m.Pid, syscall.SIGKILL)
	}
	for _, m := range before {
		r.await("its agent is gone", func() bool { return !processAlive(m.Pid) })
	}
	r.must(nil, "up")
	for _, m := range r.members() {
		if m.State != fleet.StateExited {
			t.Errorf("member %s is %s by %s, and ended before the daemon began", m.ID, m.State, m.StateSource)
		}
	}
}
