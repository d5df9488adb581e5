package foreign

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

// TestMain lets the test binary be an agent: it says that it is there, starts another where it is told to, and stays until its
// stdin ends.
func TestMain(m *testing.M) {
	if os.Getenv("FOREIGN_TEST") == "" {
		os.Exit(m.Run())
	}
	if os.Getenv("FOREIGN_TEST") == "parent" {
		child := command(os.Args[1], "", "FOREIGN_TEST=agent")
		child.Stdin, child.Stdout = os.Stdin, os.Stdout
		if child.Run() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Stdout.WriteString("here\n")
	io.Copy(io.Discard, os.Stdin)
}

func command(name, dir string, env ...string) *exec.Cmd {
	exe, _ := os.Executable()
	return &exec.Cmd{Path: exe, Args: []string{name}, Dir: dir, Env: env}
}

// start runs c until the test ends, and returns once it is there.
func start(t *testing.T, c *exec.Cmd) {
	t.Helper()
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); c.Wait() })
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

// place makes a working tree with a directory in it, and gives both.
func place(t *testing.T) (top, sub string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sub = filepath.Join(top, "a", "b")
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(top, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	return top, sub
}

// in gives the agents in or below dir.
func in(agents []fleet.ForeignAgent, dir string) (here []fleet.ForeignAgent) {
	for _, a := range agents {
		if inside(a.Dir, dir) {
			here = append(here, a)
		}
	}
	return here
}

func nobody(string) bool { return false }

func TestAgentIsFoundInTheTreeThatItsDirectoryLiesIn(t *testing.T) {
	top, sub := place(t)
	c := command("claude", sub, "FOREIGN_TEST=agent")
	start(t, c)
	got := in(NewScanner().Agents(nobody), top)
	file, err := tree.Identify(top)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Pid != c.Process.Pid || got[0].Agent != "claude" || got[0].Dir != sub || got[0].Tree != top || got[0].File != file {
		t.Fatalf("%+v", got)
	}
	if age := time.Since(got[0].Since); age < -2*time.Second || age > time.Hour {
		t.Errorf("it is there since %s, now is %s", got[0].Since, time.Now())
	}
	if again := in(NewScanner().Agents(nobody), top); !slices.Equal(got, again) {
		t.Errorf("another look says %+v, not %+v", again, got)
	}
}

func TestOwnMembersAndWhatTheyStartedAreNotForeign(t *testing.T) {
	top, sub := place(t)
	start(t, command("codex", sub, "FOREIGN_TEST=agent", "FLEETDECK_MEMBER=01OWN"))
	parent := command("sh-like", sub, "FOREIGN_TEST=parent", "FLEETDECK_MEMBER=01OWN") // its child has an empty environment
	parent.Args = append(parent.Args, "gemini")
	start(t, parent)
	s := NewScanner()
	if got := in(s.Agents(func(m string) bool { return m == "01OWN" }), top); len(got) > 0 {
		t.Errorf("of our own: %+v", got)
	}
	// A member of another fleet, or one that is over, is nobody's.
	if got := in(s.Agents(func(m string) bool { return m == "01OTHER" }), top); len(got) != 2 {
		t.Errorf("of others: %+v, want two", got)
	}
}

func TestAnAgentAndItsHelpersAreOne(t *testing.T) {
	top, sub := place(t)
	parent := command("codex", sub, "FOREIGN_TEST=parent")
	parent.Args = append(parent.Args, "codex")
	start(t, parent)
	if got := in(NewScanner().Agents(nobody), top); len(got) != 1 || got[0].Pid != parent.Process.Pid {
		t.Errorf("%+v, want pid %d alone", got, parent.Process.Pid)
	}
}

func TestAnAgentThatEndedIsNotReported(t *testing.T) {
	top, sub := place(t)
	c := command("claude", sub, "FOREIGN_TEST=agent")
	start(t, c)
	s := NewScanner()
	if got := in(s.Agents(nobody), top); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	c.Process.Kill()
	c.Process.Wait()
	if got := in(s.Agents(nobody), top); len(got) > 0 { // within the second for which a look is kept
		t.Errorf("%+v", got)
	}
}

func TestOutsideGitAnAgentIsInEachDirectoryAround(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Resolve(t.Context(), dir, false); err == nil {
		t.Skip("the temporary directory lies in a git working tree")
	}
	start(t, command("aider", dir, "FOREIGN_TEST=agent"))
	got := in(NewScanner().Agents(nobody), dir)
	if len(got) != 1 || got[0].Tree != "" || !got[0].In(fleet.Tree{Path: dir}) || !got[0].In(fleet.Tree{Path: filepath.Dir(dir)}) || got[0].In(fleet.Tree{Path: dir + "x"}) {
		t.Errorf("%+v", got)
	}
}

func TestInsideGivesWhoeverWorksThere(t *testing.T) {
	top, sub := place(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(top, link); err != nil {
		t.Fatal(err)
	}
	c := command("make", sub, "FOREIGN_TEST=agent")
	start(t, c)
	for _, path := range []string{top, sub, link} {
		if got, err := Inside(t.Context(), path); err != nil || len(got) != 1 || got[0].Pid != c.Process.Pid || got[0].Dir != sub || got[0].Command != "make" {
			t.Errorf("in %s: %+v, %v", path, got, err)
		}
	}
	if got, err := Inside(t.Context(), filepath.Join(top, ".git")); err != nil || len(got) > 0 {
		t.Errorf("in another directory: %+v, %v", got, err)
	}
}

func BenchmarkScan(b *testing.B) {
	for b.Loop() {
		NewScanner().Agents(nobody)
	}
}
