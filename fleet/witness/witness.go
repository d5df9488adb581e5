// Package witness decides what an agent is doing from what several witnesses say of it.
//
// It is pure: no file, no socket, no clock but the one handed in. What it guarantees:
//
//   - a hook outranks a report, a report the terminal's title and progress, these the screen, and that silence;
//   - a witness of lower rank is heard against a hook only where it saw something later that the hook cannot have: then it
//     says so, or nobody is believed and the state is unknown;
//   - nobody is idle who was not seen to be: a title or a screen that means nothing is unknown;
//   - what is shown does not flicker between working and idle by what was merely seen, and waiting shows at once;
//   - of two hooks that overtake each other the one that began later counts.
//
// That a process has ended is no testimony: whoever knows it says so and asks no longer. Package fleet is all that it
// depends on.
package witness

import (
	"time"

	"fleetdeck/fleet"
)

// Source is who says something.
type Source string

// The sources, the best first.
const (
	Hook     Source = "hook"     // the agent's own hook
	Report   Source = "report"   // the agent itself, by a command
	Title    Source = "title"    // the terminal's title
	Progress Source = "progress" // the terminal's progress bar, and notifications
	Screen   Source = "screen"   // a rule that knows the screen
	Silence  Source = "silence"  // output that stopped
	Launch   Source = "launch"   // nobody yet
)

// sources is their order.
var sources = []Source{Hook, Report, Title, Progress, Screen}

// The ends of a turn, as a hook tells them.
const (
	Begins = "begin"
	Ends   = "end"
)

// How long things take to be believed.
const (
	// Settle is how long what was merely seen must last until it changes what is shown.
	Settle = 3 * time.Second
	// Unconfirmed is how long a title or a screen must contradict a hook that says working until neither is believed.
	Unconfirmed = 10 * time.Second
	// Paused is how long an agent whose title works must print nothing until its screen may show a dialog.
	Paused = 500 * time.Millisecond
	// Stalled is how long an agent that redraws all the time while it works may print nothing.
	Stalled = time.Minute
)

// Testimony is what a source last said.
type Testimony struct {
	Source  Source      `json:"source"`
	State   fleet.State `json:"state"`
	Message string      `json:"message,omitempty"`
	// Seq orders the hooks of one agent; 0 is the order in which they arrive.
	Seq uint64 `json:"seq,omitempty"`
	// Turn says that a turn begins or ends with it, Topic what it is about.
	Turn  string `json:"turn,omitempty"`
	Topic string `json:"topic,omitempty"`
	// At is since when the source says so without a break, Seen when it last did.
	At   time.Time `json:"at"`
	Seen time.Time `json:"seen"`
}

// Judgement is what an agent is doing, and by whose word.
type Judgement struct {
	State   fleet.State `json:"state"`
	Message string      `json:"message"`
	Source  Source      `json:"source"`
	At      time.Time   `json:"at"`
}

// guess reports whether j is by something merely seen.
func (j Judgement) guess() bool { return j.Source != Hook && j.Source != Report }

// Case is what was said of one agent. The zero value has heard nobody.
type Case struct {
	// Animates says that the agent redraws something all the time while it works.
	Animates bool

	said   map[Source]Testimony
	worked bool      // somebody saw it at work, or a hook of it was heard
	turn   time.Time // when the turn began that a report belongs to
	output time.Time // when it last printed something

	shown   Judgement
	changed time.Time // since when something else than what is shown is judged
}

// Hear takes a testimony of the instant t.Seen. It reports false for a hook that is late, which changes nothing.
func (c *Case) Hear(t Testimony) bool {
	if c.said == nil {
		c.said = map[Source]Testimony{}
	}
	old, had := c.said[t.Source]
	if t.Source == Hook && had && t.Seq != 0 && t.Seq < old.Seq {
		return false
	}
	if t.State == "" {
		return true // it speaks, and says nothing of that
	}
	if t.Source == Hook {
		c.endTurn(t, old)
		if t.State == fleet.StateWaiting && old.State == t.State && t.Message == "" {
			t.Message = old.Message // the same question, told a second time
		}
		if had && old.State == fleet.StateWaiting && t.State == fleet.StateWorking && t.Turn == "" && old.Topic != "" && t.Topic != "" && t.Topic != old.Topic {
			old.Seq, old.Seen = t.Seq, t.Seen
			c.said[Hook] = old // another tool went on meanwhile: the question stands
			return true
		}
	}
	c.worked = c.worked || t.State == fleet.StateWorking || t.Source == Hook
	t.At = t.Seen
	if had && t.Source != Hook && t.Source != Report && old.State == t.State {
		t.At = old.At
	}
	c.said[t.Source] = t
	return true
}

// endTurn notes which turn a report from now on belongs to.
func (c *Case) endTurn(t, before Testimony) {
	switch {
	case t.Turn == Begins:
		c.turn = t.Seen
	case t.Turn == Ends && before.Turn == Ends:
		c.turn = before.Seen // nobody told of the beginning: it was after the end before
	}
}

// Withdraw drops what a source said: it says nothing any more.
func (c *Case) Withdraw(s Source) { delete(c.said, s) }

// Output notes that the agent printed something.
func (c *Case) Output(now time.Time) { c.output = now }

// Quiet gives when the agent last printed something.
func (c *Case) Quiet() time.Time { return c.output }

// Seq is the sequence of the newest hook.
func (c *Case) Seq() uint64 { return c.said[Hook].Seq }

// Testimonies gives what was said, the best source first.
func (c *Case) Testimonies() []Testimony {
	list := []Testimony{}
	for _, s := range sources {
		if t, ok := c.said[s]; ok {
			list = append(list, t)
		}
	}
	return list
}

// NeedsScreen reports whether a look at the screen could change the judgement at now.
func (c *Case) NeedsScreen(now time.Time) bool {
	if j, _ := c.weigh(now); j.Source == Report {
		return false
	}
	if c.said[Screen].State == fleet.StateWaiting {
		return true
	}
	switch c.drawn().State {
	case fleet.StateWaiting:
		return false
	case fleet.StateWorking: // not every dialog changes the title, but each of them stops the output
		return now.Sub(c.output) >= Paused
	}
	return true
}

// Stalled reports whether what is shown hangs on the agent's silence, so that output at now changes it.
func (c *Case) Stalled(now time.Time) bool {
	return c.shown.Source == Silence || c.Animates && !c.output.IsZero() && now.Sub(c.output) > Stalled
}
