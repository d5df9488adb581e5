package keeper

import (
	"context"
	"errors"
	"fmt"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
)

// keepStaff sees to each entry of [[staff]].
func (p *pass) keepStaff(ctx context.Context) error {
	wanted, err := p.k.wanted(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, want := range wanted {
		if ctx.Err() != nil {
			break
		}
		act, err := p.keep(ctx, want)
		if err != nil {
			errs = append(errs, fmt.Errorf("staff %s: %w", want.Tree, err))
			continue
		}
		p.report.Staff = append(p.report.Staff, act)
	}
	return errors.Join(errs...)
}

// keep sees to one entry.
func (p *pass) keep(ctx context.Context, want config.Staff) (Act, error) {
	m := p.k.staff[want.Tree]
	last, err := p.fateOf(ctx, want.Tree, m.Attempt, m.AttemptedAt, m.Accepted)
	if err != nil {
		return Act{}, err
	}
	next, what := decide(want, m, last, p.k.Now(), p.k.lim)
	if err := p.learn(ctx, want, next); err != nil {
		return Act{}, err
	}
	act := Act{Tree: want.Tree, Action: what, Reservation: next.Attempt, Message: next.Last}
	if what != actStart {
		return act, nil
	}
	switch {
	case !p.free(ctx, want.Tree, false, false):
		act.Action = actTaken
	case p.k.tooSoon(want.Tree):
		act.Action = actWait
	case p.capped():
		act.Action = actCapped
	default:
		return p.start(ctx, want, next)
	}
	return act, nil
}

// start dispatches for an entry: first the id is remembered, then the dispatch is made, then what came of it is.
func (p *pass) start(ctx context.Context, want config.Staff, m memory) (Act, error) {
	m.Attempt, m.AttemptedAt = newID(), p.k.Now().Wall.UTC()
	if err := p.k.remember(ctx, want.Tree, m); err != nil {
		return Act{}, err
	}
	out, v := p.dispatch(ctx, want.Tree, fleet.Order{
		Tree: want.Tree, Role: want.Role, Profile: want.Profile, Task: want.Task, ID: m.Attempt,
	})
	act := Act{Tree: want.Tree, Action: actStart, Reservation: m.Attempt, Member: out.Member, Code: out.Code, Message: out.Message}
	switch v {
	case sent:
		m.Accepted, m.Ran, m.EndedWell = true, true, false
		p.k.ended("staff_refused", want.Tree)
		p.k.Say("info", "staffed", want.Tree, fmt.Sprintf("%s on %s: member %s", want.Role, want.Profile, out.Member))
	case inDoubt:
		act.Action = actUnknown
	case notNow:
		m, act.Action, act.Reservation = m.over(), actRefused, ""
	case atFault:
		m, act.Action, act.Reservation = m.over().failed(out.Message, p.k.Now(), p.k.lim), actRefused, ""
		p.k.trouble("warn", "staff_refused", want.Tree, out.Message, out.Message)
	}
	return act, p.learn(ctx, want, m)
}

// learn makes m durable, and tells when it is the failure that was one too many.
func (p *pass) learn(ctx context.Context, want config.Staff, m memory) error {
	broke := m.Broken && !p.k.staff[want.Tree].Broken
	if err := p.k.remember(ctx, want.Tree, m); err != nil {
		return err
	}
	if broke {
		p.k.Say("warn", "keeper_broken", want.Tree, fmt.Sprintf(
			"%s on %s failed %d times in a row and is not started again until 'fleetdeck keep --reset %s': %s",
			want.Role, want.Profile, m.Failures, want.Tree, m.Last))
	}
	return nil
}
