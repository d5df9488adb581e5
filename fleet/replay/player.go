// Package replay keeps what a console showed in a file, and shows it again.
//
// A recording is JSON lines: a first one that names the format, then each snapshot that said something new, the screens that
// were looked at, and what could be chosen, with their time. [Recorder] writes one and never overwrites a file. [Player] is the
// fleet of a recording, as a console is handed it: its clock is the recorded one, and it refuses every act. A recorder that was
// killed leaves a recording that ends with its last whole line.
package replay

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"sync"
	"time"

	"fleetdeck/fleet"
)

// errRecording refuses every act.
func errRecording() error {
	return fleet.Refuse(fleet.CodeNotAllowed, "this is a recording: nothing in it can be changed")
}

// Player plays a recording. It stays at the last snapshot when that is through. It is safe for use by several goroutines.
type Player struct {
	reader *Reader
	speed  float64
	began  time.Time // of the playing
	done   chan struct{}

	mu      sync.Mutex // guards all below
	snap    fleet.Snapshot
	screens map[string]fleet.Screen
	choices fleet.Choices
	at      time.Duration // of the last record
	ended   bool
	err     error
	more    chan struct{} // closed at the next record
}

// Play begins to play r, speed times as fast as it was, until ctx ends.
func Play(ctx context.Context, r *Reader, speed float64) *Player {
	p := &Player{
		reader: r, speed: speed, began: time.Now(), done: make(chan struct{}), screens: map[string]fleet.Screen{},
		more: make(chan struct{}),
	}
	go p.run(ctx)
	return p
}

// Done is closed when the recording is through.
func (p *Player) Done() <-chan struct{} { return p.done }

func (p *Player) run(ctx context.Context) {
	defer close(p.done)
	for {
		rec, err := p.reader.Next()
		if err == nil && !p.sleepUntil(ctx, rec.At) {
			err = ctx.Err()
		}
		p.mu.Lock()
		p.take(rec, err)
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *Player) sleepUntil(ctx context.Context, at time.Duration) bool {
	left := time.Duration(float64(at)/p.speed) - time.Since(p.began)
	if left <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// take makes rec, or the end that err is, what is shown. It needs mu.
func (p *Player) take(rec Record, err error) {
	if err != nil {
		if p.ended = true; !errors.Is(err, io.EOF) {
			p.err = err
		}
		return
	}
	p.at = rec.At
	switch {
	case rec.Snapshot != nil:
		p.snap = *rec.Snapshot
	case rec.Screen != nil:
		p.screens[rec.Member] = *rec.Screen
	case rec.Choices != nil:
		p.choices = *rec.Choices
	}
}

// wait calls have, which needs mu, until it reports true.
func (p *Player) wait(ctx context.Context, have func() bool) error {
	for {
		p.mu.Lock()
		ok, more, err := have(), p.more, p.err
		p.mu.Unlock()
		if ok || err != nil {
			if ok {
				return nil
			}
			return err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Snapshot returns the snapshot of the moment that is being played, once it is newer than rev.
func (p *Player) Snapshot(ctx context.Context, rev uint64) (s fleet.Snapshot, err error) {
	err = p.wait(ctx, func() bool {
		s = p.snap
		return s.Rev > rev
	})
	return s, err
}

// Screen returns the recorded screen of member, once it is another than rev. Where nobody looked at it, there is none.
func (p *Player) Screen(ctx context.Context, member string, rev uint64) (s fleet.Screen, err error) {
	missing := false
	err = p.wait(ctx, func() bool {
		var ok bool
		s, ok = p.screens[member]
		missing = !ok && p.ended
		return ok && s.Rev != rev || missing
	})
	if err == nil && missing {
		err = fleet.Refuse(fleet.CodeNotFound, "the recording has no screen of %s: nobody looked at it", member)
	}
	return s, err
}

// Now is the moment that is being played.
func (p *Player) Now() fleet.Instant {
	p.mu.Lock()
	at, ended := p.at, p.ended
	p.mu.Unlock()
	if !ended {
		at = max(at, time.Duration(float64(time.Since(p.began))*p.speed))
	}
	now := p.reader.Began()
	now.Wall, now.Mono = now.Wall.Add(at), now.Mono+at
	return now
}

// Lock is the admission lock as it was.
func (p *Player) Lock() fleet.LockInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.snap.Lock
}

// Choices are what there was to choose from.
func (p *Player) Choices() fleet.Choices {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.choices
}

// PrunePlan says what a prune would have dropped.
func (p *Player) PrunePlan(context.Context) (fleet.PruneReport, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	report := fleet.PruneReport{Pruned: []fleet.Pruned{}, Lock: "free"}
	for _, r := range p.snap.Reservations {
		if r.Droppable {
			report.Pruned = append(report.Pruned, fleet.Pruned{Tree: r.Tree, ID: r.ID, Reason: r.Verdict})
		} else {
			report.Kept++
		}
	}
	return report, nil
}

func refusal(out fleet.Outcome) fleet.Outcome {
	out.Outcome, out.Code, out.Message = fleet.Refused, fleet.CodeNotAllowed, errRecording().Error()
	return out
}

// Dispatch is refused, as is every other act.
func (p *Player) Dispatch(_ context.Context, o fleet.Order) fleet.Outcome {
	return refusal(fleet.Outcome{Tree: o.Tree, Role: o.Role, Profile: o.Profile})
}

// Settled has nothing to wait for.
func (p *Player) Settled(_ context.Context, out fleet.Outcome) fleet.Outcome { return out }

// Restart is refused.
func (p *Player) Restart(_ context.Context, member string) fleet.Outcome {
	return refusal(fleet.Outcome{Member: member})
}

// Enqueue is refused.
func (p *Player) Enqueue(context.Context, fleet.Order) error { return errRecording() }

// Unqueue is refused.
func (p *Player) Unqueue(context.Context, string) error { return errRecording() }

// Prune is refused.
func (p *Player) Prune(context.Context) (fleet.PruneReport, error) {
	return fleet.PruneReport{}, errRecording()
}

// Release is refused.
func (p *Player) Release(context.Context, string, string) error { return errRecording() }

// Send is refused.
func (p *Player) Send(context.Context, string, string, bool) error { return errRecording() }

// Stop is refused.
func (p *Player) Stop(context.Context, string) error { return errRecording() }

// Explain knows no more than the recording shows.
func (p *Player) Explain(context.Context, string) (string, error) { return "", errRecording() }

// Look does nothing: a recording shows what it holds.
func (p *Player) Look(string) {}

// Diff is not recorded.
func (p *Player) Diff(context.Context, string, bool) (string, error) { return "", errRecording() }

// Witnesses are not recorded.
func (p *Player) Witnesses(context.Context, string) (string, error) { return "", errRecording() }

// Attach is refused, as is every other program on the terminal.
func (p *Player) Attach(string) (*exec.Cmd, error) { return nil, errRecording() }

// Shell is refused.
func (p *Player) Shell(string) (*exec.Cmd, error) { return nil, errRecording() }

// Editor is refused.
func (p *Player) Editor(string) (*exec.Cmd, error) { return nil, errRecording() }

// EditText is refused.
func (p *Player) EditText(string) (*exec.Cmd, func() (string, error), error) {
	return nil, nil, errRecording()
}
