package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"fleetdeck/fleet"
)

// sweepAgents has one profile, whose agent is over at once.
const sweepAgents = `
lock_wait = "10s"
[profiles.brief]
command = ["true"]
`

// sweep is a rig whose dispatchers run under strace.
type sweep struct {
	*rig
	strace string
	trees  int
}

// deadWritersFile is the temporary file of a writer that died earlier.
const deadWritersFile = ".reservations.json.tmp-1-dead"

// standing is a foreign entry that stands in the file all the time.
const standing = "/else/where"

func newSweep(t *testing.T) *sweep {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("SKIPPED, no system call was made to fail: no strace here")
	}
	out, err := exec.Command(strace, "-f", "-qq", "-e", "trace=fsync", "-e", "inject=fsync:error=EIO", "true").CombinedOutput()
	if err != nil {
		t.Skipf("SKIPPED, no system call was made to fail: strace cannot trace here: %v: %s", err, out)
	}
	s := &sweep{rig: newRig(t, sweepAgents), strace: strace}
	s.must(nil, "up")
	doc := `{"` + standing + `": {"id": "other", "expires_at": "2100-01-01T00:00:00Z", "mine": [1, 2]}}`
	if err := os.WriteFile(s.file(), []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// newTree makes a directory that nobody has reserved.
func (s *sweep) newTree() string {
	s.t.Helper()
	s.trees++
	tree := filepath.Join(s.dir, "trees", fmt.Sprint(s.trees))
	if err := os.MkdirAll(tree, 0o755); err != nil {
		s.t.Fatal(err)
	}
	return tree
}

// point is a system call at which something happens to a dispatcher.
type point struct {
	call string // as strace names it
	path string // only where it has to do with this path; empty means everywhere
	n    int    // at its nth time, counted by strace for each thread
}

// traced runs "fleetdeck command tree" under strace, with what happens at p, and says how it ended.
func (s *sweep) traced(command, tree string, p point, what string) (stderr string, code int, killed bool) {
	s.t.Helper()
	args := []string{"-f", "-qq", "-o", os.DevNull, "-e", "trace=" + p.call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", p.call, what, p.n)}
	if p.path != "" {
		args = append(args, "-P", p.path)
	}
	run := s.command(command, tree, "--no-git", "--profile", "brief")
	cmd := exec.Command(s.strace, append(append(args, run.Path), run.Args[1:]...)...)
	var errs bytes.Buffer
	cmd.Stderr, cmd.Dir = &errs, s.dir
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus) // strace ends as its child did
	return errs.String(), ws.ExitStatus(), ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// stage is how far a dispatcher had come in its write, by what it left.
type stage string

const (
	before  stage = "the old file"
	between stage = "the old file and a temporary one"
	after   stage = "the new file"
)

// wantSound demands that the file is whole and keeps the entry of others, and that the lock is free. It says how far the
// writer for tree had come.
func (s *sweep) wantSound(tree string) stage {
	s.t.Helper()
	doc := s.entries()
	if other, _ := doc[standing].(map[string]any); other["id"] != "other" || fmt.Sprint(other["mine"]) != "[1 2]" {
		s.t.Errorf("the entry of others is %v now", other)
	}
	if e, ok := doc[tree]; ok {
		if m, _ := e.(map[string]any); m["id"] == nil || m["expires_at"] == nil {
			s.t.Errorf("the entry is %v, want a whole one", e)
		}
	}
	// The daemon may hold the lock for a moment, to settle.
	for try := 0; ; try++ {
		_, stderr, code := s.fleetdeck("lock", "--wait", "1ms", "--", "true")
		if code == 0 {
			break
		}
		if try == 5 {
			s.t.Errorf("the lock is not free: exit %d: %s", code, stderr)
			break
		}
	}
	if _, reserved := doc[tree]; reserved {
		return after
	}
	if slices.ContainsFunc(s.litter(), func(name string) bool { return filepath.Base(name) != deadWritersFile }) {
		return between
	}
	return before
}

// wantNextToWork demands that the next dispatcher, into another tree, succeeds and leaves no temporary file of dead ones.
func (s *sweep) wantNextToWork() {
	s.t.Helper()
	next := s.newTree()
	var out fleet.Outcome
	s.must(&out, "reserve", next, "--no-git", "--profile", "brief")
	// The daemon may be writing at this moment: what it has open is not litter.
	left := slices.DeleteFunc(s.litter(), func(path string) bool {
		var pid int
		fmt.Sscanf(filepath.Base(path), ".reservations.json.tmp-%d-", &pid)
		return pid != 0 && processAlive(pid)
	})
	if len(left) > 0 {
		s.t.Errorf("the next write left %v of the dead one", left)
	}
	s.must(nil, "release", next, "--id", out.Reservation)
}

// leaveDeadWritersFile leaves a temporary file as a writer that was killed does, so that its removal is swept over too.
func (s *sweep) leaveDeadWritersFile() {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.state, deadWritersFile), []byte(`{"half`), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func TestDispatcherKilledAtAnySystemCallLeavesASoundFile(t *testing.T) {
	t.Parallel()
	full(t)
	s := newSweep(t)
	lock, dir := s.file()+".lock", s.state
	for _, command := range []string{"reserve", "dispatch"} {
		all := map[stage]int{}
		for _, calls := range []struct {
			call, path string
			most       int
		}{
			{"/^open", lock, 3}, {"/^open", s.file(), 2}, {"/^open", dir, 2}, {"/^open", "", 24},
			{"flock", lock, 3}, {"fcntl", lock, 4},
			{"/^fchmod", "", 1}, {"/^fchown", "", 1}, {"write", "", 6}, {"fsync", "", 2},
			{"/^rename", "", 1}, {"/^unlink", "", 2}, {"/^getdents", dir, 2},
			{"close", lock, 2}, {"close", dir, 2}, {"close", "", 14},
		} {
			seen := map[stage]int{}
			for n := 1; n <= calls.most; n++ {
				tree := s.newTree()
				s.leaveDeadWritersFile()
				_, _, killed := s.traced(command, tree, point{calls.call, calls.path, n}, "signal=KILL")
				if !killed {
					continue // it does not come here so often, or git was killed instead
				}
				reached := s.wantSound(tree)
				seen[reached]++
				all[reached]++
				s.wantNextToWork()
				if t.Failed() {
					t.Fatalf("%s was killed at %s %d of %q, and left %s", command, calls.call, n, calls.path, reached)
				}
			}
			t.Logf("%s, killed at %s %s: %v", command, calls.call, strings.TrimPrefix(calls.path, dir), seen)
		}
		if all[before] == 0 || all[between] == 0 || all[after] == 0 {
			t.Errorf("%s was killed only with %v behind it: the sweep has lost its aim", command, all)
		}
	}
}

// tries is how often a failure is aimed at the one call that matters: strace counts for each thread.
const tries = 30

func TestFailingSystemCallIsAClearErrorAndKeepsTheOldFile(t *testing.T) {
	t.Parallel()
	full(t)
	s := newSweep(t)
	for _, f := range []struct {
		call, what string
		says       string // said at the call that writes the file
	}{
		{"write", "error=ENOSPC", "make room on the file system of " + s.state},
		{"write", "error=EIO", "input/output error"},
		{"fsync", "error=ENOSPC", "make room on the file system of " + s.state},
		{"fsync", "error=EIO", "input/output error"},
		{"/^rename", "error=ENOSPC", "make room on the file system of " + s.state},
		{"/^rename", "error=EIO", "input/output error"},
		{"/^rename", "error=EBUSY", "mount its directory, not the file"},
		{"/^fchmod", "error=EPERM", "not permitted"},
	} {
		for _, command := range []string{"reserve", "dispatch"} {
			// A thread of the program may have written elsewhere before, or not: the write of the file is its first or its second.
			met := false
			for try := 0; !met && try < tries; try++ {
				tree := s.newTree()
				stderr, code, killed := s.traced(command, tree, point{call: f.call, n: 1 + try%2}, f.what)
				if killed {
					t.Fatalf("%s, %s at %s: it was killed", command, f.what, f.call)
				}
				reached := s.wantSound(tree)
				if reached == between {
					t.Errorf("%s, %s at %s: it left %v", command, f.what, f.call, s.litter())
				}
				if met = strings.Contains(stderr, "write the reservation file"); !met {
					continue
				}
				if code != 1 || reached != before || !strings.Contains(stderr, f.says) || !strings.Contains(stderr, s.file()) {
					t.Errorf("%s, %s at %s: exit %d, %s, and it says %q, want 1, %s, the path and %q",
						command, f.what, f.call, code, reached, stderr, before, f.says)
				}
			}
			if !met {
				t.Logf("SKIPPED: in %d tries %s of %s never met the write of the file at %s", tries, f.what, command, f.call)
			}
			s.wantNextToWork()
		}
	}
}

func TestInterruptedLockIsTakenAllTheSame(t *testing.T) {
	t.Parallel()
	full(t)
	s := newSweep(t)
	for n := 1; n <= 2; n++ {
		tree := s.newTree()
		if stderr, code, _ := s.traced("reserve", tree, point{"flock", s.file() + ".lock", n}, "error=EINTR"); code != 0 {
			t.Errorf("EINTR at flock %d: exit %d: %s", n, code, stderr)
		}
		if got := s.wantSound(tree); got != after {
			t.Errorf("EINTR at flock %d leaves %s", n, got)
		}
	}
}

func TestDirectoryThatCannotBeSyncedIsDoneWithAWarning(t *testing.T) {
	t.Parallel()
	full(t)
	s := newSweep(t)
	for _, command := range []string{"reserve", "dispatch"} {
		tree := s.newTree()
		stderr, code, _ := s.traced(command, tree, point{"fsync", s.state, 1}, "error=EIO")
		if code != 0 || !strings.Contains(stderr, "fleetdeck: warning: ") || !strings.Contains(stderr, s.file()) {
			t.Errorf("%s: exit %d, %q, want 0 and a warning that names the file", command, code, stderr)
		}
		if got := s.wantSound(tree); command == "reserve" && got != after {
			t.Errorf("%s leaves %s, want %s", command, got, after)
		}
	}
}
