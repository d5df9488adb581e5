package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// prompt is what the shell of these tests asks with.
const prompt = "ready> "

// shell runs an interactive shell with job control in a terminal, as an operator has one.
func (r *rig) shell(cols, rows int) *terminal {
	r.t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.(*testing.T).Setenv("PS1", prompt)
	r.t.(*testing.T).Setenv("ENV", "")
	cmd := exec.Command(sh, "-i")
	cmd.Dir = r.dir
	c := r.in(cols, rows, cmd)
	c.shows(strings.TrimSpace(prompt))
	return c
}

// runs has the shell run a command and waits for its prompt.
func (t *terminal) runs(command string) {
	t.r.t.Helper()
	done := filepath.Join(t.r.dir, "done")
	os.Remove(done)
	t.keys(command + "; : > " + done + "\n")
	t.r.await(command+" is done", func() bool { _, err := os.Stat(done); return err == nil })
}

// settings is what stty tells of the terminal. The modes of the screen and of the keyboard have to be those of a shell too.
func (t *terminal) settings() string {
	t.r.t.Helper()
	file := filepath.Join(t.r.dir, "stty")
	t.runs("stty -g > " + file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.r.t.Fatal(err)
	}
	t.mu.Lock()
	m := t.screen.Modes()
	t.mu.Unlock()
	if m.AltScreen || m.CursorHidden || m.BracketedPaste || m.MouseX10 || m.MouseNormal || m.MouseAny || m.MouseButton || m.MouseSGR || m.FocusEvents || m.AppCursorKeys || m.AppKeypad || m.Sync {
		t.r.t.Errorf("the shell gets the terminal in modes %+v", m)
	}
	t.plainKeys()
	return string(data)
}

// console is the command line of a console, which leaves its pid in the file pid.
func (r *rig) console(args ...string) string {
	return fmt.Sprintf(`sh -c 'echo $$ > pid; exec "$@"' sh %s`, strings.Join(r.command(append([]string{"--no-color"}, args...)...).Args, " "))
}

// pid is that of the console that the shell runs.
func (r *rig) pid() (pid int) {
	r.t.Helper()
	r.await("the console has said its pid", func() bool {
		data, _ := os.ReadFile(filepath.Join(r.dir, "pid"))
		n, _ := fmt.Sscan(string(data), &pid)
		return n == 1
	})
	return pid
}

func TestConsoleLeavesTheShellItsTerminalHoweverItEnds(t *testing.T) {
	full(t)
	r, trees := newOperated(t, "mouse = true\neditor = [\"sh\", \"-c\", \"echo editing; exec sleep 600\"]\n", "api", "billing")
	r.must(nil, "dispatch", trees[0], "--profile", "agent", "--wait")
	c := r.shell(100, 30)
	before := c.settings()
	signal := func(s syscall.Signal) func() {
		return func() {
			if err := syscall.Kill(r.pid(), s); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	attached := func() {
		c.selects("api")
		c.keys("\r")
		c.untilGone("attach", "daemon up")
		c.shows("at work")
	}
	editing := func() {
		c.keys("e")
		c.shows("editing")
	}
	waiting := func() {
		c.selects("billing")
		c.keys("s\r")
		c.shows("esc cancels")
	}
	nothing := func() {}
	tests := []struct {
		name   string
		args   []string
		before func()
		end    func()
		code   int
		says   string
	}{
		{"quit", nil, nothing, func() { c.keys("q") }, 0, ""},
		{"ctrl-c in a dialog", nil, func() { c.keys("s"); c.shows("▌") }, func() { c.keys("\x03") }, 0, ""},
		{"quit of one that may only look", []string{"--read-only"}, func() { c.shows("read-only") }, func() { c.keys("q") }, 0, ""},
		{"SIGHUP", nil, nothing, signal(syscall.SIGHUP), 1, "hangup"},
		{"SIGTERM", nil, nothing, signal(syscall.SIGTERM), 1, "terminated"},
		{"SIGQUIT", nil, nothing, signal(syscall.SIGQUIT), 1, "quit"},
		{"SIGINT", nil, nothing, signal(syscall.SIGINT), 1, "interrupt"},
		{"SIGTERM while attached", nil, attached, signal(syscall.SIGTERM), 1, "terminated"},
		{"SIGHUP while an editor has the terminal", nil, editing, signal(syscall.SIGHUP), 1, "hangup"},
		{"SIGTERM while an act waits for the lock", nil, waiting, signal(syscall.SIGTERM), 1, "terminated"},
	}
	for _, tt := range tests {
		r.step(tt.name, func(t *testing.T) {
			release := func() {}
			if strings.Contains(tt.name, "lock") {
				release = r.flockOutside()
			}
			defer release()
			c.runs("rm -f pid code; clear")
			c.keys(r.console(tt.args...) + "; echo \"code $?\" > code\n")
			c.shows("daemon up")
			r.pid()
			tt.before()
			tt.end()
			c.until(tt.name, func() bool { _, err := os.Stat(filepath.Join(r.dir, "code")); return err == nil })
			c.runs(":")
			if code, _ := os.ReadFile(filepath.Join(r.dir, "code")); strings.TrimSpace(string(code)) != fmt.Sprintf("code %d", tt.code) {
				t.Errorf("%q, want code %d\n%s", code, tt.code, c.text())
			}
			c.shows(tt.says)
			if after := c.settings(); after != before {
				t.Errorf("stty says %q, said %q", after, before)
			}
			if !mouseReport.Match(c.output()) {
				t.Error("the mouse was never asked for: this shows nothing of how it is left")
			}
			if n := len(r.alive()); n != 1 {
				t.Errorf("%d members are alive, want 1", n)
			}
		})
	}
}

func TestConsoleGoesToTheShellAndComesBack(t *testing.T) {
	r, trees := newOperated(t, "", "api", "billing")
	c := r.shell(120, 40)
	before := c.settings()
	c.keys(r.console() + "\n")
	c.shows("daemon up")
	c.selects("api")
	c.keys("s")
	c.shows("▌Task")
	c.keys("half a thought")
	c.shows("half a thought")
	for _, size := range [][2]int{{120, 40}, {100, 30}} {
		c.keys("\x1a")
		c.untilGone("ctrl-z", "daemon up")
		r.await("it is stopped", func() bool { return stopped(r.pid()) })
		if now := c.settings(); now != before {
			t.Errorf("stty says %q, said %q", now, before)
		}
		c.shrink(size[0], size[1])
		c.keys("fg\n")
		c.untilShown("fg", "half a thought")
		c.shows("daemon up")
	}
	c.keys("\x1a")
	r.await("it is stopped", func() bool { return stopped(r.pid()) })
	r.must(nil, "reserve", trees[1], "--profile", "agent")
	c.runs("clear")
	c.keys("fg\n")
	c.shows("half a thought")
	c.keys("\r")
	c.untilShown("fg, enter", `api .* occupied `)
	c.untilShown("what happened meanwhile", `billing .* reserved `)
	c.honest()
	if m := r.alive(); len(m) != 1 || m[0].Task != "half a thought" {
		t.Errorf("members: %+v", m)
	}
	c.keys("q")
	r.await("it has ended", func() bool { return !processAlive(r.pid()) })
	if after := c.settings(); after != before {
		t.Errorf("stty says %q, said %q", after, before)
	}
}

func TestConsoleThatNoShellStartedStaysWhereItIs(t *testing.T) {
	r, _ := newOperated(t, "", "api")
	c := r.open(100, 30)
	c.shows("daemon up")
	c.keys("\x1a")
	c.untilShown("ctrl-z", "no shell")
	c.honest()
	c.keys("q")
	c.untouched()
}

func TestMouseClicksOnlyWhereItIsTurnedOn(t *testing.T) {
	r, _ := newOperated(t, "mouse = true\n", "api", "billing", "docs")
	c := r.open(120, 40)
	c.shows("daemon up")
	line := 0
	c.r.await("all are listed", func() bool {
		row, text := c.row("docs"), c.text()
		line = 1 + slices.IndexFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, row) })
		return row != "" && line > 0 && strings.Contains(text, "Trees 3")
	})
	c.keys(fmt.Sprintf("\x1b[<0;10;%dM\x1b[<0;10;%dm", line, line))
	c.until("a click", func() bool { return strings.HasPrefix(c.row("docs"), "▌") })
	c.keys("q")
	c.untouched()
}

func TestConsoleThatMayOnlyLookChangesNothing(t *testing.T) {
	r, trees := newOperated(t, "", "api", "billing")
	r.must(nil, "dispatch", trees[0], "--profile", "agent", "--wait")
	r.must(nil, "reserve", trees[1], "--profile", "agent", "--grace", "10m")
	before := r.standing()
	c := r.open(120, 40, "--read-only", "--no-color")
	c.shows("read-only")
	c.honest()
	for _, name := range []string{"api", "billing"} {
		c.selects(name)
		for _, key := range []string{"s", "n", "m", "i", "!", "e", "P", "R", "X", "T", "\r"} {
			c.keys(key)
			c.keys("y")
			c.shows("copied its path")
		}
	}
	c.keys(":stop\r")
	c.untilShown("stop by name", "is off: this console is read-only")
	c.honest()
	if after := r.standing(); after != before {
		t.Errorf("after its keys: %s\nwant %s", after, before)
	}
	c.keys("d")
	c.shows("Diff of")
	c.keys("\x1b")
	c.untilGone("esc", "Diff of")
	c.keys("q")
	c.untouched()
}
