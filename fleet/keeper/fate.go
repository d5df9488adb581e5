package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fleetdeck/fleet"
)

// forgetAfter is how long the daemon can be trusted to remember an agent that ended: a little less than it keeps each of them.
const forgetAfter = 55 * time.Minute

// ErrPending says that an attempt is on its way, neither accepted nor refused yet.
var ErrPending = errors.New("it is on its way")

// fateOf finds out what became of the attempt id for tree, made at the time at.
//
// That it was never accepted, and never will be, takes two facts in this order: its reservation does not stand in the file,
// which was read before, and the daemon does not know it. Asked the other way round, an agent that was listed and
// settled in between would seem never to have been. With accepted the attempt is known to have been started.
func (p *pass) fateOf(ctx context.Context, tree, id string, at time.Time, accepted bool) (outcome, error) {
	if id == "" {
		return outcome{}, nil
	}
	now := p.k.Now()
	for i := range p.roster.Members {
		if m := &p.roster.Members[i]; m.Reservation == id {
			return ofMember(m, now), nil
		}
	}
	for i := range p.roster.Launches {
		if p.roster.Launches[i].Reservation == id {
			return outcome{fate: running}, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	status, err := p.k.Daemon.Reservation(ctx, tree, id)
	refusal := fleet.RefusalOf(err)
	switch {
	case errors.Is(err, ErrPending):
		return outcome{fate: pending}, nil
	case err == nil && status.Member != nil:
		return ofMember(status.Member, now), nil
	case err == nil && status.Launch != nil:
		return outcome{fate: running}, nil
	case err == nil && status.Failed != nil:
		return outcome{fate: failed, why: status.Failed.Message}, nil
	case err == nil:
		return outcome{}, fmt.Errorf("the daemon's answer does not say what became of reservation %s", id)
	case refusal == nil || refusal.Code != fleet.CodeNotFound:
		return outcome{}, fmt.Errorf("ask what became of reservation %s: %w", id, err)
	}
	for i := range p.entries {
		if e := &p.entries[i]; e.ID == id && !e.Expired(now) {
			return outcome{fate: pending}, nil
		}
	}
	since := now.Wall.Sub(at)
	switch {
	case accepted:
		return outcome{fate: forgotten, lived: since, why: "it ended, and nobody remembers how"}, nil
	case since > forgetAfter:
		return outcome{fate: forgotten, lived: since, why: "whether it was started is too long ago to know"}, nil
	}
	return outcome{fate: unsent}, nil
}

func ofMember(m *fleet.Member, now fleet.Instant) outcome {
	if m.Alive() {
		return outcome{fate: running, lived: now.Wall.Sub(m.StartedAt)}
	}
	o := outcome{fate: ended, code: m.ExitCode, lived: m.EndedAt.Sub(m.StartedAt), why: "its exit code is not known"}
	if m.ExitCode != nil {
		o.why = fmt.Sprintf("it exited with code %d", *m.ExitCode)
	}
	return o
}
