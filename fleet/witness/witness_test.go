package witness_test

import (
	"fmt"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/witness"
)

const (
	working = fleet.StateWorking
	waiting = fleet.StateWaiting
	idle    = fleet.StateIdle
	done    = fleet.StateDone
	unknown = fleet.StateUnknown
)

// step is something that happens at a time, in seconds, or a judgement that is wanted then.
type step struct {
	at     float64
	say    witness.Testimony
	output bool
	gone   witness.Source
	want   string // "state source", or "state source: message"
}

func say(at float64, source witness.Source, state fleet.State) step {
	return step{at: at, say: witness.Testimony{Source: source, State: state}}
}

func hook(at float64, state fleet.State, turn string, seq uint64) step {
	return step{at: at, say: witness.Testimony{Source: witness.Hook, State: state, Turn: turn, Seq: seq}}
}

func report(at float64, state fleet.State, message string) step {
	return step{at: at, say: witness.Testimony{Source: witness.Report, State: state, Message: message}}
}

func want(at float64, format string, args ...any) step {
	return step{at: at, want: fmt.Sprintf(format, args...)}
}

// play plays a story over a case. Between its steps the case is judged whenever it asked to be, as the daemon does.
func play(t *testing.T, animates bool, story []step) {
	t.Helper()
	var c witness.Case
	c.Animates = animates
	start := time.Unix(1_000_000, 0)
	var next time.Time
	var j witness.Judgement
	for i, s := range story {
		now := start.Add(time.Duration(s.at * float64(time.Second)))
		for n := 0; !next.IsZero() && !next.After(now); n++ {
			if n > 100 {
				t.Fatalf("step %d: the case asks to be judged at %s for ever", i, next.Sub(start))
			}
			j, next = c.Judge(next)
		}
		switch {
		case s.say.Source != "":
			s.say.Seen = now
			c.Hear(s.say)
		case s.output:
			c.Output(now)
		case s.gone != "":
			c.Withdraw(s.gone)
		}
		j, next = c.Judge(now)
		if s.want == "" {
			continue
		}
		got := fmt.Sprintf("%s %s", j.State, j.Source)
		if j.Message != "" {
			got += ": " + j.Message
		}
		if got != s.want {
			t.Errorf("step %d, at %gs: %s, want %s", i, s.at, got, s.want)
		}
	}
}

// TestWhatUsersReport plays what users of fleets of agents report as wrong states, one story a fault.
func TestWhatUsersReport(t *testing.T) {
	for _, tt := range []struct {
		name     string
		animates bool
		story    []step
	}{
		{"39: a failed turn is not at work for ever", true, []step{
			hook(0, working, witness.Begins, 1), want(0, "working hook"),
			hook(5, idle, witness.Ends, 2), want(5, "idle hook"), // StopFailure
		}},
		{"39: an interrupt that fires no hook is not at work for ever", true, []step{
			hook(0, working, witness.Begins, 1), say(0.1, witness.Title, working),
			say(5, witness.Title, idle), want(6, "working hook"),
			want(30, "unknown title: unconfirmed: its hook said working, its title does not"),
			hook(40, working, witness.Begins, 2), want(40, "working hook"),
		}},
		{"40: a screen that changed with an update is unknown, not working", false, []step{
			say(0, witness.Screen, unknown), want(0, "unknown screen"), want(60, "unknown screen"),
		}},
		{"41: what the process is called is no witness", false, []step{
			want(0, "unknown launch"), report(1, working, "on it"), want(1, "working report: on it"),
		}},
		{"42: prose that reads like a question does not outweigh a hook", true, []step{
			hook(0, idle, witness.Ends, 1), say(5, witness.Screen, unknown), want(30, "idle hook"),
		}},
		{"43: a dialog before the first prompt is not idle", true, []step{
			say(0, witness.Title, idle), want(0, "unknown title: it was not seen at work yet"),
			say(1, witness.Screen, unknown), want(9, "unknown title: it was not seen at work yet"),
			say(10, witness.Screen, waiting), want(10, "waiting screen"),
			say(20, witness.Title, working), want(20, "working title"),
			say(30, witness.Title, idle), want(34, "idle title"),
		}},
		{"44: a title that flickers does not", false, []step{
			say(0, witness.Title, working), want(0, "working title"),
			say(1, witness.Title, idle), want(1, "working title"),
			say(2, witness.Title, working), want(2, "working title"),
			say(3, witness.Title, idle), want(5.9, "working title"), want(6, "idle title"),
			say(7, witness.Title, working), want(7, "idle title"),
			say(8, witness.Title, idle), want(20, "idle title"),
		}},
		{"44: waiting shows at once", false, []step{
			say(0, witness.Title, working), say(1, witness.Title, waiting), want(1, "waiting title"),
			say(2, witness.Title, working), want(2, "working title"),
		}},
		{"45: a hook that is heard no more is checked", true, []step{
			hook(0, working, witness.Begins, 1), {at: 1, output: true}, want(30, "working hook"),
			want(61, "working hook"), // what is seen must last
			want(65, "unknown silence: unconfirmed: its hook said working, its silence does not"),
			{at: 70, output: true}, want(70, "working hook"),
		}},
		{"46: a line that vanished from the screen leaves title and hook", true, []step{
			say(0, witness.Title, working), say(1, witness.Screen, unknown), want(1, "working title"),
			hook(2, idle, witness.Ends, 1), say(2, witness.Title, idle), say(4, witness.Screen, unknown), want(9, "idle hook"),
		}},
		{"47: a spinner that never rests is working", true, []step{
			say(0, witness.Title, working), {at: 1, output: true}, say(59, witness.Title, working), {at: 59, output: true},
			want(110, "working title"),
		}},
		{"48: idle, and waiting for a person, are two states", true, []step{
			hook(0, working, witness.Begins, 1), hook(1, waiting, "", 2), want(1, "waiting hook"),
			say(1, witness.Title, idle), want(100, "waiting hook"),
			hook(101, working, "", 3), hook(102, idle, witness.Ends, 4), want(102, "idle hook"),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { play(t, tt.animates, tt.story) })
	}
}

func TestTheBestWitnessIsBelieved(t *testing.T) {
	for _, tt := range []struct {
		name  string
		story []step
	}{
		{"a report outranks title and screen", []step{
			report(0, working, ""), say(1, witness.Title, idle), say(2, witness.Screen, waiting), want(60, "working report"),
		}},
		{"a hook outranks a report before it", []step{report(0, idle, ""), hook(1, working, witness.Begins, 1), want(1, "working hook")}},
		{"a report after a hook is news", []step{hook(0, working, witness.Begins, 1), report(1, waiting, "which?"), want(1, "waiting report: which?")}},
		{"how a turn ended is the agent's to say", []step{
			hook(0, working, witness.Begins, 1), report(5, done, "merged"), hook(5.1, working, "", 2), want(5.2, "working hook"),
			hook(6, idle, witness.Ends, 3), want(6, "done report: merged"),
			hook(66, idle, "", 4), want(66, "done report: merged"), // idle for a minute
			hook(70, working, witness.Begins, 5), hook(75, idle, witness.Ends, 6), want(75, "idle hook"),
		}},
		{"where no hook tells of a beginning, the end before is one", []step{
			report(5, done, "merged"), hook(6, idle, witness.Ends, 1), want(6, "done report: merged"),
			say(7, witness.Title, working), want(10, "done report: merged"),
			hook(20, idle, witness.Ends, 2), want(20, "idle hook"),
		}},
		{"a turn that no hook told of shows by the title", []step{
			hook(0, idle, witness.Ends, 1), say(5, witness.Title, working), want(6, "idle hook"), want(11, "working title"),
			hook(20, idle, witness.Ends, 2), want(20, "idle hook"),
		}},
		{"a title that was set before the hook says nothing against it", []step{
			say(0, witness.Title, working), hook(5, idle, witness.Ends, 1), want(60, "idle hook"),
		}},
		{"a title that goes on after the hook does", []step{
			say(0, witness.Title, working), hook(5, idle, witness.Ends, 1), say(9, witness.Title, working), want(12, "working title"),
		}},
		{"a dialog that no hook told of shows at once", []step{
			hook(0, working, witness.Begins, 1), say(2, witness.Screen, waiting), want(2, "waiting screen"),
		}},
		{"an answer that no hook told of shows by the title", []step{
			hook(0, waiting, "", 1), say(2, witness.Title, working), want(3, "waiting hook"), want(8, "working title"),
		}},
		{"progress is a title's equal: the later one counts", []step{
			say(0, witness.Title, working), say(1, witness.Progress, waiting), want(1, "waiting progress"),
			say(2, witness.Title, idle), want(9, "idle title"),
		}},
		{"a screen's dialog ends with the title's change", []step{
			say(0, witness.Screen, waiting), say(1, witness.Title, working), want(1, "working title"),
		}},
		{"what was withdrawn is not said", []step{
			say(0, witness.Progress, working), {at: 1, gone: witness.Progress}, want(10, "unknown launch"),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { play(t, false, tt.story) })
	}
}

func TestALateHookLoses(t *testing.T) {
	play(t, false, []step{hook(0, working, witness.Begins, 10), hook(1, idle, witness.Ends, 30), hook(1.1, working, "", 20), want(1.1, "idle hook")})
	var c witness.Case
	c.Hear(witness.Testimony{Source: witness.Hook, State: idle, Seq: 2})
	if c.Hear(witness.Testimony{Source: witness.Hook, State: working, Seq: 1}) {
		t.Error("a late hook was heard")
	}
	if c.Seq() != 2 {
		t.Errorf("sequence %d, want 2", c.Seq())
	}
}

func TestAQuestionIsAnsweredByItsOwnTool(t *testing.T) {
	asks := step{at: 0, say: witness.Testimony{Source: witness.Hook, State: waiting, Topic: "a", Message: "allow?", Seq: 1}}
	other := step{at: 1, say: witness.Testimony{Source: witness.Hook, State: working, Topic: "b", Seq: 2}}
	same := step{at: 2, say: witness.Testimony{Source: witness.Hook, State: working, Topic: "a", Seq: 3}}
	again := step{at: 0.5, say: witness.Testimony{Source: witness.Hook, State: waiting, Seq: 2}}
	play(t, false, []step{asks, other, want(1, "waiting hook: allow?"), same, want(2, "working hook")})
	play(t, false, []step{asks, again, want(0.5, "waiting hook: allow?")})
	play(t, false, []step{asks, other, hook(3, idle, witness.Ends, 4), want(3, "idle hook")})
}

func TestWhatWasShownIsShownAfterARestart(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	for _, source := range []witness.Source{witness.Hook, witness.Report, witness.Title} {
		var c witness.Case
		c.Restore(witness.Judgement{State: idle, Message: "m", Source: source, At: start}, 7)
		if j, _ := c.Judge(start.Add(time.Second)); j.State != idle || j.Source != source || j.Message != "m" {
			t.Errorf("after a restart: %+v, want idle by %s", j, source)
		}
	}
	var c witness.Case
	c.Restore(witness.Judgement{State: working, Source: witness.Title, At: start}, 0)
	if j, next := c.Judge(start.Add(time.Second)); j.State != working || next.IsZero() {
		t.Errorf("%+v until %v: what was seen before a restart must be seen again", j, next)
	}
	if j, _ := c.Judge(start.Add(time.Minute)); j.State != unknown {
		t.Errorf("%+v, though nobody has seen it since the restart", j)
	}
}

func TestTheScreenIsLookedAtOnlyWhereItCanTellSomething(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, tt := range []struct {
		name string
		said []witness.Testimony
		want bool
	}{
		{"nobody said anything", nil, true},
		{"the title works, and output goes on", []witness.Testimony{{Source: witness.Title, State: working}}, false},
		{"the title works, and a dialog was seen", []witness.Testimony{{Source: witness.Screen, State: waiting}, {Source: witness.Title, State: working}}, true},
		{"the title waits", []witness.Testimony{{Source: witness.Title, State: waiting}}, false},
		{"the title rests", []witness.Testimony{{Source: witness.Title, State: idle}}, true},
		{"the agent reports", []witness.Testimony{{Source: witness.Report, State: working}}, false},
		{"a hook works, and the title rests", []witness.Testimony{{Source: witness.Hook, State: working}, {Source: witness.Title, State: idle}}, true},
	} {
		var c witness.Case
		for _, s := range tt.said {
			s.Seen = now
			c.Hear(s)
		}
		c.Output(now)
		if got := c.NeedsScreen(now); got != tt.want {
			t.Errorf("%s: NeedsScreen = %t", tt.name, got)
		}
	}
}

// TestADialogIsLookedForThoughTheTitleWorks: not every dialog changes the title, but each of them stops the output.
func TestADialogIsLookedForThoughTheTitleWorks(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var c witness.Case
	c.Hear(witness.Testimony{Source: witness.Title, State: working, Seen: now})
	c.Output(now)
	if c.NeedsScreen(now.Add(witness.Paused / 2)) {
		t.Error("it is looked at while output goes on")
	}
	if now = now.Add(witness.Paused); !c.NeedsScreen(now) {
		t.Fatal("it is not looked at once the output has stopped")
	}
	c.Hear(witness.Testimony{Source: witness.Screen, State: waiting, Message: "Allow?", Seen: now})
	if j, _ := c.Judge(now); j.State != waiting || j.Message != "Allow?" {
		t.Errorf("judged %+v", j)
	}
}
