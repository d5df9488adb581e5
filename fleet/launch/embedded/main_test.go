package embedded_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/term"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/process"
)

// The test binary is also holder, gate, agent and starter.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "holder": // holder --dir DIR
			os.Exit(embedded.HolderMain(os.Args[3]))
		case "agent-exec":
			os.Exit(embedded.GateMain(os.Args[2:]))
		case "agent":
			agents[os.Args[2]](os.Args[3:])
			os.Exit(0)
		case "starter":
			os.Exit(starter(os.Args[2]))
		}
	}
	os.Exit(m.Run())
}

// starter starts the agent of the spec in file, says so, and stays.
func starter(file string) int {
	signal.Ignore(syscall.SIGHUP) // as under nohup
	var spec launch.Spec
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &spec)
	}
	if err == nil {
		_, err = embedded.New(exe()).Start(context.Background(), spec)
	}
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println("started")
	time.Sleep(time.Hour)
	return 0
}

func exe() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// agents are the programs that the tests hold.
var agents = map[string]func(args []string){
	"idle": func([]string) { idle() },
	"exit": func(args []string) {
		fmt.Println("last words")
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	},
	"die": func([]string) {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		idle()
	},
	"hangup": func([]string) {
		syscall.Kill(os.Getpid(), syscall.SIGHUP)
		idle()
	},
	// exits at once and leaves a child behind that has an empty environment, a session of its own and no parent
	"scrub": func([]string) {
		leave([]string{})
	},
	// notes each start in a file
	"note": func(args []string) {
		f, _ := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		fmt.Fprintln(f, "started")
		idle()
	},
	"env": func([]string) {
		dir, _ := os.Getwd()
		fmt.Printf("dir=%s env=%q args=%q\n", dir, os.Environ(), os.Args[2:])
		idle()
	},
	// has a child in its session and a double-forked one in a session of its own; all ignore TERM
	"tree": func([]string) {
		signal.Ignore(syscall.SIGTERM)
		self := []string{os.Args[0], "agent"}
		child := exec.Command(self[0], append(self[1:], "stubborn")...)
		child.Stdout = os.Stdout
		child.Start()
		between := exec.Command(self[0], append(self[1:], "forkaway")...)
		between.Stdout = os.Stdout
		between.Run()
		idle()
	},
	"forkaway": func([]string) {
		child := exec.Command(os.Args[0], "agent", "stubborn")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		child.Start()
		fmt.Println("forked", child.Process.Pid)
	},
	"stubborn": func([]string) {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("stubborn", os.Getpid())
		time.Sleep(time.Hour)
	},
	// exits at once and leaves a child behind
	"leaver": func([]string) {
		leave(os.Environ())
		os.Exit(3)
	},
	// types each argument raw to the terminal, in pieces where it holds "|", and then prints quoted what comes back
	"ask": func(args []string) {
		old, err := term.MakeRaw(0)
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString("<")
		for piece := range strings.SplitSeq(args[0], "|") {
			os.Stdout.WriteString(piece)
			time.Sleep(5 * time.Millisecond) // so that it is read in pieces; nothing depends on it
		}
		os.Stdout.WriteString(">")
		want, _ := strconv.Atoi(args[1])
		var got []byte
		for buf := make([]byte, 1024); len(got) < want; {
			n, err := os.Stdin.Read(buf)
			if err != nil {
				break
			}
			got = append(got, buf[:n]...)
		}
		term.Restore(0, old)
		fmt.Printf("got %q\n", got)
		idle()
	},
	"cat": func([]string) {
		fmt.Println("up")
		for buf := make([]byte, 4096); ; {
			n, err := os.Stdin.Read(buf)
			if err != nil {
				return
			}
			fmt.Printf("read %q\n", buf[:n])
		}
	},
	"size": func([]string) {
		changed := make(chan os.Signal, 8)
		signal.Notify(changed, syscall.SIGWINCH)
		for {
			cols, rows, _ := term.GetSize(0)
			fmt.Printf("size %dx%d\n", cols, rows)
			<-changed
		}
	},
	"flood": func([]string) {
		block := bytes.Repeat([]byte("all work and no play \x1b[31mmakes\x1b[m jack a dull boy\r\n"), 600)
		for {
			if _, err := os.Stdout.Write(block); err != nil {
				return
			}
		}
	},
	// prints so many bytes
	"print": func(args []string) {
		n, _ := strconv.Atoi(args[0])
		for i := 0; i < n; i += 10 {
			fmt.Printf("%09d\n", i)
		}
		idle()
	},
	// raw, and never reads
	"deaf": func([]string) {
		term.MakeRaw(0)
		idle()
	},
}

// leave starts a stubborn child in a session of its own, and returns once it is up.
func leave(env []string) {
	child := exec.Command(os.Args[0], "agent", "stubborn")
	child.Env = env
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		panic(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	fmt.Print(line)
}

func idle() {
	fmt.Println("up")
	time.Sleep(time.Hour)
}

// specOf makes a spec that runs one of the agents in a directory of its own. All that it started is ended with the test.
func specOf(t *testing.T, agent ...string) launch.Spec {
	t.Helper()
	root := t.TempDir()
	spec := launch.Spec{
		ID:   "01" + strconv.FormatInt(time.Now().UnixNano(), 36),
		Dir:  filepath.Join(root, "member"),
		Tree: fleet.Tree{Path: filepath.Join(root, "tree")},
		Argv: append([]string{exe(), "agent"}, agent...),
		Cols: 80, Rows: 24,
	}
	spec.Env = []string{"FLEETDECK_MEMBER=" + spec.ID, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		spec.Env = append(spec.Env, "GOCOVERDIR="+dir)
	}
	if err := os.Mkdir(spec.Tree.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if term, err := embedded.New(exe()).Find(ctx, spec.ID, spec.Dir); err == nil {
			if err := term.Stop(ctx, 0); err != nil {
				t.Errorf("clean up: %v", err)
			}
		}
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(spec.Dir, "holder.log"))
			t.Logf("holder.log: %s", b)
		}
		// The holder goes on for a moment after its agent.
		eventually(t, "the directory is removed", func() bool { return os.RemoveAll(spec.Dir) == nil })
	})
	return spec
}

func start(t *testing.T, spec launch.Spec) launch.Terminal {
	t.Helper()
	term, err := embedded.New(exe()).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

func status(t *testing.T, term launch.Terminal) launch.Status {
	t.Helper()
	s, err := term.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// running waits until the agent's program was entered.
func running(t *testing.T, term launch.Terminal) launch.Status {
	t.Helper()
	var s launch.Status
	eventually(t, "the agent runs", func() bool {
		s = status(t, term)
		return s.Phase == launch.Running
	})
	return s
}

// exited waits for the end of the agent.
func exited(t *testing.T, term launch.Terminal) launch.Status {
	t.Helper()
	var s launch.Status
	eventually(t, "the agent has ended", func() bool {
		s = status(t, term)
		return s.Phase == launch.Exited
	})
	return s
}

// printed waits until the agent's output holds text, and gives all of it.
func printed(t *testing.T, term launch.Terminal, text string) string {
	t.Helper()
	var b []byte
	eventually(t, fmt.Sprintf("the agent prints %q", text), func() bool {
		var err error
		if b, err = term.Log(0); err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, []byte(text))
	})
	return string(b)
}

// pidAfter reads the pid that the agent printed after word, and identifies it.
func pidAfter(t *testing.T, term launch.Terminal, word string) fleet.Process {
	t.Helper()
	out := printed(t, term, word)
	line, _, _ := strings.Cut(out[strings.LastIndex(out, word)+len(word):], "\r")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("after %q in %q: %v", word, out, err)
	}
	p, err := process.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
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

func kill(t *testing.T, p fleet.Process) {
	t.Helper()
	if err := process.Signal(p, syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

func gone(t *testing.T, what string, p fleet.Process) {
	t.Helper()
	if process.Alive(p) {
		t.Errorf("%s, process %d, is alive", what, p.Pid)
	}
}
