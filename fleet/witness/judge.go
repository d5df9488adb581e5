package witness

import (
	"time"

	"fleetdeck/fleet"
)

// Judge decides at now. Unless somebody says something before, the judgement stays the same until next; where next is zero,
// for good.
func (c *Case) Judge(now time.Time) (j Judgement, next time.Time) {
	j, next = c.weigh(now)
	if !c.hold(j) {
		c.shown, c.changed = j, time.Time{}
		return j, next
	}
	if c.changed.IsZero() {
		c.changed = now
	}
	until := c.changed.Add(Settle)
	if !now.Before(until) {
		c.shown, c.changed = j, time.Time{}
		return j, next
	}
	return c.shown, earlier(next, until)
}

// hold reports whether j must last before it is shown: what is seen to change from working or idle may be a flicker.
func (c *Case) hold(j Judgement) bool {
	steady := c.shown.State == fleet.StateWorking || c.shown.State == fleet.StateIdle
	return steady && j.guess() && j.State != c.shown.State && j.State != fleet.StateWaiting
}

// Restore has the case begin with what was shown before a restart.
func (c *Case) Restore(j Judgement, seq uint64) {
	if j.State == "" || j.Source == Launch {
		return
	}
	c.shown = j
	if !j.guess() {
		c.Hear(Testimony{Source: j.Source, State: j.State, Message: j.Message, Seq: seq, Seen: j.At})
	}
	// It was seen at work once, or could not have been shown as anything.
	c.worked = c.worked || j.State != fleet.StateUnknown
}

// weigh decides by what was said, without regard to what is shown.
func (c *Case) weigh(now time.Time) (Judgement, time.Time) {
	hook, hooked := c.said[Hook]
	report, reported := c.said[Report]
	seen, next := c.seen(now)
	switch {
	case reported && (!hooked || report.Seen.After(hook.Seen)):
		return judgement(report), time.Time{}
	case reported && hook.State == fleet.StateIdle && !report.Seen.Before(c.turn) &&
		(report.State == fleet.StateDone || report.State == fleet.StateWaiting):
		// The turn is over, and the agent itself said how it ended.
		return judgement(report), time.Time{}
	case !hooked:
		return seen, next
	}
	j, until := c.against(hook, seen, now)
	return j, earlier(next, until)
}

// against weighs what was seen against what a hook said: a hook knows best, but fires for a few things only.
func (c *Case) against(hook Testimony, seen Judgement, now time.Time) (Judgement, time.Time) {
	j := judgement(hook)
	since := seen.At
	if last := c.said[seen.Source].Seen; !since.After(hook.Seen) && !last.Before(hook.Seen.Add(Settle)) {
		since = hook.Seen // it went on saying so for a while after the hook
	}
	if !since.After(hook.Seen) && !since.Equal(hook.Seen) || seen.Source == Launch {
		return j, time.Time{}
	}
	after := func(d time.Duration, then Judgement) (Judgement, time.Time) {
		if until := since.Add(d); now.Before(until) {
			return j, until
		}
		return then, time.Time{}
	}
	nobody := Judgement{State: fleet.StateUnknown, Source: seen.Source, At: seen.At,
		Message: "unconfirmed: its hook said " + string(hook.State) + ", its " + string(seen.Source) + " does not"}
	switch {
	case seen.State == hook.State:
		return j, time.Time{}
	case seen.State == fleet.StateWaiting:
		return seen, time.Time{}
	case seen.State == fleet.StateWorking:
		return after(Settle, seen)
	case seen.Source == Silence && hook.State == fleet.StateWorking:
		return nobody, time.Time{}
	case seen.State == fleet.StateIdle && hook.State == fleet.StateWorking,
		seen.State == fleet.StateIdle && hook.State == fleet.StateWaiting && seen.Source == Screen:
		return after(Unconfirmed, nobody)
	}
	return j, time.Time{}
}

// seen is what can be told without the agent's own word.
func (c *Case) seen(now time.Time) (Judgement, time.Time) {
	title, screen := c.drawn(), c.said[Screen]
	best := title
	switch {
	case screen.State == fleet.StateWaiting && title.State != fleet.StateWaiting && screen.Seen.After(title.At):
		best = screen
	case title.State == "":
		best = screen
	case title.State == fleet.StateIdle && !c.worked && screen.State != fleet.StateIdle:
		// Titles are set before a first dialog is answered.
		return Judgement{State: fleet.StateUnknown, Source: title.Source, At: title.At, Message: "it was not seen at work yet"}, time.Time{}
	}
	if best.State == "" {
		best = Testimony{Source: Launch, State: fleet.StateUnknown}
	}
	hook := c.said[Hook]
	if working := best.State == fleet.StateWorking || hook.State == fleet.StateWorking; working && c.Animates && !c.output.IsZero() {
		last := c.output
		if hook.Seen.After(last) {
			last = hook.Seen
		}
		until := last.Add(Stalled)
		if now.Before(until) {
			return judgement(best), until
		}
		return Judgement{State: fleet.StateUnknown, Source: Silence, At: until, Message: "unconfirmed: it printed nothing for a minute"}, time.Time{}
	}
	return judgement(best), time.Time{}
}

// drawn is what title and progress say: the one that changed last.
func (c *Case) drawn() Testimony {
	title, progress := c.said[Title], c.said[Progress]
	if title.State == "" || progress.State != "" && progress.At.After(title.At) {
		return progress
	}
	return title
}

func judgement(t Testimony) Judgement {
	return Judgement{State: t.State, Message: t.Message, Source: t.Source, At: t.At}
}

// earlier is the earlier of two instants, of which the zero one never comes.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
