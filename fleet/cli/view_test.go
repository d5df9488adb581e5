package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// view is a run of the program that goes on printing.
type view struct {
	r   *rig
	cmd *exec.Cmd

	mu  sync.Mutex // guards out
	out bytes.Buffer
}

func (v *view) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.out.Write(p)
}

func (v *view) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.out.String()
}

// view starts the program without a terminal.
func (r *rig) view(args ...string) *view {
	r.t.Helper()
	v := &view{r: r, cmd: r.command(args...)}
	v.cmd.Stdout, v.cmd.Stderr = v, v
	if err := v.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		v.cmd.Process.Kill()
		v.cmd.Wait()
	})
	return v
}

func (v *view) shows(s string) {
	v.r.t.Helper()
	defer func() {
		if v.r.t.Failed() {
			v.r.t.Logf("it printed:\n%s", v.text())
		}
	}()
	v.r.await("it prints "+s, func() bool { return strings.Contains(v.text(), s) })
}

// ends interrupts it, and wants exit code 0.
func (v *view) ends() string {
	v.r.t.Helper()
	v.cmd.Process.Signal(syscall.SIGINT)
	v.cmd.Wait()
	if code := v.cmd.ProcessState.ExitCode(); code != 0 {
		v.r.t.Errorf("exit %d: %s", code, v.text())
	}
	return v.text()
}

const withAsker = agents + `
[profiles.asker]
command = ["sh", "-c", "$FLEETDECK_EXE report waiting -m \"$(printf 'Which\\033]0;owned\\007 one?')\"; exec sleep 600"]
ready = "report"
`

func TestThePlainViewTellsEachChangeInALineOfItsOwn(t *testing.T) {
	full(t)
	t.Parallel()
	r := newRig(t, withAsker)
	v := r.view("--plain")
	v.shows("daemon is down, start it with 'fleetdeck up'")
	r.must(nil, "up")
	v.shows("daemon is up, pid")
	tree := r.repo("api")
	out, code := r.dispatch(tree, "--profile", "asker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	v.shows("tree " + tree + " is occupied by member " + out.Member)
	v.shows("member " + out.Member + " in " + tree + " waits: “Which one?”")
	release := r.holdLock()
	v.shows("lock is held by pid")
	release()
	v.shows("lock is free")
	r.must(nil, "queue", "add", tree, "--profile", "worker", "--task", "next")
	v.shows("for " + tree + " is queued")
	r.must(nil, "stop", out.Member)
	v.shows("member " + out.Member + " in " + tree + " ended with code")
	v.shows("has left the queue")
	r.must(nil, "down")
	v.shows("daemon is down, start it with 'fleetdeck up': ")
	text := v.ends()
	if strings.ContainsAny(text, "\x1b\r\x07") {
		t.Errorf("it prints control characters: %q", text)
	}
}

func TestARecordedIncidentIsReplayedByAnotherProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t, withAsker)
	r.must(nil, "up")
	file := filepath.Join(r.dir, "incident")
	v := r.view("--plain", "--json", "--record="+file)
	v.shows("daemon is up")
	tree := r.repo("api")
	out, code := r.dispatch(tree, "--profile", "asker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	v.shows("waits: “Which one?”")
	r.must(nil, "stop", out.Member)
	v.shows("ended with code")
	r.await("the last is on record", func() bool {
		data, _ := os.ReadFile(file)
		return bytes.Contains(data, []byte(`"state":"exited"`))
	})
	for _, line := range strings.Split(strings.TrimSpace(v.ends()), "\n") {
		var c struct{ Kind, Text string }
		if err := json.Unmarshal([]byte(line), &c); err != nil || c.Kind == "" || c.Text == "" {
			t.Errorf("%v in %q", err, line)
		}
	}
	if _, stderr, code := r.fleetdeck("--plain", "--record="+file); code != 2 || !strings.Contains(stderr, file) {
		t.Errorf("recording over a file: exit %d: %s", code, stderr)
	}

	// The fleet is gone by now: all that is shown comes from the file.
	stdout, stderr, code := r.fleetdeck("--plain", "--replay="+file, "--speed=1000")
	if code != 0 {
		t.Fatalf("replay: exit %d: %s", code, stderr)
	}
	for _, want := range []string{"daemon is up", "member " + out.Member, "ended with code"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the replay does not print %q:\n%s", want, stdout)
		}
	}
	c := r.open(120, 40, "--replay="+file, "--speed=1000")
	c.shows("daemon up")
	c.shows(filepath.Base(tree))
	c.quits()
	c.whole()
	if _, stderr, code := r.fleetdeck("--plain", "--replay="+r.config); code != 2 || !strings.Contains(stderr, "no recording") {
		t.Errorf("replay of another file: exit %d: %s", code, stderr)
	}
}

func TestTheFlagsOfTheConsoleThatExcludeEachOther(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	for _, args := range [][]string{
		{"--record=a", "--replay=b"}, {"--speed=2"}, {"--replay=a", "--speed=-1"}, {"--record=a"}, {"--replay=a"},
		{"--plain", "--replay=" + filepath.Join(r.dir, "missing")},
	} {
		if _, stderr, code := r.fleetdeck(args...); code != 2 {
			t.Errorf("%v: exit %d, want 2: %s", args, code, stderr)
		}
	}
}

func TestTheVersionIsToldByFlagAndByCommandWithoutADaemon(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	byCommand, _, _ := r.fleetdeck("version")
	byFlag, stderr, code := r.fleetdeck("--version")
	if code != 0 || byFlag != byCommand || !strings.HasPrefix(byFlag, "fleetdeck ") {
		t.Errorf("--version: %d, %q, %s; version: %q", code, byFlag, stderr, byCommand)
	}
	if _, err := os.Stat(filepath.Join(r.state, "fleetd.sock")); err == nil {
		t.Error("a daemon was started for it")
	}
}

func TestAReadOnlyConsoleStartsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	c := r.open(120, 40, "--read-only", "--no-color")
	c.shows("DAEMON DOWN")
	c.keys("s")
	c.quits()
	c.whole()
	if _, err := os.Stat(filepath.Join(r.state, "registry.json")); err == nil {
		t.Error("a daemon was started")
	}
}
