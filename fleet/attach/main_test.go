package attach_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"fleetdeck/fleet"
	"fleetdeck/fleet/attach"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/screen"
)

// The test binary is also holder, gate, agent and the program that attaches.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "holder": // holder --dir DIR
			os.Exit(embedded.HolderMain(os.Args[3]))
		case "agent-exec":
			os.Exit(embedded.GateMain(os.Args[2:]))
		case "agent":
			agent(os.Args[2])
			os.Exit(0)
		case "attach":
			os.Exit(attachTo(os.Args[2], os.Args[3]))
		}
	}
	os.Exit(m.Run())
}

// agent prints its argument and then, raw, what it reads.
func agent(greeting string) {
	term.MakeRaw(0)
	fmt.Print(greeting)
	for buf := make([]byte, 4096); ; {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return
		}
		if string(buf[:n]) == "exit" {
			os.Exit(7)
		}
		if string(buf[:n]) == "size" {
			cols, rows, _ := term.GetSize(0)
			fmt.Printf("%dx%d", cols, rows)
			continue
		}
		fmt.Printf("%q", buf[:n])
	}
}

// explosive panics when "boom" is typed.
type explosive struct{ launch.Terminal }

func (e explosive) Input(ctx context.Context, p []byte) error {
	if string(p) == "boom" {
		panic("boom")
	}
	return e.Terminal.Input(ctx, p)
}

func attachTo(id, dir string) int {
	held, err := embedded.New(exe()).Find(context.Background(), id, dir)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	result, err := attach.Run(context.Background(), explosive{held}, attach.Options{Stdin: os.Stdin, Stdout: os.Stdout, Name: "api\x1b[31m"})
	fmt.Printf("[%s %v]", result.Reason, err)
	return 0
}

func exe() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// operator is somebody at a terminal who attached.
type operator struct {
	held    launch.Terminal
	cmd     *exec.Cmd
	master  *os.File
	tty     *os.File // kept open, so that its state can be looked at
	before  *term.State
	screen  *screen.Screen
	done    chan struct{}
	mu      sync.Mutex
	printed []byte
}

// sit starts an agent that prints greeting, and attaches to it in a terminal of 80x24.
func sit(t *testing.T, greeting string) *operator {
	t.Helper()
	root := t.TempDir()
	spec := launch.Spec{
		ID: "01" + strconv.FormatInt(time.Now().UnixNano(), 36), Dir: filepath.Join(root, "member"), Argv: []string{exe(), "agent", greeting},
		Tree: fleet.Tree{Path: root}, Cols: 100, Rows: 40,
	}
	spec.Env = []string{"FLEETDECK_MEMBER=" + spec.ID, "TERM=xterm-256color"}
	held, err := embedded.New(exe()).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := held.Stop(ctx, 0); err != nil {
			t.Error(err)
		}
		eventually(t, "the directory is removed", func() bool { return os.RemoveAll(spec.Dir) == nil })
	})
	o := &operator{held: held, screen: screen.New(80, 24), done: make(chan struct{})}
	t.Cleanup(func() { o.screen.Close() })
	if o.master, o.tty, err = pty.Open(); err != nil {
		t.Fatal(err)
	}
	o.resize(t, 80, 24)
	if o.before, err = term.GetState(int(o.tty.Fd())); err != nil {
		t.Fatal(err)
	}
	go o.watch()
	o.cmd = exec.Command(exe(), "attach", spec.ID, spec.Dir)
	o.cmd.Stdin, o.cmd.Stdout, o.cmd.Stderr = o.tty, o.tty, o.tty
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	o.cmd.Env = append(os.Environ(), "NO_COLOR=1")
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { o.cmd.Wait(); close(o.done) }()
	t.Cleanup(func() { o.cmd.Process.Kill(); <-o.done; o.tty.Close(); o.master.Close() })
	return o
}

func (o *operator) watch() {
	for buf := make([]byte, 4096); ; {
		n, err := o.master.Read(buf)
		if err != nil {
			return
		}
		o.mu.Lock()
		o.printed = append(o.printed, buf[:n]...)
		o.mu.Unlock()
		o.screen.Write(buf[:n])
	}
}

func (o *operator) resize(t *testing.T, cols, rows int) {
	t.Helper()
	o.screen.Resize(cols, rows)
	if err := pty.Setsize(o.master, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		t.Fatal(err)
	}
}

func (o *operator) types(t *testing.T, s string) {
	t.Helper()
	if _, err := o.master.WriteString(s); err != nil {
		t.Fatal(err)
	}
}

func (o *operator) sees(t *testing.T, text string) {
	t.Helper()
	var lines string
	defer func() {
		if t.Failed() {
			t.Logf("the terminal shows:\n%s", lines)
		}
	}()
	eventually(t, fmt.Sprintf("the terminal shows %q", text), func() bool {
		lines = strings.Join(o.screen.Snapshot().Lines, "\n")
		return strings.Contains(lines, text)
	})
}

// raw is all that was sent to the operator's terminal.
func (o *operator) raw() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.printed)
}

func (o *operator) waits(t *testing.T) {
	t.Helper()
	select {
	case <-o.done:
	case <-time.After(60 * time.Second):
		t.Fatal("attach does not end")
	}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
