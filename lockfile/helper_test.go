package lockfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// childEnv makes the test binary another process: an agent that obeys commands from its standard input.
const childEnv = "LOCKFILE_TEST_CHILD"

func TestMain(m *testing.M) {
	if run, ok := children[os.Getenv(childEnv)]; ok {
		if err := run(os.Args[1:]); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// children are what the test binary can be besides a test.
var children = map[string]func(args []string) error{
	"agent":   agent,
	"count":   count,
	"contend": contend,
}

// agent works on the document args[0] as told, one command a line, and answers each with one line.
func agent(args []string) error {
	f, err := Open(args[0])
	if err != nil {
		return err
	}
	var held *Held
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		verb, arg, _ := strings.Cut(in.Text(), " ")
		answer, err := obey(f, &held, verb, arg)
		if err != nil {
			answer = describe(err)
		}
		fmt.Println(strings.ReplaceAll(answer, "\n", "; "))
	}
	return in.Err()
}

func obey(f *File, held **Held, verb, arg string) (answer string, err error) {
	switch verb {
	case "lock":
		window, err := time.ParseDuration(arg)
		if err != nil {
			return "", err
		}
		*held, err = f.Lock(background, window)
		return "held", err
	case "note": // appends arg to a file beside the document; meant for who holds the lock
		notes, err := os.OpenFile(f.Path()+".notes", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return "", err
		}
		_, err = fmt.Fprintln(notes, arg)
		return "noted", errors.Join(err, notes.Close())
	case "replace":
		return "replaced", (*held).Replace([]byte(arg))
	case "unlock":
		return "free", (*held).Unlock()
	case "spawn": // leaves a process behind that outlives this one, and takes over its standard input
		cmd := exec.Command("cat")
		cmd.Stdin = os.Stdin
		return "spawned", cmd.Start()
	}
	return obeyOnLinux(f, verb, arg)
}

func describe(err error) string {
	if durability, ok := errors.AsType[*DurabilityError](err); ok {
		return "durability " + durability.Error()
	}
	if errors.Is(err, ErrBusy) {
		return "busy " + err.Error()
	}
	return "error " + err.Error()
}

// child is a running process that a test talks to.
type child struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // closed when its output ends
}

// startChild runs this test binary as one of children.
func startChild(t testing.TB, name string, args ...string) *child {
	t.Helper()
	cmd := exec.Command(self(t), args...)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	return start(t, cmd)
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func start(t testing.TB, cmd *exec.Cmd) *child {
	t.Helper()
	// Pipes of our own: Wait does not close them, so no last line is lost, and what the child leaves behind lives on.
	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	err = cmd.Start()
	stdin.Close()
	stdout.Close()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, in: in, lines: make(chan string, 1000)}
	go func() {
		defer close(c.lines)
		defer out.Close()
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return c
}

// tell sends a command and does not wait for its answer.
func (c *child) tell(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatalf("tell child: %v", err)
	}
}

// hear returns the next line.
func (c *child) hear() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("child ended instead of answering")
		}
		return line
	case <-time.After(patienceOfTests):
		c.t.Fatal("child does not answer")
	}
	return ""
}

// want demands that the next line begins so.
func (c *child) want(prefix string) string {
	c.t.Helper()
	line := c.hear()
	if !strings.HasPrefix(line, prefix) {
		c.t.Fatalf("child says %q, want %q", line, prefix)
	}
	return line
}

// do sends a command and demands its answer.
func (c *child) do(command, prefix string) string {
	c.t.Helper()
	c.tell("%s", command)
	return c.want(prefix)
}

// end lets the child run out and waits for it.
func (c *child) end() {
	c.t.Helper()
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("child: %v", err)
	}
}

// kill ends the child with SIGKILL and waits until it is gone.
func (c *child) kill() {
	c.t.Helper()
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

// patienceOfTests bounds every wait for a condition. It is no measure of speed.
const patienceOfTests = 30 * time.Second

// eventually waits until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patienceOfTests); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came about: %s", what)
		}
	}
}

// open returns the document at path.
func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// newFile returns a document in a directory of its own.
func newFile(t testing.TB) *File {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "reservations.json"))
}

// hold takes the lock, and frees it when the test ends.
func hold(t testing.TB, f *File) *Held {
	t.Helper()
	held, err := f.Lock(t.Context(), patienceOfTests)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Unlock() })
	return held
}

// write replaces the document under the lock.
func write(t testing.TB, f *File, text string) {
	t.Helper()
	held := hold(t, f)
	if err := held.Replace([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
}

// wantText demands what the document says.
func wantText(t testing.TB, f *File, want string) {
	t.Helper()
	got, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("document = %.200q, want %.200q", got, want)
	}
}

// wantNoLitter demands that nothing but the document and its lock is in the directory.
func wantNoLitter(t testing.TB, f *File) {
	t.Helper()
	for _, name := range temps(t, f) {
		t.Errorf("left behind: %s", name)
	}
}

func temps(t testing.TB, f *File) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(filepath.Dir(f.Path()), ".*.tmp-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// needTool skips the test, loudly, where a program is missing.
func needTool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("SKIPPED: %s is not installed", name)
	}
	return path
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
}
