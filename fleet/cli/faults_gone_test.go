package cli_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"fleetdeck/fleet"
)

// TestARemovedStateDirectorySendsNobodyAndEndsNoAgent removes everything under a running daemon, a console and an agent.
func TestARemovedStateDirectorySendsNobodyAndEndsNoAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	tree, other := r.repo("api"), r.repo("other")
	if out, code := r.dispatch(tree, "--profile", "worker", "--wait"); code != 0 {
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

	syscall.Kill(daemon, syscall.SIGSTOP) // so that it notices only when there is another one
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
	if !processAlive(agent) {
		t.Error("the agent has ended")
	}

	// The daemon of the new directory knows nobody, but sees who works in the tree. The old one ends and leaves its socket alone.
	r.must(nil, "up")
	syscall.Kill(daemon, syscall.SIGCONT)
	r.await("the daemon of the old directory ends", func() bool { return !processAlive(daemon) })
	if pid := r.daemonPid(); pid == daemon || !processAlive(pid) {
		t.Errorf("daemon %d answers, want one after %d", pid, daemon)
	}
	if out, code := r.dispatch(tree, "--profile", "worker"); code != 3 || out.Code != fleet.CodeTreeForeign {
		t.Errorf("dispatch to where the agent works: exit %d, %+v, want 3, tree_foreign", code, out)
	}
	if out, code := r.dispatch(other, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch to a free tree: exit %d, %+v", code, out)
	}
	if !processAlive(agent) {
		t.Error("the agent has ended with the old daemon")
	}
	c.shows("src/other") // the console is that of the new directory
	c.quits()
}

func TestAnAgentOfAnotherFleetIsForeignWhateverItsProgramIs(t *testing.T) {
	t.Parallel()
	theirs, ours := newRig(t, agents), newRig(t, agents)
	theirs.must(nil, "up")
	ours.must(nil, "up")
	tree := theirs.repo("api")
	if out, code := theirs.dispatch(tree, "--profile", "worker", "--wait"); code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, out)
	}
	out, code := ours.dispatch(tree, "--profile", "worker")
	if pid := strconv.Itoa(theirs.members()[0].Pid); code != 3 || out.Code != fleet.CodeTreeForeign || !strings.Contains(out.Message, pid) {
		t.Errorf("dispatch beside a member of another fleet: exit %d, %+v, want 3, tree_foreign, pid %s", code, out, pid)
	}
	if out, code := theirs.dispatch(tree, "--profile", "worker"); code != 3 || out.Code != fleet.CodeTreeOccupied {
		t.Errorf("dispatch beside one's own member: exit %d, %+v, want 3, tree_occupied", code, out)
	}
	theirs.must(nil, "stop", theirs.members()[0].ID)
	ours.await("the tree is free again", func() bool { return ours.tree(tree).Foreign.Pid == 0 })
	if out, code := ours.dispatch(tree, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch after its end: exit %d, %+v", code, out)
	}
}
