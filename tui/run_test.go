package tui

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"fleetdeck/fleet"
)

// consoleEnv makes the test binary a console on its terminal. Its value says what goes wrong there.
const consoleEnv = "FLEETDECK_TEST_CONSOLE"

func TestMain(m *testing.M) {
	if fault, ok := os.LookupEnv(consoleEnv); ok {
		os.Exit(consoleMain(fault))
	}
	if kind, ok := os.LookupEnv(loadEnv); ok {
		os.Exit(loadMain(kind))
	}
	os.Exit(m.Run())
}

// faultyFleet panics where it is told to.
type faultyFleet struct {
	*fakeFleet
	fault string
	armed atomic.Bool // by an attachment
}

func (f *faultyFleet) Snapshot(ctx context.Context, rev uint64) (fleet.Snapshot, error) {
	if f.fault == "command" && rev > 0 {
		panic("a command broke")
	}
	return f.fakeFleet.Snapshot(ctx, rev)
}

// Now is called by the first View, and then by each Update.
func (f *faultyFleet) Now() fleet.Instant {
	if f.fault == "view" {
		panic("a view broke")
	}
	if f.armed.Load() {
		panic("an update broke")
	}
	return f.fakeFleet.Now()
}

// Dispatch is called by an act.
func (f *faultyFleet) Dispatch(ctx context.Context, o fleet.Order) fleet.Outcome {
	if f.fault == "act" {
		panic("an act broke")
	}
	return f.fakeFleet.Dispatch(ctx, o)
}

// Lock is called by a tick while an act is under way.
func (f *faultyFleet) Lock() fleet.LockInfo {
	if f.fault == "tick" {
		panic("a tick broke")
	}
	return f.fakeFleet.Lock()
}

// Shell is called before the terminal is handed over.
func (f *faultyFleet) Shell(tree string) (*exec.Cmd, error) {
	if f.fault == "shell" {
		panic("a shell broke")
	}
	return f.fakeFleet.Shell(tree)
}

// EditText's text is read when the terminal comes back.
func (f *faultyFleet) EditText(string) (*exec.Cmd, func() (string, error), error) {
	return exec.Command("true"), func() (string, error) { panic("coming back broke") }, nil
}

func (f *faultyFleet) Attach(string) (*exec.Cmd, error) {
	if f.fault == "attach" {
		// It leaves SIGTERM alone for as long as it takes to say so.
		return exec.Command("sh", "-c", "echo attached; trap 'echo ended; exit 3' TERM; while :; do sleep 0.05; done"), nil
	}
	f.armed.Store(f.fault == "update")
	return exec.Command("true"), nil
}

func consoleMain(fault string) int {
	start := time.Now()
	now := func() fleet.Instant {
		return fleet.Instant{Wall: time.Now(), Mono: time.Since(start), Boot: testBoot, Host: "kite"}
	}
	f := newFake(example(now()))
	f.now = now
	if fault == "tick" {
		f.act = untilCancelled
	}
	if err := Run(context.Background(), &faultyFleet{fakeFleet: f, fault: fault}, Options{Home: home}); err != nil {
		fmt.Fprintln(os.Stderr, "fleetdeck: error:", err)
		return 1
	}
	return 0
}

// terminal is a console in a terminal of its own.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	pty  *os.File
	tty  *os.File // kept open so that its modes can be read after the console has ended
	was  *unix.Termios
	done chan error

	mu  sync.Mutex
	out bytes.Buffer
}

func startConsole(t *testing.T, fault string) *terminal {
	t.Helper()
	p, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal can be opened here: %v", err)
	}
	if err := pty.Setsize(p, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, pty: p, tty: tty, done: make(chan error, 1)}
	x.was = x.modes()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x.cmd = exec.Command(exe)
	x.cmd.Env = append(os.Environ(), consoleEnv+"="+fault, "TERM=xterm-256color")
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = tty, tty, tty
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 1<<14)
		for {
			n, err := p.Read(buf)
			x.mu.Lock()
			x.out.Write(buf[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() { x.done <- x.cmd.Wait() }()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		p.Close()
		tty.Close()
	})
	return x
}

func (x *terminal) written() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String()
}

// waitFor waits until text was written.
func (x *terminal) waitFor(text string) {
	x.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(x.written(), text) {
		if time.Now().After(deadline) {
			x.t.Fatalf("%q was not written:\n%q", text, x.written())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (x *terminal) wait() error {
	x.t.Helper()
	select {
	case err := <-x.done:
		return err
	case <-time.After(20 * time.Second):
		x.t.Fatalf("the console does not end:\n%q", x.written())
		return nil
	}
}

// whole fails where the terminal was not put back.
func (x *terminal) whole() {
	x.t.Helper()
	if now := x.modes(); *now != *x.was {
		x.t.Errorf("the modes of the terminal are %+v, were %+v", now, x.was)
	}
	if strings.Contains(x.written(), "\x1b[?1049h") { // where nothing was ever drawn there is nothing to put back
		x.waitFor("\x1b[?1049l")
	}
	out := x.written()
	for _, m := range []struct{ on, off, what string }{
		{"\x1b[?1049h", "\x1b[?1049l", "the alternate screen"},
		{"\x1b[?25l", "\x1b[?25h", "the hidden cursor"},
		{"\x1b[?2004h", "\x1b[?2004l", "bracketed paste"},
		{"\x1b[?1004h", "\x1b[?1004l", "focus reports"},
		{"\x1b[>4;2m", "\x1b[>4m", "modifyOtherKeys"},
	} {
		if strings.LastIndex(out, m.on) > strings.LastIndex(out, m.off) {
			x.t.Errorf("%s is left behind", m.what)
		}
	}
}

func TestTerminalIsWholeAfterEveryWayOut(t *testing.T) {
	tests := []struct {
		name  string
		fault string
		end   func(x *terminal)
		code  int
		says  []string
	}{
		{"quit", "", func(x *terminal) { x.pty.WriteString("q") }, 0, nil},
		{"ctrl+c", "", func(x *terminal) { x.pty.WriteString("\x03") }, 0, nil},
		{"SIGHUP", "", func(x *terminal) { x.cmd.Process.Signal(syscall.SIGHUP) }, 1, []string{"the console ended: hangup"}},
		{"SIGQUIT", "", func(x *terminal) { x.cmd.Process.Signal(syscall.SIGQUIT) }, 1, []string{"the console ended: quit"}},
		{"SIGTERM", "", func(x *terminal) { x.cmd.Process.Signal(syscall.SIGTERM) }, 1, []string{"the console ended: terminated"}},
		{"panic in an update", "update", func(x *terminal) { x.waitFor("billing"); x.pty.WriteString("ajk") }, 1, []string{"the console panicked: an update broke", "run_test.go"}},
		{"panic in a view", "view", func(*terminal) {}, 1, []string{"the console panicked: a view broke", "run_test.go"}},
		{"panic in an act", "act", func(x *terminal) { x.waitFor("billing"); x.pty.WriteString("jjs\r") }, 1, []string{"the console panicked: an act broke", "run_test.go"}},
		{"panic in a tick", "tick", func(x *terminal) { x.waitFor("billing"); x.pty.WriteString("jjs\r") }, 1, []string{"the console panicked: a tick broke", "run_test.go"}},
		{"panic before the terminal is handed over", "shell", func(x *terminal) { x.waitFor("billing"); x.pty.WriteString("!") }, 1, []string{"the console panicked: a shell broke", "run_test.go"}},
		{"panic after the terminal came back", "back", func(x *terminal) { x.waitFor("billing"); x.pty.WriteString("jjs\x0f") }, 1, []string{"the console panicked: coming back broke", "run_test.go"}},
		{"panic in a command", "command", func(*terminal) {}, 1, []string{"the console panicked: a command broke", "run_test.go"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := startConsole(t, tt.fault)
			if tt.fault != "view" {
				x.waitFor("\x1b[?1049h")
			}
			if tt.fault == "" {
				x.waitFor("billing")
			}
			tt.end(x)
			_ = x.wait()
			if code := x.cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit code %d, want %d\n%q", code, tt.code, x.written())
			}
			for _, s := range tt.says {
				x.waitFor(s)
			}
			x.whole()
		})
	}
}

func TestSignalEndsAnAttachmentWithTheConsole(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh to attach to")
	}
	x := startConsole(t, "attach")
	x.waitFor("billing")
	x.pty.WriteString("a")
	x.waitFor("attached")
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	x.waitFor("ended")
	_ = x.wait()
	x.whole()
}

func TestPanicOfAViewIsReportedWithItsStack(t *testing.T) {
	ctx, fail := context.WithCancelCause(t.Context())
	m := New(newFake(example(instant(0))), Options{})
	m.width, m.height = 100, 30
	m.fleet = nil // nothing can be drawn without one
	g := &guard{inner: m, fail: fail}
	g.View()
	p, ok := context.Cause(ctx).(*Panic)
	if !ok || !strings.Contains(p.Error(), "model.go") {
		t.Errorf("cause = %v, want a panic with its stack", context.Cause(ctx))
	}
}

func TestGuardCoversTheCommandsOfABatch(t *testing.T) {
	ctx, fail := context.WithCancelCause(t.Context())
	g := &guard{fail: fail}
	boom := func() tea.Msg { panic("in a batch") }
	calm := func() tea.Msg { return nil }
	for _, c := range g.cover(tea.Batch(boom, calm))().(tea.BatchMsg) {
		c()
	}
	if cause := context.Cause(ctx); cause == nil || !strings.Contains(cause.Error(), "in a batch") {
		t.Errorf("cause = %v", cause)
	}
}
