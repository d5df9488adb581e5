package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cli"
	"fleetdeck/fleet/cluster/etcdrun"
)

// TestMain lets the test binary be the program: whatever calls it without a test flag gets fleetdeck itself, so that
// daemons, holders, gates and agents of these tests are the real ones.
func TestMain(m *testing.M) {
	if os.Getenv(contenderDir) != "" {
		os.Exit(contender())
	}
	if len(os.Args) == 3 && os.Args[1] == "mcp-agent" {
		os.Exit(mcpAgent(os.Args[2]))
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		serveVitals()
		os.Exit(cli.Main(os.Args[1:], cli.Build{Version: "test"}))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // hundreds of processes would sleep a second each
	etcdrun.Parallel(4 * runtime.GOMAXPROCS(0))
	code := m.Run()
	removeInstalled()
	os.Exit(code)
}

// full skips a long test where -short asks for that, as the run under the race detector does.
func full(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
}

// patience bounds every wait for a condition. No test passes or fails by how fast a machine is.
const patience = 30 * time.Second

// rig is a fleet of a test's own: a state directory, a configuration, and a directory for trees.
type rig struct {
	t      testing.TB
	dir    string
	state  string
	config string
	exe    string // the program; this test binary unless it is set
}

// agents is the profiles that most tests use. Each start of "worker" and its like appends a line to the file starts.
const agents = `
grace = "20s"
lock_wait = "10s"
prune_wait = "500ms"
[profiles.worker]
command = ["sh", "-c", "echo $FLEETDECK_MEMBER >> DIR/starts; exec sleep 600"]
[profiles.slow]
command = ["sh", "-c", "echo $FLEETDECK_MEMBER >> DIR/starts; while [ ! -e DIR/go ]; do sleep 0.05; done; echo ready; exec sleep 600"]
ready = "pattern:ready"
[profiles.never]
command = ["sh", "-c", "echo $FLEETDECK_MEMBER >> DIR/starts; trap '' TERM HUP; (trap '' TERM HUP; setsid sleep 600) & sleep 600; sleep 600"]
ready = "pattern:never"
[profiles.dies]
command = ["sh", "-c", "exit 9"]
ready = "pattern:never"
[profiles.missing]
command = ["no-such-program-anywhere"]
[profiles.plainfile]
command = ["DIR/plainfile"]
[profiles.reporter]
command = ["sh", "-c", "$FLEETDECK_EXE report working -m hello; exec sleep 600"]
ready = "report"
`

func newRig(t testing.TB, config string) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "fd") // t.TempDir's paths are too long for sockets on some systems
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, state: filepath.Join(dir, "state"), config: filepath.Join(dir, "fleetdeck.toml")}
	if err := os.WriteFile(r.config, []byte(strings.ReplaceAll(config, "DIR", dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plainfile"), []byte("no program\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, stderr, code := r.fleetdeck("up"); code != 0 {
			t.Errorf("up: exit %d: %s", code, stderr)
		}
		if _, stderr, code := r.fleetdeck("down", "--stop-members"); code != 0 {
			t.Errorf("down --stop-members: exit %d: %s", code, stderr)
		}
		if t.Failed() {
			if log, err := os.ReadFile(filepath.Join(r.state, "daemon.log")); err == nil {
				t.Logf("daemon.log:\n%s", log)
			}
			if events, err := os.ReadFile(filepath.Join(r.state, "events.jsonl")); err == nil {
				t.Logf("events:\n%s", events[max(0, len(events)-8<<10):])
			}
		}
		var left []int
		defer func() {
			for _, pid := range left {
				t.Logf("%d is left: %q", pid, commandLine(pid))
			}
			if log, err := os.ReadFile(filepath.Join(r.state, "daemon.log")); err == nil && len(left) > 0 {
				t.Logf("daemon.log:\n%s", log)
			}
		}()
		r.await("no process is left behind", func() bool { left = marked(r.state); return len(left) == 0 })
		os.RemoveAll(dir)
	})
	return r
}

// command makes a run of the program over the rig.
func (r *rig) command(args ...string) *exec.Cmd {
	exe := r.exe
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			r.t.Fatal(err)
		}
	}
	cmd := exec.Command(exe, append(args[:1:1], append([]string{"--state", r.state, "--config", r.config}, args[1:]...)...)...)
	cmd.Dir = r.dir
	return cmd
}

// fleetdeck runs the program and gives what it printed and its exit code.
func (r *rig) fleetdeck(args ...string) (stdout, stderr string, code int) {
	r.t.Helper()
	var out, errs bytes.Buffer
	cmd := r.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatalf("run %v: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must runs the program, wants exit code 0 and, where v is given, reads its JSON.
func (r *rig) must(v any, args ...string) {
	r.t.Helper()
	if v != nil {
		args = append(args[:1:1], append([]string{"--json"}, args[1:]...)...)
	}
	stdout, stderr, code := r.fleetdeck(args...)
	if code != 0 {
		r.t.Fatalf("fleetdeck %v: exit %d: %s%s", args, code, stdout, stderr)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(stdout), v); err != nil {
			r.t.Fatalf("fleetdeck %v: %v in %q", args, err, stdout)
		}
	}
}

// dispatch dispatches with --json and gives outcome and exit code.
func (r *rig) dispatch(tree string, args ...string) (fleet.Outcome, int) {
	r.t.Helper()
	stdout, stderr, code := r.fleetdeck(append([]string{"dispatch", "--json", tree}, args...)...)
	var out fleet.Outcome
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		r.t.Logf("dispatch %s %v: exit %d, no outcome: %s", tree, args, code, stderr)
	}
	return out, code
}

// repo makes a git repository and gives its path.
func (r *rig) repo(name string) string {
	r.t.Helper()
	return r.repoAt(filepath.Join(r.dir, "src", name))
}

func (r *rig) repoAt(path string) string {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(path, "sub", "dir"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command("git", "init", "--quiet", path)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git init: %v: %s", err, out)
	}
	return path
}

// starts gives the members whose process was really started, in order.
func (r *rig) starts() []string {
	data, err := os.ReadFile(filepath.Join(r.dir, "starts"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Fields(string(data))
}

// begun waits until n agents have begun, which may be a moment after they are listed, and gives all that have.
func (r *rig) begun(n int) []string {
	r.t.Helper()
	r.await(fmt.Sprintf("%d agents have begun", n), func() bool { return len(r.starts()) >= n })
	return r.starts()
}

func (r *rig) members() []fleet.Member {
	r.t.Helper()
	var m []fleet.Member
	r.must(&m, "members")
	return m
}

func (r *rig) alive() []fleet.Member {
	r.t.Helper()
	var alive []fleet.Member
	for _, m := range r.members() {
		if m.Alive() {
			alive = append(alive, m)
		}
	}
	return alive
}

func (r *rig) reservations() []fleet.ReservationRow {
	r.t.Helper()
	var rows []fleet.ReservationRow
	r.must(&rows, "reservations")
	return rows
}

// tree gives the row of a tree; one that nobody knows of is free.
func (r *rig) tree(path string) fleet.TreeRow {
	r.t.Helper()
	var rows []fleet.TreeRow
	r.must(&rows, "trees")
	for _, row := range rows {
		if row.Tree == path {
			return row
		}
	}
	return fleet.TreeRow{Tree: path, Occupancy: fleet.Free}
}

// anyReserved reports whether any tree is reserved.
func (r *rig) anyReserved() bool {
	r.t.Helper()
	var rows []fleet.TreeRow
	r.must(&rows, "trees")
	for _, row := range rows {
		if row.Occupancy == fleet.Reserved {
			return true
		}
	}
	return false
}

// await waits until ok holds.
func (r *rig) await(what string, ok func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for began := time.Now(); !ok(); {
		select {
		case <-ctx.Done():
			r.t.Fatalf("%s: not within %s", what, patience)
		case <-time.After(min(5*time.Millisecond+time.Since(began)/5, 50*time.Millisecond)): // many conditions look at every process
		}
	}
}

func (r *rig) awaitOccupancy(path string, want fleet.Occupied) {
	r.t.Helper()
	r.await(fmt.Sprintf("%s is %s", path, want), func() bool { return r.tree(path).Occupancy == want })
}

// daemonPid is the daemon's process.
func (r *rig) daemonPid() int {
	r.t.Helper()
	var s struct {
		Daemon fleet.DaemonInfo `json:"daemon"`
	}
	r.must(&s, "status")
	return s.Daemon.Pid
}

// kill ends the daemon as a crash would.
func (r *rig) kill() {
	r.t.Helper()
	if pid := r.daemonPid(); pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			r.t.Fatal(err)
		}
	}
}

// file is the path of the reservation file.
func (r *rig) file() string { return filepath.Join(r.state, "reservations.json") }

// fileState is the reservation file as bytes and identity.
func (r *rig) fileState() (string, os.FileInfo) {
	r.t.Helper()
	info, err := os.Stat(r.file())
	if err != nil {
		r.t.Fatal(err)
	}
	data, err := os.ReadFile(r.file())
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data), info
}

// holdLock makes another process hold the admission lock until release is called.
func (r *rig) holdLock() (release func()) {
	r.t.Helper()
	cmd := r.command("lock", "--", "sh", "-c", "echo held; read line")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 5)); err != nil {
		r.t.Fatalf("hold the lock: %v", err)
	}
	released := false
	release = func() {
		if !released {
			released = true
			stdin.Close()
			cmd.Wait()
		}
	}
	r.t.Cleanup(release)
	return release
}

// processAlive reports whether a process runs that is no zombie.
func processAlive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err == nil
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// marked gives the processes that hold marker in their environment or command line.
func marked(marker string) []int {
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		env, _ := os.ReadFile(d + "/environ")
		line, _ := os.ReadFile(d + "/cmdline")
		if bytes.Contains(env, []byte(marker)) || bytes.Contains(line, []byte(marker)) {
			var pid int
			if fmt.Sscanf(filepath.Base(d), "%d", &pid); pid != os.Getpid() {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// commandLine is the argv of a process, separated by NULs.
func commandLine(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(data)
}
