package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/herdr/herdrtest"
	"fleetdeck/fleet/launch/tmux"
)

// inTmux is a configuration whose agents are in tmux, but for those of one profile.
const inTmux = "launcher = \"tmux\"\n" + agents + `
[profiles.leaves]
command = ["sh", "-c", "while [ ! -e DIR/leave ]; do sleep 0.05; done; exit 4"]
[profiles.outside]
launcher = "embedded"
command = ["sh", "-c", "exec sleep 600"]
`

// needTmux skips a test where there is no tmux, loudly.
func needTmux(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIPPED: tmux is not installed: members in tmux were not tested")
	}
}

// tmux runs a tmux command on the fleet's server.
func (r *rig) tmux(args ...string) string {
	r.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", tmux.Socket(r.state)}, args...)...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// byTree are the members by the last part of their tree's path.
func (r *rig) byTree() map[string]fleet.Member {
	r.t.Helper()
	all := map[string]fleet.Member{}
	for _, m := range r.members() {
		all[filepath.Base(m.Tree)] = m
	}
	return all
}

func TestMembersInTmuxAreTrulyToldOfThroughEveryCrash(t *testing.T) {
	full(t)
	needTmux(t)
	const many = 30
	r := newRig(t, inTmux)
	r.must(nil, "up")
	profiles := map[string]string{"leaver": "leaves", "outside": "outside"}
	for i := range many - 1 {
		profiles[fmt.Sprintf("t%02d", i)] = "worker"
	}
	var sending sync.WaitGroup
	turn := make(chan struct{}, 4)
	for name, profile := range profiles {
		tree := r.repo(name)
		sending.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			if out, code := r.dispatch(tree, "--profile", profile, "--wait"); code != 0 {
				t.Errorf("dispatch to %s: exit %d: %+v", name, code, out)
			}
		})
	}
	sending.Wait()
	if t.Failed() {
		t.FailNow()
	}
	before := r.byTree()
	for name, m := range before {
		if want := map[bool]string{true: "embedded:", false: "tmux:"}[name == "outside"] + m.ID; m.Terminal != want {
			t.Errorf("%s has the terminal %q, want %q", name, m.Terminal, want)
		}
	}
	if got := strings.Fields(r.tmux("list-sessions", "-F", "#{session_name}")); len(got) != many {
		t.Errorf("%d sessions, want %d: %v", len(got), many, got)
	}

	// Without a daemon one agent exits and another one's session is closed by hand.
	r.kill()
	if err := os.WriteFile(filepath.Join(r.dir, "leave"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.tmux("kill-session", "-t", "="+tmux.Session(before["t00"].ID))
	r.await("two agents are gone", func() bool {
		return !processAlive(before["t00"].Pid) && !processAlive(before["leaver"].Pid)
	})
	r.must(nil, "up")
	r.await("the new daemon knows who has ended", func() bool { return len(r.alive()) == len(before)-2 })
	for name, m := range r.byTree() {
		switch name {
		case "leaver":
			if m.ExitCode == nil || *m.ExitCode != 4 {
				t.Errorf("%s: exit code %v, want 4", name, m.ExitCode)
			}
		case "t00":
			if m.State != fleet.StateExited || m.ExitCode == nil {
				t.Errorf("%s is %s with exit code %v, want exited with one", name, m.State, m.ExitCode)
			}
		default:
			if !m.Alive() || m.ID != before[name].ID || m.Pid != before[name].Pid || !processAlive(m.Pid) {
				t.Errorf("%s is %+v, want it as before: %+v", name, m, before[name])
			}
		}
	}
	if got := len(r.begun(many - 1)); got != many-1 {
		t.Errorf("%d workers were started, want %d", got, many-1)
	}

	// The tmux server is killed: all that it held has ended, and nobody else.
	pid, err := strconv.Atoi(r.tmux("display-message", "-p", "#{pid}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.await("all in tmux have ended", func() bool { return len(r.alive()) == 1 })
	for name, m := range r.byTree() {
		if m.Alive() != (name == "outside") || processAlive(m.Pid) != m.Alive() {
			t.Errorf("%s is %s, its process alive: %t", name, m.State, processAlive(m.Pid))
		}
	}
	r.awaitOccupancy(before["t01"].Tree, fleet.Free)
	if out, code := r.dispatch(before["t01"].Tree, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch after the crash of tmux: exit %d: %+v", code, out)
	}
}

// A launch in tmux is ended at its deadline by its holder, while no daemon runs.
func TestALaunchInTmuxEndsWithItsGraceWithoutADaemon(t *testing.T) {
	full(t)
	needTmux(t)
	r := newRig(t, strings.Replace(inTmux, `grace = "20s"`, `grace = "3s"`, 1))
	tree := r.repo("never")
	r.must(nil, "up")
	if out, code := r.dispatch(tree, "--profile", "never"); code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	r.await("the agent runs", func() bool { return len(r.starts()) == 1 })
	r.kill()
	r.await("nothing runs", func() bool { return len(marked(r.state)) == 0 })
	r.must(nil, "up")
	r.awaitOccupancy(tree, fleet.Free)
	if got := r.alive(); len(got) != 0 {
		t.Errorf("members %+v, want none", got)
	}
}

func TestALaunchWithoutItsTmuxFailsAndSaysWhy(t *testing.T) {
	full(t)
	r := newRig(t, inTmux)
	tree := r.repo("a")
	up := r.command("up")
	empty := t.TempDir()
	for _, name := range []string{"git", "sh", "sleep"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(empty, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	up.Env = append(os.Environ(), "PATH="+empty)
	if out, err := up.CombinedOutput(); err != nil {
		t.Fatalf("up: %v: %s", err, out)
	}
	out, code := r.dispatch(tree, "--profile", "worker", "--wait")
	if code != 3 || !strings.Contains(out.Message, "install tmux") {
		t.Errorf("exit %d, %+v, want a refusal that says what to install", code, out)
	}
	r.awaitOccupancy(tree, fleet.Free)
	if out, code := r.dispatch(tree, "--profile", "outside", "--wait"); code != 0 {
		t.Errorf("dispatch outside tmux: exit %d: %+v", code, out)
	}
}

func TestMembersInHerdrSurviveTheDaemonAndEndWithHerdr(t *testing.T) {
	full(t)
	for _, protocol := range []int{16, 20} {
		t.Run(fmt.Sprint("protocol ", protocol), func(t *testing.T) {
			s := herdrtest.Start(t, protocol)
			r := newRig(t, "launcher = \"herdr\"\n"+agents+"[herdr]\nsocket = \""+s.Socket+"\"\n")
			tree := r.repo("a")
			r.must(nil, "up")
			if out, code := r.dispatch(tree, "--profile", "worker", "--wait"); code != 0 {
				t.Fatalf("dispatch: exit %d: %+v", code, out)
			}
			before := r.members()[0]
			if before.Terminal != "herdr:"+before.ID || len(s.Panes()) != 1 {
				t.Errorf("terminal %q, %d panes", before.Terminal, len(s.Panes()))
			}
			r.kill()
			r.must(nil, "up")
			if got := r.alive(); len(got) != 1 || got[0].Pid != before.Pid || !processAlive(before.Pid) {
				t.Errorf("members %+v, want %+v", got, before)
			}
			s.Kill()
			r.awaitOccupancy(tree, fleet.Free)
			if processAlive(before.Pid) {
				t.Error("its process lives")
			}
		})
	}
}
