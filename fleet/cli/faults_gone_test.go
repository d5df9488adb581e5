package cli_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"fleetdeck/fleet"
)

// TestARemovedStateDirectorySendsNobodyAndEndsNobody removes everything under a running daemon, a console and an agent.
func TestARemovedStateDirectorySendsNobodyAndEndsNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents+`
[profiles.known]
command = ["DIR/claude"]
`)
	r.handStarted() // the program of profile known, by whose name an agent is seen
	r.must(nil, "up")
	tree, other := r.repo("api"), r.repo("other")
	if out, code := r.dispatch(tree, "--profile", "known", "--wait"); code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, out)
	}
	agent, daemon := r.members()[0].Pid, r.daemonPid()
	c := r.open(120, 40)
	c.shows("daemon up")
	t.Cleanup(func() {
		for _, pid := range marked(r.state) {
			syscall.Kill(pid, syscall.SIGKILL) // nobody has them on record any more
		}
	})

	if err := os.RemoveAll(r.state); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"dispatch", "reserve"} {
		if _, stderr, code := r.fleetdeck(command, other, "--profile", "worker"); code != 6 || !strings.Contains(stderr, "fleetdeck up") {
			t.Errorf("%s: exit %d, %s, want 6 and what to do", command, code, stderr)
		}
	}
	if rows := r.reservations(); len(rows) > 0 {
		t.Errorf("reservations: %+v", rows)
	}
	for name, pid := range map[string]int{"the agent": agent, "the daemon": daemon, "the console": c.cmd.Process.Pid} {
		if !processAlive(pid) {
			t.Errorf("%s has ended", name)
		}
	}

	// The daemon of the new directory knows nobody, but sees who works in the tree.
	r.must(nil, "up")
	if out, code := r.dispatch(tree, "--profile", "known"); code != 3 || out.Code != fleet.CodeTreeForeign {
		t.Errorf("dispatch to where the agent works: exit %d, %+v, want 3, tree_foreign", code, out)
	}
	if out, code := r.dispatch(other, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch to a free tree: exit %d, %+v", code, out)
	}
	c.quits()
}
