package embedded_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/process"
)

// startElsewhere starts spec in another process and returns it once the agent is started.
func startElsewhere(t *testing.T, spec launch.Spec) (*exec.Cmd, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spec.json")
	b, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	cmd := exec.Command(exe(), "starter", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, perr := cmd.StdoutPipe()
	if err = errors.Join(err, perr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, _ := bufio.NewReader(out).ReadString('\n')
	return cmd, strings.TrimSpace(line)
}

func TestAnAgentSurvivesTheDeathOfItsStarter(t *testing.T) {
	t.Parallel()
	spec := specOf(t, "cat")
	cmd, said := startElsewhere(t, spec)
	if said != "started" {
		t.Fatalf("the starter said %q", said)
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its whole process group, as a terminal that closes would
	cmd.Wait()
	term, err := embedded.New(exe()).Find(t.Context(), spec.ID, spec.Dir)
	if err != nil {
		t.Fatal(err)
	}
	s := running(t, term)
	if !process.Alive(s.Agent) || !process.Alive(s.Holder) {
		t.Errorf("agent %v and holder %v should live", s.Agent, s.Holder)
	}
	printed(t, term, "up")
	if err := term.Input(t.Context(), []byte("still there?\n")); err != nil {
		t.Fatal(err)
	}
	printed(t, term, `read "still there?\n"`)
}

func TestTheExitIsKnownAfterHolderAndStarterAreGone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		agent []string
		want  launch.Exit
	}{
		{"code 0", []string{"exit", "0"}, launch.Exit{Code: 0}},
		{"code 7", []string{"exit", "7"}, launch.Exit{Code: 7}},
		{"signal", []string{"die"}, launch.Exit{Code: 137, Signal: "SIGKILL"}},
		{"a signal that the starter ignores", []string{"hangup"}, launch.Exit{Code: 129, Signal: "SIGHUP"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			spec := specOf(t, tt.agent...)
			cmd, _ := startElsewhere(t, spec)
			cmd.Process.Kill()
			cmd.Wait()
			term, err := embedded.New(exe()).Find(t.Context(), spec.ID, spec.Dir)
			if err != nil {
				t.Fatal(err)
			}
			s := exited(t, term)
			eventually(t, "the holder ends after its agent", func() bool { return !process.Alive(s.Holder) })
			term, err = embedded.New(exe()).Find(t.Context(), spec.ID, spec.Dir)
			if err != nil {
				t.Fatal(err)
			}
			got := *status(t, term).Exit
			if got.At.IsZero() {
				t.Error("the time of the exit is not known")
			}
			if got.At = (time.Time{}); got != tt.want {
				t.Errorf("exit = %+v, want %+v", got, tt.want)
			}
			if err := term.Stop(t.Context(), 0); err != nil {
				t.Errorf("stopping what has ended: %v", err)
			}
			if err := term.Input(t.Context(), []byte("x")); err == nil {
				t.Error("input to an ended agent was accepted")
			}
			if err := term.Confirm(t.Context()); err == nil {
				t.Error("an ended agent was confirmed")
			}
		})
	}
}

func TestAKilledHolderCostsOneAgentAndLeavesNoProcess(t *testing.T) {
	t.Parallel()
	spec, other := specOf(t, "tree"), specOf(t, "idle")
	term, neighbour := start(t, spec), start(t, other)
	printed(t, term, "up")
	away := pidAfter(t, term, "forked ")
	s := running(t, term)
	kill(t, s.Holder)
	_, err := embedded.New(exe()).Find(t.Context(), spec.ID, spec.Dir)
	if !errors.Is(err, launch.ErrGone) {
		t.Errorf("Find = %v, want %v", err, launch.ErrGone)
	}
	gone(t, "the agent", s.Agent)
	gone(t, "its double-forked child", away)
	if s := running(t, neighbour); !process.Alive(s.Agent) {
		t.Error("the other agent died too")
	}
	if _, err := embedded.New(exe()).Start(t.Context(), spec); !errors.Is(err, launch.ErrGone) {
		t.Errorf("Start of the same id again = %v, want %v", err, launch.ErrGone)
	}
	if err := term.Stop(t.Context(), 0); err != nil {
		t.Errorf("Stop of what is gone = %v", err)
	}
}

func TestASlowHolderIsNotTakenForDead(t *testing.T) {
	t.Parallel()
	spec := specOf(t, "idle")
	term := start(t, spec)
	s := running(t, term)
	if err := process.Signal(s.Holder, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	find := func() error {
		ctx, cancel := contextFor(t, 200*time.Millisecond)
		defer cancel()
		_, err := embedded.New(exe()).Find(ctx, spec.ID, spec.Dir)
		return err
	}
	var err error
	eventually(t, "the holder stands still", func() bool { err = find(); return err != nil })
	if errors.Is(err, launch.ErrGone) || errors.Is(err, launch.ErrNotStarted) {
		t.Errorf("Find = %v, want an error that says neither gone nor never started", err)
	}
	os.Remove(filepath.Join(spec.Dir, "holder.sock"))
	err = find()
	if err == nil || errors.Is(err, launch.ErrGone) || errors.Is(err, launch.ErrNotStarted) {
		t.Errorf("Find without a socket = %v, want an error that says neither gone nor never started", err)
	}
	if !process.Alive(s.Agent) {
		t.Error("the agent was ended")
	}
	// The socket is gone for good: only its holder can end the agent now.
	process.Signal(s.Holder, syscall.SIGCONT)
	process.Signal(s.Holder, syscall.SIGTERM)
	exited(t, term)
}

func TestManyStartersStartOneAgent(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	spec := specOf(t, "note", notes)
	said := make(chan string)
	for range 8 {
		go func() {
			_, line := startElsewhere(t, spec)
			said <- line
		}()
	}
	for range 8 {
		if line := <-said; line != "started" {
			t.Errorf("a starter said %q", line)
		}
	}
	term, err := embedded.New(exe()).Find(t.Context(), spec.ID, spec.Dir)
	if err != nil {
		t.Fatal(err)
	}
	printed(t, term, "up")
	b, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "started"); n != 1 {
		t.Errorf("the agent was started %d times, want 1", n)
	}
	if err := term.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	term = start(t, spec)
	if s := status(t, term); s.Phase != launch.Exited {
		t.Errorf("the same id started after its end: phase %s, want %s", s.Phase, launch.Exited)
	}
}

func TestNothingIsStartedThatCouldNotBeKept(t *testing.T) {
	tests := []struct {
		name string
		mend func(*launch.Spec)
	}{
		{"no id", func(s *launch.Spec) { s.ID = "" }},
		{"no command", func(s *launch.Spec) { s.Argv = nil }},
		{"relative command", func(s *launch.Spec) { s.Argv[0] = "sh" }},
		{"no size", func(s *launch.Spec) { s.Cols = 0 }},
		{"not findable by its environment", func(s *launch.Spec) { s.Env = s.Env[1:] }},
		{"deadline passed", func(s *launch.Spec) { s.Deadline = fleet.DeadlineAfter(process.Now(), -time.Second) }},
		{"directory cannot be made", func(s *launch.Spec) { s.Dir = "/dev/null/member" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := specOf(t, "idle")
			broken := spec
			tt.mend(&broken)
			if _, err := embedded.New(exe()).Start(t.Context(), broken); !errors.Is(err, launch.ErrNotStarted) {
				t.Errorf("Start = %v, want %v", err, launch.ErrNotStarted)
			}
			if _, err := embedded.New(exe()).Find(t.Context(), spec.ID, spec.Dir); !errors.Is(err, launch.ErrNotStarted) {
				t.Errorf("Find = %v, want %v", err, launch.ErrNotStarted)
			}
		})
	}
	t.Run("no holder", func(t *testing.T) {
		spec := specOf(t, "idle")
		if _, err := embedded.New("/nonexistent").Start(t.Context(), spec); !errors.Is(err, launch.ErrNotStarted) {
			t.Errorf("Start = %v, want %v", err, launch.ErrNotStarted)
		}
		running(t, start(t, spec)) // and it can still be started
	})
}

func TestADeadlineEndsTheAgentWithAllItsProcesses(t *testing.T) {
	t.Parallel()
	spec := specOf(t, "tree")
	spec.Deadline = fleet.DeadlineAfter(process.Now(), 3*time.Second)
	cmd, _ := startElsewhere(t, spec)
	cmd.Process.Kill() // no daemon runs
	cmd.Wait()
	term, err := embedded.New(exe()).Find(t.Context(), spec.ID, spec.Dir)
	if err != nil {
		t.Fatal(err)
	}
	away := pidAfter(t, term, "forked ")
	eventually(t, "the deadline passes", func() bool { return spec.Deadline.Remaining(process.Now()) <= 0 })
	if err := term.Confirm(t.Context()); err == nil {
		t.Error("it was confirmed after its deadline, while it was being ended")
	}
	s := exited(t, term)
	if s.Exit.Reason != "deadline" {
		t.Errorf("reason %q, want deadline", s.Exit.Reason)
	}
	gone(t, "the agent", s.Agent)
	gone(t, "its double-forked child", away)
	if err := term.Confirm(t.Context()); err == nil {
		t.Error("it was confirmed after its deadline")
	}
}

func TestAConfirmedAgentOutlivesItsDeadline(t *testing.T) {
	t.Parallel()
	spec := specOf(t, "idle")
	spec.Deadline = fleet.DeadlineAfter(process.Now(), 1500*time.Millisecond)
	term := start(t, spec)
	if err := term.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(spec.Dir, "terminal.json"))
	if err != nil || !strings.Contains(string(b), `"confirmed":true`) {
		t.Errorf("the confirmation is not on record: %s, %v", b, err)
	}
	eventually(t, "the deadline passes", func() bool { return spec.Deadline.Remaining(process.Now()) < -300*time.Millisecond })
	if s := status(t, term); s.Phase == launch.Exited || !s.Confirmed {
		t.Errorf("after the deadline: %+v", s)
	}
}

func TestStopEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	term := start(t, specOf(t, "tree"))
	printed(t, term, "up")
	away, child := pidAfter(t, term, "forked "), pidAfter(t, term, "stubborn ")
	if err := term.Stop(t.Context(), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	s := status(t, term)
	gone(t, "the agent", s.Agent)
	gone(t, "its child", child)
	gone(t, "its double-forked child", away)
	if s.Exit == nil || s.Exit.Reason != "stopped" || s.Exit.Code != 137 {
		t.Errorf("exit = %+v, want code 137, reason stopped", s.Exit)
	}
}

func TestASecondStopHurriesTheFirst(t *testing.T) {
	term := start(t, specOf(t, "tree"))
	printed(t, term, "up")
	first := make(chan error, 1)
	go func() { first <- term.Stop(t.Context(), time.Hour) }()
	eventually(t, "it is being stopped", func() bool { return term.Confirm(t.Context()) != nil })
	if err := term.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestAnExitedAgentLeavesNothingInItsTree(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, agent string
	}{
		{"child in a session of its own", "leaver"},
		{"child that nothing but its ancestry gives away", "scrub"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.agent == "scrub" && runtime.GOOS != "linux" {
				t.Skip("SKIPPED: only Linux hands orphans to the holder")
			}
			t.Parallel()
			term := start(t, specOf(t, tt.agent))
			left := pidAfter(t, term, "stubborn ")
			if s := exited(t, term); s.Exit.Reason != "" || s.Exit.Code == 137 {
				t.Errorf("exit = %+v, want the agent's own", s.Exit)
			}
			gone(t, "its child", left)
		})
	}
}
