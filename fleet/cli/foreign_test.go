package cli_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/client"
	seen "fleetdeck/fleet/foreign"
)

// handStarted makes the program "claude" of a rig, and needs a system that shows who runs it.
func (r *rig) handStarted() (program string) {
	r.t.Helper()
	if !seen.Supported {
		r.t.Skip("this system does not show where processes work: foreign agents are not seen on it")
	}
	program = filepath.Join(r.dir, "claude")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho here\nread line\n"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	return program
}

// byHand starts program in dir as a person would, and gives its pid and its end.
func (r *rig) byHand(program, dir string, env ...string) (pid int, end func()) {
	r.t.Helper()
	c := exec.Command(program)
	c.Dir, c.Env = dir, env
	stdin, err := c.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 5)); err != nil {
		r.t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			stdin.Close()
			c.Wait()
		}
	}
	r.t.Cleanup(end)
	return c.Process.Pid, end
}

func TestNobodyIsSentWhereAForeignAgentWorks(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, "roots = [\"src\"]\n"+agents)
	program := r.handStarted()
	r.must(nil, "up")
	path, other := r.repo("api"), r.repo("web")
	pid, end := r.byHand(program, filepath.Join(path, "sub", "dir"))
	r.awaitOccupancy(path, fleet.Foreign)
	if row := r.tree(path); row.Foreign.Pid != pid || row.Foreign.Agent != "claude" || row.Foreign.Since.IsZero() {
		t.Errorf("%+v, want pid %d", row, pid)
	}
	link := filepath.Join(r.dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, spelling := range []string{path, link, filepath.Join(path, "sub")} {
		out, code := r.dispatch(spelling, "--profile", "worker")
		if code != 3 || out.Code != fleet.CodeTreeForeign || !strings.Contains(out.Message, strconv.Itoa(pid)) || !strings.Contains(out.Hint, "--beside-foreign") {
			t.Errorf("dispatch to %s: exit %d, %+v", spelling, code, out)
		}
	}
	if got := r.reservations(); len(got) > 0 {
		t.Errorf("reservations %+v", got)
	}
	stdout, _, _ := r.fleetdeck("explain", path, "--profile", "worker")
	if !strings.Contains(stdout, strconv.Itoa(pid)) || !strings.Contains(stdout, string(fleet.CodeTreeForeign)) {
		t.Errorf("explain says %s", stdout)
	}
	if out, code := r.dispatch(other, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch to another tree: exit %d, %+v", code, out)
	}

	out, code := r.dispatch(path, "--profile", "worker", "--beside-foreign", "--wait")
	if code != 0 {
		t.Fatalf("--beside-foreign: exit %d, %+v", code, out)
	}
	if row := r.tree(path); row.Occupancy != fleet.Taken || row.Member != out.Member || row.Foreign.Pid != pid {
		t.Errorf("beside it: %+v", row)
	}
	r.must(nil, "stop", out.Member)
	if row := r.tree(path); row.Occupancy != fleet.Foreign {
		t.Errorf("after the member: %+v", row)
	}
	end()
	if row := r.tree(path); row.Occupancy != fleet.Free || row.Foreign != (fleet.ForeignRow{}) {
		t.Errorf("after the agent: %+v", row)
	}
}

func TestTheDaemonItselfRefusesASpawnBesideAForeignAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, "roots = [\"src\"]\n"+agents)
	program := r.handStarted()
	r.must(nil, "up")
	path := r.repo("api")
	var out fleet.Outcome
	r.must(&out, "reserve", path, "--profile", "worker")
	r.byHand(program, path)
	c := client.New(filepath.Join(r.state, "fleetd.sock"), "")
	r.await("it is seen", func() bool {
		roster, err := c.Roster(t.Context())
		return err == nil && slices.ContainsFunc(roster.Foreign, func(f fleet.ForeignAgent) bool { return f.Tree == path })
	})
	req := api.Spawn{Reservation: out.Reservation, Tree: path, Role: "dev", Profile: "worker"}
	if _, err := c.Spawn(t.Context(), req); fleet.RefusalOf(err) == nil || fleet.RefusalOf(err).Code != fleet.CodeTreeForeign {
		t.Errorf("spawn: %v, want %s", err, fleet.CodeTreeForeign)
	}
	req.BesideForeign = true
	if _, err := c.Spawn(t.Context(), req); err != nil {
		t.Errorf("spawn beside it: %v", err)
	}
}

func TestMembersAreNotForeign(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents+`
[profiles.claude]
command = ["DIR/claude"]
[profiles.parent]
command = ["sh", "-c", "env -i DIR/claude; sleep 600"]
ready = "output"
`)
	r.handStarted()
	r.must(nil, "up")
	for _, profile := range []string{"claude", "parent"} {
		path := r.repo(profile)
		for range 2 { // the second begins right after the end of the first
			out, code := r.dispatch(path, "--profile", profile, "--wait")
			if code != 0 {
				t.Fatalf("%s: exit %d, %+v", profile, code, out)
			}
			if row := r.tree(path); row.Occupancy != fleet.Taken || row.Foreign.Pid != 0 {
				t.Errorf("%s: %+v", profile, row)
			}
			r.must(nil, "stop", out.Member)
		}
	}
}

func TestForeignAgentsAreNotLookedForWhereThatIsOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, "foreign = false\n"+agents)
	program := r.handStarted()
	r.must(nil, "up")
	path := r.repo("api")
	r.byHand(program, path)
	if out, code := r.dispatch(path, "--profile", "worker"); code != 0 || r.tree(path).Foreign.Pid != 0 {
		t.Errorf("exit %d, %+v", code, out)
	}
}

func TestAQueuedTaskIsSentOnceTheForeignAgentHasEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, "roots = [\"src\"]\n"+agents)
	program := r.handStarted()
	r.must(nil, "up")
	path := r.repo("api")
	_, end := r.byHand(program, path)
	r.awaitOccupancy(path, fleet.Foreign)
	if stdout, stderr, code := r.fleetdeck("dispatch", path, "--profile", "worker", "--task", "x", "--queue"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	if got := r.starts(); len(got) > 0 {
		t.Errorf("%v were started beside it", got)
	}
	end()
	r.awaitOccupancy(path, fleet.Taken)
}
