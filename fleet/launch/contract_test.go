package launch_test

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

	"github.com/google/go-cmp/cmp"
	"golang.org/x/term"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/herdr"
	"fleetdeck/fleet/launch/herdr/herdrtest"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/launch/tmux"
)

// The test binary is also holder, gate and agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "holder":
			os.Exit(embedded.HolderMain(os.Args[3]))
		case "pane":
			os.Exit(embedded.PaneMain(os.Args[3]))
		case "agent-exec":
			os.Exit(embedded.GateMain(os.Args[2:]))
		case "agent":
			agent(os.Args[2], os.Args[3:])
			os.Exit(0)
		}
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	os.Exit(m.Run())
}

// agent is the program that the launchers start.
func agent(does string, args []string) {
	switch does {
	case "exit":
		fmt.Println("last words")
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	case "cat": // says what it reads, and its size whenever that changes; interrupts and the like are told too
		told := make(chan os.Signal, 8)
		signal.Notify(told, syscall.SIGWINCH, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP)
		go func() {
			for s := range told {
				cols, rows, _ := term.GetSize(0)
				fmt.Printf("%v %dx%d\n", s, cols, rows)
			}
		}()
		dir, _ := os.Getwd()
		fmt.Printf("up in %s, tmux %q\n", dir, os.Getenv("TMUX"))
		for buf := make([]byte, 4096); ; {
			n, err := os.Stdin.Read(buf)
			if err != nil {
				return
			}
			fmt.Printf("read %q\n", buf[:n])
		}
	case "tree": // has a child in a session of its own, and both ignore HUP, and TERM too where that is asked for
		signal.Ignore(syscall.SIGHUP)
		child := exec.Command(os.Args[0], "agent", "child")
		if len(args) > 0 {
			signal.Ignore(syscall.SIGTERM)
			child.Args = append(child.Args, args...)
		}
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		child.Start()
		fmt.Printf("child %d\n", child.Process.Pid)
		time.Sleep(time.Hour)
	case "child":
		signal.Ignore(syscall.SIGHUP)
		if len(args) > 0 {
			signal.Ignore(syscall.SIGTERM)
		}
		time.Sleep(time.Hour)
	case "note": // notes each start in a file
		f, _ := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		fmt.Fprintln(f, "started")
		time.Sleep(time.Hour)
	}
}

func exe(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// place is where a launcher holds its agents.
type place struct {
	launch.Launcher
	// kill ends all that holds the place's agents at once, as a crash would. It is nil where each is held by itself.
	kill func(t *testing.T)
}

// places are the launchers, each ready to start agents that end with the test.
var places = []struct {
	name string
	make func(t *testing.T) place
}{
	{"embedded", func(t *testing.T) place { return place{Launcher: embedded.New(exe(t))} }},
	{"tmux of its own", func(t *testing.T) place {
		state := needTmux(t)
		return tmuxPlace(t, state, "", tmux.Socket(state))
	}},
	{"tmux of the user's", func(t *testing.T) place {
		socket := filepath.Join(needTmux(t), "user.sock")
		// Options that a user may have, and that would end sessions or keep them.
		tmuxDo(t, socket, "new-session", "-d", "-s", "mine", ";", "set", "-g", "remain-on-exit", "on", ";", "set", "-g", "destroy-unattached", "on",
			";", "set", "-t", "mine", "destroy-unattached", "off")
		return tmuxPlace(t, "", socket, socket)
	}},
	{"herdr 0.6", func(t *testing.T) place { return herdrPlace(t, 11) }},
	{"herdr 0.7.4", func(t *testing.T) place { return herdrPlace(t, 16) }},
	{"herdr 0.7.5", func(t *testing.T) place { return herdrPlace(t, 17) }},
}

func herdrPlace(t *testing.T, protocol int) place {
	s := herdrtest.Start(t, protocol)
	return place{Launcher: herdr.New(exe(t), s.Socket), kill: func(*testing.T) { s.Kill() }}
}

// needTmux gives a directory for a server's socket, where there is a tmux.
func needTmux(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIPPED: tmux is not installed: nothing of the tmux launcher was tested")
	}
	return shortDir(t)
}

// shortDir is a directory whose path is short enough for sockets everywhere.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fdl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func tmuxPlace(t *testing.T, state, server, socket string) place {
	t.Cleanup(func() { exec.Command("tmux", "-S", socket, "kill-server").Run() })
	return place{Launcher: tmux.New(exe(t), state, server), kill: func(t *testing.T) {
		pid, err := strconv.Atoi(strings.TrimSpace(tmuxDo(t, socket, "display-message", "-p", "#{pid}")))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
	}}
}

// tmuxDo runs a tmux command on the server at socket.
func tmuxDo(t *testing.T, socket string, args ...string) string {
	t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// spec makes a spec that runs the agent in a directory of its own. What it started is ended with the test.
func (p place) spec(t *testing.T, agent ...string) launch.Spec {
	t.Helper()
	root, err := filepath.EvalSymlinks(shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	s := launch.Spec{
		ID: "01" + strconv.FormatInt(time.Now().UnixNano(), 36), Dir: filepath.Join(root, "member"),
		Tree: fleet.Tree{Path: filepath.Join(root, "a tree #(true);")}, Argv: append([]string{exe(t), "agent"}, agent...),
		Cols: 100, Rows: 30,
	}
	s.Env = []string{"FLEETDECK_MEMBER=" + s.ID, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}
	if err := os.Mkdir(s.Tree.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if term, err := p.Find(ctx, s.ID, s.Dir); err == nil {
			if err := term.Stop(ctx, 0); err != nil {
				t.Errorf("clean up: %v", err)
			}
		}
		if b, _ := os.ReadFile(filepath.Join(s.Dir, "holder.log")); t.Failed() && len(b) > 0 {
			t.Logf("holder.log: %s", b)
		}
	})
	return s
}

func (p place) start(t *testing.T, s launch.Spec) launch.Terminal {
	t.Helper()
	held, err := p.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func status(t *testing.T, held launch.Terminal) launch.Status {
	t.Helper()
	s, err := held.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// in waits until the agent is in phase.
func in(t *testing.T, held launch.Terminal, phase launch.Phase) (s launch.Status) {
	t.Helper()
	eventually(t, "the agent is "+string(phase), func() bool { s = status(t, held); return s.Phase == phase })
	return s
}

// printed waits until the agent's log holds text.
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

// forAll runs test over every launcher.
func forAll(t *testing.T, test func(t *testing.T, p place)) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			test(t, p.make(t))
		})
	}
}

func TestAnAgentRunsInItsTreeAndIsFoundAgain(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		s := p.spec(t, "cat")
		p.start(t, s)
		held, err := p.Find(t.Context(), s.ID, s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		in(t, held, launch.Running)
		if got, want := printed(t, held, "up in"), "up in "+s.Tree.Path+`, tmux ""`; !strings.Contains(got, want) {
			t.Errorf("the agent says %q, want %q", got, want)
		}
		if err := held.Input(t.Context(), []byte("hello\n")); err != nil {
			t.Fatal(err)
		}
		printed(t, held, `read "hello\n"`)
		if got := status(t, held); got.Cols != s.Cols || got.Rows != s.Rows {
			t.Errorf("size %dx%d, want %dx%d", got.Cols, got.Rows, s.Cols, s.Rows)
		}
	})
}

func TestOneIdStartsOneAgentHoweverOftenItIsStarted(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		starts := filepath.Join(t.TempDir(), "starts")
		s := p.spec(t, "note", starts)
		pids := make([]int, 4)
		var all, looking sync.WaitGroup
		started := make(chan struct{})
		looking.Go(func() { // whoever looks meanwhile must not call the start off
			for {
				select {
				case <-started:
					return
				default:
					p.Find(t.Context(), s.ID, s.Dir)
				}
			}
		})
		for i := range pids {
			all.Go(func() {
				held, err := p.Start(t.Context(), s)
				if err != nil {
					t.Error(err)
					return
				}
				if s, err := held.Status(t.Context()); err == nil {
					pids[i] = s.Agent.Pid
				}
			})
		}
		all.Wait()
		close(started)
		looking.Wait()
		in(t, p.start(t, s), launch.Running)
		for _, pid := range pids {
			if pid != pids[0] || pid == 0 {
				t.Errorf("agents %v, want one", pids)
			}
		}
		var got []byte
		eventually(t, "the agent notes its start", func() bool { got, _ = os.ReadFile(starts); return len(got) > 0 })
		if string(got) != "started\n" {
			t.Errorf("starts %q, want one", got)
		}
	})
}

func TestAnExitIsKnownToTheLauncher(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		s := p.spec(t, "exit", "7")
		held := p.start(t, s)
		got := in(t, held, launch.Exited).Exit
		if got.At.IsZero() {
			t.Error("the time of the exit is not known")
		}
		got.At = time.Time{}
		if diff := cmp.Diff(launch.Exit{Code: 7}, *got); diff != "" {
			t.Error(diff)
		}
		printed(t, held, "last words")
		if err := held.Stop(t.Context(), 0); err != nil {
			t.Errorf("stopping what has ended: %v", err)
		}
		if err := held.Confirm(t.Context()); err == nil {
			t.Error("an ended agent was confirmed")
		}
	})
}

// child is the child of the agent "tree".
func child(t *testing.T, held launch.Terminal) fleet.Process {
	t.Helper()
	var pid int
	eventually(t, "the agent tells its child", func() bool {
		_, rest, _ := strings.Cut(printed(t, held, "child "), "child ")
		line, _, whole := strings.Cut(rest, "\r")
		pid, _ = strconv.Atoi(line)
		return whole
	})
	p, err := process.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantEnded(t *testing.T, ps ...fleet.Process) {
	t.Helper()
	for _, p := range ps {
		if process.Alive(p) {
			t.Errorf("process %d is alive", p.Pid)
		}
	}
}

func TestStopEndsTheAgentAndAllThatItStarted(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		held := p.start(t, p.spec(t, "tree", "deaf to TERM"))
		left := child(t, held)
		agent := status(t, held).Agent
		if err := held.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		wantEnded(t, agent, left)
		if got := status(t, held); got.Exit == nil || got.Exit.Reason != "stopped" {
			t.Errorf("status %+v, want an exit by stop", got)
		}
	})
}

func TestADeadlineEndsWhatNobodyConfirmed(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		// Nobody looks after either: the deadline is the holder's.
		confirmed, late := p.spec(t, "cat"), p.spec(t, "tree")
		confirmed.Deadline = fleet.DeadlineAfter(process.Now(), 10*time.Second)
		kept := p.start(t, confirmed)
		if err := kept.Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
		late.Deadline = fleet.DeadlineAfter(process.Now(), 2*time.Second)
		held := p.start(t, late)
		left := child(t, held)
		got := in(t, held, launch.Exited)
		if got.Exit.Reason != "deadline" {
			t.Errorf("exit %+v, want one by the deadline", got.Exit)
		}
		wantEnded(t, got.Agent, left)
		if err := held.Confirm(t.Context()); err == nil {
			t.Error("confirmed after its deadline")
		}
		if got := status(t, kept); got.Phase != launch.Running || !got.Confirmed {
			t.Errorf("the confirmed one is %+v, want it running", got)
		}
	})
}

func TestADeadlineThatHasPassedStartsNothing(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		s := p.spec(t, "cat")
		s.Deadline = fleet.DeadlineAfter(process.Now(), -time.Second)
		if _, err := p.Start(t.Context(), s); !errors.Is(err, launch.ErrNotStarted) {
			t.Errorf("error %v, want that nothing was started", err)
		}
	})
}

func TestTheGateOfEveryLauncherGivesUpInTheWrongDirectory(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		s := p.spec(t, "cat")
		s.Tree.File = "1:1"
		got := in(t, p.start(t, s), launch.Exited)
		if got.Exit.Code != launch.ExitGate || !strings.Contains(got.Failure, "not the directory that was admitted") {
			t.Errorf("%+v, exit %+v, want the gate's refusal", got, got.Exit)
		}
	})
}

func TestAStreamHoldsAllOutputThenTheExit(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		held := p.start(t, p.spec(t, "cat"))
		printed(t, held, "up in")
		frames, err := held.Follow(t.Context(), launch.FollowOptions{Output: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := held.Input(t.Context(), []byte("one\n")); err != nil {
			t.Fatal(err)
		}
		var all []byte
		var exit *launch.Exit
		stopped := false
		for f := range frames {
			if len(f.Data) > 0 && f.Offset != uint64(len(all)) {
				t.Errorf("data at %d, want it at %d", f.Offset, len(all))
			}
			all = append(all, f.Data...)
			if f.Status != nil {
				exit = f.Status.Exit
			}
			if !stopped && bytes.Contains(all, []byte(`read "one\n"`)) {
				stopped = true
				go held.Stop(context.Background(), time.Second)
			}
		}
		if exit == nil || !bytes.Contains(all, []byte("up in")) {
			t.Errorf("exit %+v after %q, want one at the end of all output", exit, all)
		}
	})
}

func TestASizeReachesTheAgent(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		held := p.start(t, p.spec(t, "cat"))
		printed(t, held, "up in")
		if err := held.Resize(t.Context(), 90, 25); err != nil {
			t.Fatal(err)
		}
		printed(t, held, "window changed 90x25")
	})
}

func TestAKilledHolderIsGoneWithAllThatItHeld(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		s := p.spec(t, "tree")
		held := p.start(t, s)
		left, st := child(t, held), status(t, held)
		if err := process.Signal(st.Holder, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the terminal is gone", func() bool {
			_, err := p.Find(t.Context(), s.ID, s.Dir)
			if err != nil && !errors.Is(err, launch.ErrGone) {
				t.Fatalf("error %v, want that it is gone", err)
			}
			return err != nil
		})
		wantEnded(t, st.Agent, left)
	})
}

func TestNothingIsFoundOfWhatWasNeverStarted(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		if _, err := p.Find(t.Context(), "01NEVER", filepath.Join(t.TempDir(), "x")); !errors.Is(err, launch.ErrNotStarted) {
			t.Errorf("error %v, want that nothing was started", err)
		}
	})
}

// Where one program holds many agents and dies, none of them goes on where nobody sees it, and each is known to have ended.
func TestAgentsEndWithTheProgramThatHoldsThem(t *testing.T) {
	forAll(t, func(t *testing.T, p place) {
		if p.kill == nil {
			t.Skip("each agent is held by a process of its own")
		}
		a, b := p.start(t, p.spec(t, "cat")), p.start(t, p.spec(t, "tree"))
		in(t, a, launch.Running)
		left := child(t, b)
		p.kill(t)
		for _, held := range []launch.Terminal{a, b} {
			got := in(t, held, launch.Exited)
			if got.Exit.Reason != "closed" {
				t.Errorf("exit %+v, want that its pane was closed", got.Exit)
			}
			wantEnded(t, got.Agent)
		}
		wantEnded(t, left)
	})
}
