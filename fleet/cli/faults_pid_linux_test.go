package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"fleetdeck/fleet"
)

// takePid makes a process with the pid of one that is gone, in a namespace of the test's own.
func takePid(t *testing.T, pid int) *exec.Cmd {
	t.Helper()
	for range 100 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", fmt.Append(nil, pid-1), 0); err != nil {
			t.Skipf("SKIPPED: pids cannot be forced here: %v", err)
		}
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		if cmd.Process.Pid == pid {
			return cmd
		}
	}
	t.Skipf("SKIPPED: pid %d could not be had again", pid)
	return nil
}

// TestAPidThatIsUsedAgainIsNobodys gives the pids of an agent and of its holder, which died while no daemon looked, to processes that have
// nothing to do with them.
func TestAPidThatIsUsedAgainIsNobodys(t *testing.T) {
	t.Parallel()
	if !apart(t, "--mount", "--pid", "--fork", "--mount-proc", "--kill-child") {
		return
	}
	r := newRig(t, agents)
	r.must(nil, "up")
	tree := r.repo("api")
	out, code := r.dispatch(tree, "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, out)
	}
	agent := r.members()[0].Pid
	holder := 0
	for _, pid := range marked(r.state) {
		if strings.Contains(commandLine(pid), "\x00holder\x00") {
			holder = pid
		}
	}
	if agent == 0 || holder == 0 {
		t.Fatalf("agent %d, holder %d", agent, holder)
	}
	daemon := r.daemonPid()
	for _, pid := range []int{daemon, holder, agent} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
	}
	r.await("their pids are free", func() bool {
		for _, pid := range []int{daemon, holder, agent} {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
				return false
			}
		}
		return true
	})
	impostors := []*exec.Cmd{takePid(t, agent), takePid(t, holder)}

	r.must(nil, "up")
	r.awaitOccupancy(tree, fleet.Free)
	if alive := r.alive(); len(alive) > 0 {
		t.Errorf("alive: %+v, want nobody", alive)
	}
	again, code := r.dispatch(tree, "--profile", "worker", "--wait")
	if code != 0 {
		t.Errorf("dispatch: exit %d, %+v", code, again)
	}
	r.fleetdeck("stop", out.Member)
	r.must(nil, "down", "--stop-members")
	for _, p := range impostors {
		if !processAlive(p.Process.Pid) {
			t.Errorf("pid %d, which is another's by now, was ended", p.Process.Pid)
		}
	}
}
