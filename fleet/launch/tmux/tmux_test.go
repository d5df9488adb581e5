package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
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
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/process"
)

// The test binary is also the holder in the pane, the gate and the agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "pane":
			os.Exit(embedded.PaneMain(os.Args[3]))
		case "agent-exec":
			os.Exit(embedded.GateMain(os.Args[2:]))
		case "agent":
			agent()
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// agent says what it reads and which signals it gets.
func agent() {
	told := make(chan os.Signal, 8)
	signal.Notify(told, syscall.SIGWINCH, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP)
	go func() {
		for s := range told {
			cols, rows, _ := term.GetSize(0)
			fmt.Printf("%v %dx%d\n", s, cols, rows)
		}
	}()
	fmt.Println("up")
	for buf := make([]byte, 4096); ; {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return
		}
		fmt.Printf("read %q\n", buf[:n])
	}
}

// server is a tmux server for one test.
type server struct {
	t      *testing.T
	l      *Launcher
	socket string
}

func newServer(t *testing.T) *server {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIPPED: tmux is not installed: nothing of the tmux launcher was tested")
	}
	dir, err := os.MkdirTemp("", "fdt")
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, l: New(exe, dir, ""), socket: Socket(dir)}
	t.Cleanup(func() {
		exec.Command("tmux", "-S", s.socket, "kill-server").Run()
		os.RemoveAll(dir)
	})
	return s
}

// do runs a tmux command on the server.
func (s *server) do(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *server) spec() launch.Spec {
	s.t.Helper()
	root, err := filepath.EvalSymlinks(s.t.TempDir())
	if err != nil {
		s.t.Fatal(err)
	}
	spec := launch.Spec{
		ID: "01" + strconv.FormatInt(time.Now().UnixNano(), 36), Dir: filepath.Join(root, "member"), Tree: fleet.Tree{Path: root},
		Argv: []string{s.l.exe(), "agent", "talks"}, Cols: 100, Rows: 30,
	}
	spec.Env = []string{"FLEETDECK_MEMBER=" + spec.ID, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if held, err := s.l.Find(ctx, spec.ID, spec.Dir); err == nil {
			held.Stop(ctx, 0)
		}
		if b, _ := os.ReadFile(filepath.Join(spec.Dir, "holder.log")); s.t.Failed() && len(b) > 0 {
			s.t.Logf("holder.log: %s", b)
		}
	})
	return spec
}

// exe is this test binary.
func (l *Launcher) exe() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// start starts an agent and waits until it talks.
func (s *server) start() (launch.Spec, launch.Terminal) {
	s.t.Helper()
	spec := s.spec()
	held, err := s.l.Start(s.t.Context(), spec)
	if err != nil {
		s.t.Fatal(err)
	}
	printed(s.t, held, "up")
	return spec, held
}

func printed(t *testing.T, held launch.Terminal, text string) string {
	t.Helper()
	var log []byte
	eventually(t, fmt.Sprintf("the agent prints %q", text), func() bool {
		var err error
		if log, err = held.Log(0); err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(log, []byte(text))
	})
	return string(log)
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
	}
}

func phase(t *testing.T, held launch.Terminal) launch.Phase {
	t.Helper()
	s, err := held.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.Phase
}

// user is somebody who has attached to a session, in a terminal of their own.
type user struct {
	t   *testing.T
	tty *os.File
	cmd *exec.Cmd

	mu   sync.Mutex // guards seen
	seen []byte
}

func (s *server) attach(id string, cols, rows uint16) *user {
	s.t.Helper()
	cmd := exec.Command("tmux", "-S", s.socket, "attach-session", "-t", "="+Session(id))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8"}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: rows})
	if err != nil {
		s.t.Fatal(err)
	}
	u := &user{t: s.t, tty: tty, cmd: cmd}
	go func() {
		for buf := make([]byte, 4096); ; {
			n, err := tty.Read(buf)
			u.mu.Lock()
			u.seen = append(u.seen, buf[:n]...)
			u.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	s.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); tty.Close() })
	return u
}

func (u *user) types(keys string) {
	u.t.Helper()
	if _, err := u.tty.WriteString(keys); err != nil {
		u.t.Fatal(err)
	}
}

func (u *user) sees(text string) {
	u.t.Helper()
	eventually(u.t, fmt.Sprintf("the user sees %q", text), func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return bytes.Contains(u.seen, []byte(text))
	})
}

func TestAUsersKeysInTheSessionDisturbNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	spec, held := s.start()
	s.do("set-option", "-g", "assume-paste-time", "0") // keys that a busy machine reads at once are keys all the same
	u := s.attach(spec.ID, 90, 25)
	u.sees("up")
	u.types("hello\r")
	printed(t, held, `read "hello\n"`)
	u.types("\x03\x1a\x1c") // interrupt, stop, quit: for the agent to take as it likes
	printed(t, held, "interrupt")
	printed(t, held, "quit")
	u.types("\x02c") // a window of the user's own beside the agent's
	eventually(t, "there are two windows", func() bool {
		return s.do("display-message", "-p", "-t", "="+Session(spec.ID)+":", "#{session_windows}") == "2"
	})
	u.types("\x02p") // back, and split the agent's window
	eventually(t, "the agent's window is shown", func() bool {
		return s.do("display-message", "-p", "-t", "="+Session(spec.ID)+":", "#{window_index}") == "0"
	})
	u.types("\x02%")
	eventually(t, "the window is split", func() bool {
		return len(strings.Fields(s.do("list-panes", "-s", "-t", "="+Session(spec.ID), "-F", "#{pane_id}"))) == 3
	})
	printed(t, held, "window changed 45x") // the split made it narrower
	u.types("\x02d")
	if err := u.cmd.Wait(); err != nil {
		t.Errorf("detach: %v", err)
	}
	st, err := held.Status(t.Context())
	if err != nil || st.Phase != launch.Running || !process.Alive(st.Agent) {
		t.Fatalf("status %+v, %v, want it running", st, err)
	}
	if err := held.Input(t.Context(), []byte("still there\n")); err != nil {
		t.Fatal(err)
	}
	printed(t, held, `read "still there\n"`)
	if err := held.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	// What is the user's stays the user's.
	eventually(t, "the agent's pane is closed", func() bool {
		return len(strings.Fields(s.do("list-panes", "-s", "-t", "="+Session(spec.ID), "-F", "#{pane_id}"))) == 2
	})
}

func TestAClosedPaneEndsItsAgentInOrder(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"kill-pane", "kill-session", "kill-server"} {
		t.Run(how, func(t *testing.T) {
			s := newServer(t)
			spec, held := s.start()
			args := []string{how, "-t", "=" + Session(spec.ID) + ":"}
			if how == "kill-server" {
				args = args[:1]
			}
			s.do(args...)
			eventually(t, "the agent has ended", func() bool { return phase(t, held) == launch.Exited })
			st, err := held.Status(t.Context())
			if err != nil || st.Exit.Reason != "closed" || process.Alive(st.Agent) {
				t.Errorf("%+v, exit %+v, %v, want it ended with its pane", st, st.Exit, err)
			}
		})
	}
}

func TestThePaneTakesTheSizeThatTheAgentIsGivenAndAUserTakesTheirs(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	spec, held := s.start()
	paneSize := func() string {
		return s.do("display-message", "-p", "-t", "="+Session(spec.ID)+":", "#{pane_width}x#{pane_height}")
	}
	if err := held.Resize(t.Context(), 70, 20); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pane follows", func() bool { return paneSize() == "70x20" })
	u := s.attach(spec.ID, 120, 41)
	printed(t, held, "window changed 120x40") // tmux keeps a line for itself
	s.do("set-hook", "-g", "window-resized", "set-option -g @resized yes")
	if err := held.Resize(t.Context(), 60, 15); err != nil {
		t.Fatal(err)
	}
	printed(t, held, "window changed 60x15")
	eventually(t, "the agent has the user's size again", func() bool {
		st, err := held.Status(t.Context())
		return err == nil && st.Cols == 120 && st.Rows == 40
	})
	if got, resized := paneSize(), s.do("display-message", "-p", "#{@resized}"); got != "120x40" || resized != "" {
		t.Errorf("the pane is %s, resized %q, want the user's 120x40 left alone", got, resized)
	}
	u.types("\x02d")
	if err := u.cmd.Wait(); err != nil {
		t.Errorf("detach: %v", err)
	}
}

func TestATreesNameIsTextForTmux(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, name := range []string{"a #(true) b", "#{pid}", "a;", "; kill-server ;", "$HOME `x` 'y'", "-d"} {
		spec := s.spec()
		spec.Tree.Path = filepath.Join(spec.Tree.Path, name)
		if err := os.Mkdir(spec.Tree.Path, 0o700); err != nil {
			t.Fatal(err)
		}
		held, err := s.l.Start(t.Context(), spec)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		printed(t, held, "up")
		if got := s.do("display-message", "-p", "-t", "="+Session(spec.ID)+":", "#{session_path}"); got != spec.Tree.Path {
			t.Errorf("the session of %q is in %q", spec.Tree.Path, got)
		}
		if got, want := s.do("display-message", "-p", "-t", "="+Session(spec.ID)+":", "#{window_name}"), windowName(spec.Tree.Path); got != want {
			t.Errorf("the window of %q is named %q, want %q", spec.Tree.Path, got, want)
		}
	}
}

func TestAHolderThatCannotBeginSaysWhyAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	spec := s.spec()
	if err := os.MkdirAll(filepath.Join(spec.Dir, "holder.sock", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.l.Start(t.Context(), spec); !errors.Is(err, launch.ErrNotStarted) || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("error %v, want that nothing was started, and why", err)
	}
	if err := os.RemoveAll(filepath.Join(spec.Dir, "holder.sock")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.l.Start(t.Context(), spec); err != nil {
		t.Errorf("another start: %v", err)
	}
}

// A pane that opens twice, since it was asked for twice or a user respawned it, is one agent's once.
func TestASecondPaneOfAnAgentBeginsNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	spec := s.spec()
	starts := filepath.Join(spec.Tree.Path, "starts")
	spec.Argv = []string{"/bin/sh", "-c", "echo started >> starts; read go; exit 3"}
	held, err := s.l.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.do("new-session", "-d", "-s", "second", "--", s.l.exe(), "pane", "--dir", spec.Dir)
	if err := held.Input(t.Context(), []byte("\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both panes are over, and the server with them", func() bool {
		return exec.Command("tmux", "-S", s.socket, "list-sessions").Run() != nil
	})
	if got, err := os.ReadFile(starts); err != nil || string(got) != "started\n" {
		t.Errorf("starts %q, %v, want one", got, err)
	}
	if st, err := held.Status(t.Context()); err != nil || st.Exit == nil || st.Exit.Code != 3 {
		t.Errorf("status %+v, %v, want the first one's exit", st, err)
	}
}

// The session of an earlier try, whose daemon was killed before it was told of it, is the agent's.
func TestASessionThatIsThereAlreadyIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	spec := s.spec()
	s.do("new-session", "-d", "-s", Session(spec.ID), "--", "/bin/sh", "-c",
		`while [ ! -e "$2/spec.json" ]; do sleep 0.02; done; exec "$1" pane --dir "$2"`, "sh", s.l.exe(), spec.Dir)
	held, err := s.l.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	printed(t, held, "up")
	if got := s.do("list-sessions", "-F", "#{session_name}"); got != Session(spec.ID) {
		t.Errorf("sessions %q, want one", got)
	}
}

// A server that hangs is asked to open a session, and does so once nobody wants it any more.
func TestAStartThatTmuxTookTooLongForBeginsNothingLater(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, other := s.start()
	pid, err := strconv.Atoi(s.do("display-message", "-p", "#{pid}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)

	spec := s.spec()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = s.l.Start(ctx, spec)
	if !errors.Is(err, launch.ErrNotStarted) {
		t.Fatalf("error %v, want proof that nothing was started", err)
	}
	if _, err := s.l.Find(t.Context(), spec.ID, spec.Dir); !errors.Is(err, launch.ErrNotStarted) {
		t.Errorf("find: error %v, want that nothing was started", err)
	}
	// Who lives already is asked without tmux.
	if err := other.Input(t.Context(), []byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	printed(t, other, `read "hello\n"`)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a session that opened late is over", func() bool {
		return !strings.Contains(s.do("list-sessions", "-F", "#{session_name}"), Session(spec.ID))
	})
	if _, err := s.l.Find(t.Context(), spec.ID, spec.Dir); !errors.Is(err, launch.ErrNotStarted) {
		t.Errorf("find: error %v, want that nothing was started", err)
	}
	if held, err := s.l.Start(t.Context(), spec); err != nil {
		t.Errorf("another start: %v", err)
	} else {
		printed(t, held, "up")
	}
}

func TestAnAgentThatPrintsALotIsNotHeldUpByAHungServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	spec := s.spec()
	spec.Argv = []string{"/bin/sh", "-c", "head -c 2000000 /dev/zero | tr '\\0' x; echo; echo printed; exec sleep 600"}
	_, first := s.start()
	pid, err := strconv.Atoi(s.do("display-message", "-p", "#{pid}"))
	if err != nil {
		t.Fatal(err)
	}
	spec.Argv[2] = "read go; " + spec.Argv[2]
	held, err := s.l.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs", func() bool { return phase(t, held) == launch.Running })
	syscall.Kill(pid, syscall.SIGSTOP)
	defer syscall.Kill(pid, syscall.SIGCONT)
	if err := held.Input(t.Context(), []byte("\n")); err != nil {
		t.Fatal(err)
	}
	printed(t, held, "printed")
	if err := held.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := phase(t, first); got != launch.Running {
		t.Errorf("the other agent is %s", got)
	}
}

func TestAServerThatWouldCrashIsNotAskedForASession(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.do("new-session", "-d", "-s", "mine", ";", "set-option", "-g", "window-size", "manual")
	s.l.server = s.socket
	if _, err := s.l.Start(t.Context(), s.spec()); !errors.Is(err, launch.ErrNotStarted) || !strings.Contains(err.Error(), "window-size manual") {
		t.Errorf("error %v, want a refusal", err)
	}
	if got := s.do("list-sessions", "-F", "#{session_name}"); got != "mine" {
		t.Errorf("sessions %q, want the user's only", got)
	}
}
