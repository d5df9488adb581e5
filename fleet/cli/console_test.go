package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"fleetdeck/fleet"
	"fleetdeck/fleet/screen"
	"fleetdeck/lockfile"
)

// terminal is a real pseudo-terminal with the program in it, and an emulator that shows what a person would see.
type terminal struct {
	r    *rig
	cmd  *exec.Cmd
	pty  *os.File
	ends chan struct{}

	mu     sync.Mutex // guards all below
	screen *screen.Screen
	raw    bytes.Buffer
}

// open runs the program in a terminal of the given size.
func (r *rig) open(cols, rows int, args ...string) *terminal {
	r.t.Helper()
	if len(args) == 0 {
		args = []string{"--no-color"}
	}
	return r.in(cols, rows, r.command(args...))
}

// in runs a command in a terminal of the given size.
func (r *rig) in(cols, rows int, cmd *exec.Cmd) *terminal {
	r.t.Helper()
	t := &terminal{r: r, cmd: cmd, ends: make(chan struct{}), screen: screen.New(cols, rows)}
	t.cmd.Env = append(cmd.Environ(), "TERM=xterm-256color")
	var err error
	t.pty, err = pty.StartWithSize(t.cmd, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)})
	if err != nil {
		r.t.Fatal(err)
	}
	go func() {
		defer close(t.ends)
		buf := make([]byte, 32<<10)
		for {
			n, err := t.pty.Read(buf)
			t.mu.Lock()
			t.raw.Write(buf[:n])
			t.screen.Write(buf[:n])
			t.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	r.t.Cleanup(func() {
		t.cmd.Process.Kill()
		t.cmd.Wait()
		t.pty.Close()
		<-t.ends
	})
	return t
}

func (t *terminal) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.screen.Snapshot().Lines, "\n")
}

func (t *terminal) output() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.raw.Bytes())
}

func (t *terminal) keys(s string) {
	t.r.t.Helper()
	if _, err := t.pty.WriteString(s); err != nil {
		t.r.t.Fatal(err)
	}
}

// shows waits until the screen shows s.
func (t *terminal) shows(s string) {
	t.r.t.Helper()
	defer func() {
		if t.r.t.Failed() {
			t.r.t.Logf("the screen shows:\n%s", t.text())
		}
	}()
	t.r.await(fmt.Sprintf("the screen shows %q", s), func() bool { return strings.Contains(t.text(), s) })
}

// confirms says yes to the dialog that shows text. A dialog that has just come up takes no key for a moment.
func (t *terminal) confirms(text string) {
	t.r.t.Helper()
	for range 20 {
		t.keys("y")
		for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if !strings.Contains(t.text(), text) {
				return
			}
		}
	}
	t.r.t.Fatalf("the dialog does not take its yes:\n%s", t.text())
}

// quits presses q until the program ends: while an act is under way it says so instead.
func (t *terminal) quits() {
	t.r.t.Helper()
	t.r.await("the program ends", func() bool {
		t.pty.WriteString("q")
		select {
		case <-t.ends:
			return true
		case <-time.After(100 * time.Millisecond):
			return false
		}
	})
}

func (t *terminal) shrink(cols, rows int) {
	t.r.t.Helper()
	t.mu.Lock()
	t.screen.Resize(cols, rows)
	t.mu.Unlock()
	if err := pty.Setsize(t.pty, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		t.r.t.Fatal(err)
	}
}

// whole checks that the terminal is as a shell expects it.
func (t *terminal) whole() {
	t.r.t.Helper()
	t.r.await("the program has ended", func() bool {
		select {
		case <-t.ends:
			return true
		default:
			return false
		}
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.screen.Modes(); m.AltScreen || m.CursorHidden || m.BracketedPaste || m.MouseNormal || m.MouseAny || m.MouseButton || m.FocusEvents {
		t.r.t.Errorf("the terminal is left in modes %+v", m)
	}
}

func TestConsoleShowsWhatAnotherProcessWrites(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	c := r.open(120, 40)
	c.shows("daemon up")
	tree := r.repo("written-elsewhere")
	r.must(nil, "reserve", tree, "--profile", "worker")
	c.shows("written-elsewhere")
	c.shows("reserved")
	r.must(nil, "release", tree)
	r.await("it is gone from the screen", func() bool { return !strings.Contains(c.text(), "written-elsewhere") })
	c.keys("q")
	c.whole()
}

func TestConsoleShowsTheLastOfManyReplacementsMadeWhileItWasStopped(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, agents)
	c := r.open(120, 40)
	c.shows("daemon up")
	c.cmd.Process.Signal(syscall.SIGSTOP)
	r.await("it is stopped", func() bool { return stopped(c.cmd.Process.Pid) })

	file, err := lockfile.Open(r.file())
	if err != nil {
		t.Fatal(err)
	}
	write := func(doc *lockfile.Document) {
		// Written as any foreign writer may: what counts here is the number of renames.
		tmp := r.file() + ".other"
		if err := os.WriteFile(tmp, doc.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, r.file()); err != nil {
			t.Fatal(err)
		}
	}
	held, err := file.Lock(t.Context(), patience)
	if err != nil {
		t.Fatal(err)
	}
	empty, last := lockfile.NewDocument("fleetdeck.reservations/1"), lockfile.NewDocument("fleetdeck.reservations/1")
	last.Set("/src/the-last-one", json.RawMessage(`{"id":"x","expires_at":"2999-01-01T00:00:00Z"}`))
	for range 20_000 {
		write(empty)
	}
	write(last)
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	c.cmd.Process.Signal(syscall.SIGCONT)
	c.shows("the-last-one")
	r.must(nil, "release", "/src/the-last-one")
}

func TestConsoleOutlivesItsStateDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	t.Cleanup(func() {
		if _, err := os.Stat(r.state + ".away"); err == nil {
			os.RemoveAll(r.state)
			os.Rename(r.state+".away", r.state)
		}
	})
	c := r.open(120, 40)
	c.shows("daemon up")
	daemon := r.daemonPid()
	away := r.state + ".away"
	if err := os.Rename(r.state, away); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(r.state, 0o700); err != nil {
		t.Fatal(err)
	}
	entry := `{"$format":"fleetdeck.reservations/1","/src/in-the-new-one":{"id":"x","expires_at":"2999-01-01T00:00:00Z"}}`
	if err := os.WriteFile(r.file(), []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	c.shows("in-the-new-one")
	r.await("the daemon of the old one ends", func() bool { return !slices.Contains(marked(r.state), daemon) })
	if err := os.RemoveAll(r.state); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, r.state); err != nil {
		t.Fatal(err)
	}
	r.must(nil, "up")
	c.shows("daemon up")
	r.must(nil, "reserve", r.repo("in-the-old-one"), "--profile", "worker")
	c.shows("in-the-old-one")
}

func TestConsoleFitsAfterEveryResize(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	r.must(nil, "reserve", r.repo("api"), "--profile", "worker")
	c := r.open(120, 40)
	c.shows("Reservations")
	c.shrink(40, 10)
	r.await("the small frame fits", func() bool {
		lines := strings.Split(c.text(), "\n")
		return len(lines) == 10 && strings.Contains(c.text(), "api") && !strings.Contains(c.text(), "Reservations 1 ──")
	})
	c.shrink(20, 5)
	c.shows("40")
	c.shrink(120, 40)
	c.shows("Reservations")
	c.shows("daemon up")
}

// hostile is output and text that would change the operator's terminal if it got there.
const hostile = "\x1b]52;c;aGF4\x07\x1b]0;owned\x07\x1b[2J\x1b[?1049l\x1b[31mred\u202egnp\x1b]8;;http://x\x07link"

func TestHostileOutputNeverReachesTheOperatorsTerminalRaw(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents+`
[profiles.hostile]
command = ["sh", "-c", "cat $FLEETDECK_TASK_FILE; printf 'the end\n'; exec sleep 600"]
ready = "pattern:the end"
`)
	c := r.open(120, 40)
	c.shows("daemon up")
	tree := r.repo("nasty")
	task := filepath.Join(r.dir, "task")
	if err := os.WriteFile(task, []byte(hostile), 0o644); err != nil {
		t.Fatal(err)
	}
	out, code := r.dispatch(tree, "--profile", "hostile", "--task-file", task, "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	c.shows("nasty")
	c.shows("the end")
	for _, args := range [][]string{{"screen", tree}, {"screen", tree, "--color"}, {"logs", tree}, {"members"}, {"events"}} {
		stdout, _, _ := r.fleetdeck(args...)
		for _, bad := range []string{"\x1b]", "\x1b[2J", "\x1b[?", "\u202e", "\x07"} {
			if strings.Contains(stdout, bad) {
				t.Errorf("%v prints %q: %q", args, bad, stdout)
			}
		}
	}
	raw := c.output()
	for _, bad := range []string{"]52;", "]0;owned", "]2;owned", "\u202e", "\x1b]8;;http"} {
		if bytes.Contains(raw, []byte(bad)) {
			t.Errorf("the console wrote %q to its terminal", bad)
		}
	}
	a := r.open(100, 30, "attach", out.Member)
	a.shows("the end")
	raw = a.output()
	for _, bad := range []string{"]52;", "]0;owned", "]2;owned", "\u202e", "\x1b]8;;http"} {
		if bytes.Contains(raw, []byte(bad)) {
			t.Errorf("attach wrote %q to its terminal", bad)
		}
	}
	a.keys("\x1d")
	a.whole()
}

func TestConsoleDispatchesAndPrunesByKeyboard(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	if err := os.WriteFile(r.config, []byte(strings.ReplaceAll(agents, "DIR", r.dir)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tree := r.repo("api")
	data, _ := os.ReadFile(r.config)
	os.WriteFile(r.config, append([]byte(fmt.Sprintf("trees = [%q]\n", tree)), data...), 0o644)
	r.must(nil, "up")
	c := r.open(120, 40)
	c.shows("api")
	c.keys("s")
	c.shows("Profile")
	c.keys("\x1b")
	r.must(nil, "reserve", r.repo("stale"), "--profile", "worker", "--grace", "1ms")
	c.shows("to prune")
	c.keys("P")
	c.shows("stale")
	c.shows("its grace ran out")
	c.confirms("its grace ran out")
	r.await("it is pruned", func() bool { return len(r.reservations()) == 0 })

	// An act waits for the lock, says for whom, and can be called off.
	r.must(nil, "reserve", tree, "--profile", "worker", "--grace", "1ms")
	c.shows("to prune")
	release := r.holdLock()
	c.keys("P")
	c.shows("its grace ran out")
	c.confirms("its grace ran out")
	c.shows("held by pid")
	release()
	c.quits()
	c.whole()
}

func TestConsoleWithoutATerminalPrintsTheStatus(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	cmd := r.command("--quiet")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if cmd.ProcessState.ExitCode() != 0 || !bytes.Contains(out, []byte("lock          free")) {
		t.Errorf("exit %d, %q, want the status", cmd.ProcessState.ExitCode(), out)
	}
	var s struct{ Lock fleet.LockInfo }
	r.must(&s, "status")
	if s.Lock.State != "free" {
		t.Errorf("lock: %+v, want free", s.Lock)
	}
}
