package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/plain"
	"fleetdeck/fleet/witness"
)

const (
	// listenEvery is how often output is listened to. What may mean that a person is waited for is heard at once all the same.
	listenEvery = 300 * time.Millisecond
	// lookAfter is how long output must have stopped until the screen is looked at: longer than listenEvery, or it stops all the time.
	lookAfter = 600 * time.Millisecond
	// lookEvery is the shortest time between two looks, lookAtLeast the longest while it goes on printing: one that draws
	// something all the time would never be looked at.
	lookEvery   = time.Second
	lookAtLeast = 5 * time.Second
	// sameAgain is how long a signal that says what the last one said is passed over.
	sameAgain = time.Second
)

// ear hears what a member's terminal says of it: titles, progress and notifications in its output, and its screen where nothing
// better is known. A member that prints nothing costs nothing.
type ear struct {
	d       *Daemon
	rec     record
	profile config.Profile
	scanner witness.Scanner
	next    uint64 // the offset of the next byte
	began   bool
	old     uint64 // what was printed before it began was heard by an earlier daemon, or by nobody
	said    map[witness.Source]witness.Testimony

	timer   *time.Timer // fires when the screen is to be looked at; stopped while it is not
	dirty   time.Time   // since when it printed something that was not looked at
	looked  time.Time
	heard   time.Time // when it last printed something
	looking atomic.Bool
}

func (d *Daemon) newEar(rec record) *ear {
	e := &ear{d: d, rec: rec, profile: d.Config.Profiles[rec.Profile], said: map[witness.Source]witness.Testimony{}, timer: time.NewTimer(time.Hour)}
	e.timer.Stop()
	return e
}

// follow says what to stream: all that was not heard yet.
func (e *ear) follow(status launch.Status) launch.FollowOptions {
	if !e.began {
		e.began, e.old = true, status.Output
	}
	return launch.FollowOptions{Output: true, From: e.next, Cursor: true, Every: listenEvery}
}

// hear takes a frame.
func (e *ear) hear(frame launch.Frame) {
	if len(frame.Data) == 0 {
		return
	}
	if frame.Offset != e.next {
		e.scanner = witness.Scanner{} // some was lost
	}
	e.next = frame.Offset + uint64(len(frame.Data))
	now := e.d.Now().Wall
	e.heard = now
	fresh := e.next > e.old
	var heard []func(*hearing)
	e.scanner.Feed(frame.Data, func(s witness.Signal) {
		if say := e.signal(s, fresh, now); say != nil {
			heard = append(heard, say)
		}
	})
	if len(e.profile.Screens) > 0 {
		e.plan(now)
	}
	e.tell(func(h *hearing) bool {
		stalled := fresh && h.who.Stalled(now)
		if fresh {
			h.who.Output(now)
		}
		for _, say := range heard {
			say(h)
		}
		return stalled || len(heard) > 0
	})
}

func (e *ear) tell(say func(*hearing) bool) {
	if err := e.d.hear(e.rec, say, nil); err != nil && fleet.RefusalOf(err) == nil {
		e.d.Log("state of %s: %v", e.rec.ID, err)
	}
}

// signal gives what a signal is to say in the case, or nil for one that says nothing new.
func (e *ear) signal(s witness.Signal, fresh bool, now time.Time) func(*hearing) {
	testify := func(source witness.Source, state fleet.State, message string) func(*hearing) {
		last := e.said[source]
		if last.State == state && last.Message == message && now.Sub(last.Seen) < sameAgain {
			return nil
		}
		t := witness.Testimony{Source: source, State: state, Message: message, Seen: now}
		e.said[source] = t
		return func(h *hearing) { h.who.Hear(t) }
	}
	withdraw := func(source witness.Source) func(*hearing) {
		delete(e.said, source)
		return func(h *hearing) { h.who.Withdraw(source) }
	}
	switch s.Kind {
	case witness.SetTitle:
		if len(e.profile.Titles) == 0 {
			return nil
		}
		if state, ok := agent.ReadSign(e.profile.Titles, s.Text); ok {
			return testify(witness.Title, state, "")
		}
		return withdraw(witness.Title)
	case witness.Busy:
		switch s.Text {
		case "working":
			return testify(witness.Progress, fleet.StateWorking, "")
		case "done", "idle":
			return testify(witness.Progress, fleet.StateIdle, "")
		case "waiting", "blocked":
			return testify(witness.Progress, fleet.StateWaiting, "")
		}
		return withdraw(witness.Progress)
	case witness.NotBusy:
		return testify(witness.Progress, fleet.StateIdle, "")
	case witness.Cleared:
		return withdraw(witness.Progress)
	case witness.Bell:
		if !fresh {
			return nil
		}
		return func(h *hearing) { h.notice, h.noticeAt = "it rang the bell", now } // for what, nobody can tell
	case witness.Notice:
		if !fresh {
			return nil // it was answered long ago, perhaps
		}
		text := plain.Clean(s.Text, 300)
		note := func(h *hearing) { h.notice, h.noticeAt = text, now }
		if state, ok := agent.ReadSign(e.profile.Notices, s.Text); ok {
			if say := testify(witness.Progress, state, text); say != nil {
				return func(h *hearing) { note(h); say(h) }
			}
		}
		return note
	}
	return nil
}

// plan has the screen looked at once output has stopped, and now and then while it does not.
func (e *ear) plan(now time.Time) {
	if e.dirty.IsZero() {
		e.dirty = now
	}
	at := now.Add(lookAfter)
	if most := e.dirty.Add(lookAtLeast); most.Before(at) {
		at = most
	}
	if least := e.looked.Add(lookEvery); at.Before(least) {
		at = least
	}
	e.timer.Reset(max(0, at.Sub(now)))
}

// due fires when the screen is to be looked at.
func (e *ear) due() <-chan time.Time { return e.timer.C }

// look looks at the screen, if that could tell anything, while the caller goes on.
func (e *ear) look(ctx context.Context, term launch.Terminal) {
	now := e.d.Now().Wall
	e.dirty, e.looked = time.Time{}, now
	h := e.d.hearing(e.rec)
	h.mu.Lock()
	needed := !h.closed && h.who.NeedsScreen(now)
	h.mu.Unlock()
	if !needed && now.Sub(e.heard) < lookAfter {
		e.plan(now) // it did not stop yet, and what it shows then may tell something
	}
	if !needed || !e.looking.CompareAndSwap(false, true) {
		return
	}
	e.d.tending.Go(func() {
		defer e.looking.Store(false)
		ctx, cancel := context.WithTimeout(ctx, lookAtLeast)
		defer cancel()
		shown, err := e.d.screens.mirror(e.rec.ID, term).Wait(ctx, 0)
		if err != nil {
			return
		}
		state, question := agent.ReadScreen(e.profile.Screens, shown.Lines)
		e.tell(func(h *hearing) bool {
			return h.who.Hear(witness.Testimony{Source: witness.Screen, State: state, Message: plain.Clean(question, 300), Seen: e.d.Now().Wall})
		})
	})
}
