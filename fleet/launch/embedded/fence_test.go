package embedded_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/process"
)

func awake(t *testing.T) time.Duration {
	t.Helper()
	now, ok := process.Awake()
	if !ok {
		t.Fatal("no clock tells how long this boot lasts")
	}
	return now
}

// fenceIn fences the agent of term and gives the moment.
func fenceIn(t *testing.T, term launch.Terminal, d time.Duration) (until time.Duration) {
	t.Helper()
	until = awake(t) + d
	if err := term.(launch.Fencer).Fence(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	return until
}

// endsFenced waits for the end of the agent and makes sure that it was the fence's, and not early.
func endsFenced(t *testing.T, term launch.Terminal, until time.Duration) {
	t.Helper()
	s := exited(t, term)
	if now := awake(t); now < until {
		t.Errorf("the agent ended %s before its fence was over", until-now)
	}
	t.Logf("it ended %s after its fence was over", (awake(t) - until - time.Since(s.Exit.At)).Round(time.Millisecond))
	if s.Exit.Reason != launch.Fenced {
		t.Errorf("exit %+v, want it %s", s.Exit, launch.Fenced)
	}
	gone(t, "the agent", s.Agent)
}

func TestAFencedAgentEndsWithAllOfItsOwnWhenNobodyIsLeftToTell(t *testing.T) {
	t.Parallel()
	spec := specOf(t, "tree")
	cmd, said := startElsewhere(t, spec)
	if said != "started" {
		t.Fatalf("the starter said %q", said)
	}
	term, err := embedded.New(exe()).Find(t.Context(), spec.ID, spec.Dir)
	if err != nil {
		t.Fatal(err)
	}
	printed(t, term, "up")
	away := pidAfter(t, term, "forked ")
	if err := term.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status(t, term).Fenced {
		t.Error("an agent that nobody fenced says that it is")
	}
	until := fenceIn(t, term, time.Second)
	if !status(t, term).Fenced {
		t.Error("a fenced agent does not say that it is")
	}
	cmd.Process.Kill()
	cmd.Wait()
	endsFenced(t, term, until)
	gone(t, "what the agent left to itself", away)
}

func TestAFenceIsMovedOnAndNeverBack(t *testing.T) {
	t.Parallel()
	spec := specOf(t, "idle")
	term := start(t, spec)
	s := running(t, term)
	first := fenceIn(t, term, 3*time.Second)
	last := fenceIn(t, term, 6*time.Second)
	fenceIn(t, term, 2*time.Second)
	if err := term.(launch.Fencer).Fence(t.Context(), awake(t)-1); err == nil {
		t.Error("a fence in the past was set")
	}
	eventually(t, "the first moment is over", func() bool { return awake(t) > first+500*time.Millisecond })
	if now := awake(t); !process.Alive(s.Agent) && now < last {
		t.Errorf("the agent ended %s early", last-now)
	}
	endsFenced(t, term, last)
}

// TestAHolderThatWakesAfterItsFenceEndsItsAgent pauses it, so that another word reaches it only after its moment.
func TestAHolderThatWakesAfterItsFenceEndsItsAgent(t *testing.T) {
	t.Parallel()
	spec := specOf(t, "idle")
	term := start(t, spec)
	s := running(t, term)
	until := fenceIn(t, term, 500*time.Millisecond)
	if err := process.Signal(s.Holder, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its moment is over", func() bool { return awake(t) > until })
	told := make(chan error, 1)
	go func() { told <- term.(launch.Fencer).Fence(context.WithoutCancel(t.Context()), until+time.Hour) }()
	if err := process.Signal(s.Holder, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err == nil {
		t.Error("a fence that was over was moved on")
	}
	endsFenced(t, term, until)
}

func TestAFenceWaitsForNoPatience(t *testing.T) {
	t.Parallel()
	spec := specOf(t, "stubborn")
	term := start(t, spec)
	printed(t, term, "stubborn ")
	until := fenceIn(t, term, time.Second)
	stopped := make(chan error, 1)
	go func() { stopped <- term.Stop(context.WithoutCancel(t.Context()), time.Hour) }()
	endsFenced(t, term, until)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestAnAgentThatEndsByItselfIsNotCalledFenced(t *testing.T) {
	t.Parallel()
	spec := specOf(t, "cat")
	term := start(t, spec)
	printed(t, term, "up")
	fenceIn(t, term, time.Hour)
	if err := term.Input(t.Context(), []byte{4}); err != nil { // the end of its input
		t.Fatal(err)
	}
	if s := exited(t, term); s.Exit.Reason != "" || s.Exit.Code != 0 {
		t.Errorf("exit %+v, want its own", s.Exit)
	}
}
