package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fleetdeck/fleet"
)

// workQueue sends the first task of each tree that is free.
func (p *pass) workQueue(ctx context.Context) error {
	if p.k.queue == nil {
		return nil
	}
	tasks, err := p.k.queue.List()
	if err != nil {
		return err
	}
	var errs []error
	blocked := map[string]bool{} // trees whose first task is still there
	for _, t := range tasks {
		if ctx.Err() != nil {
			break
		}
		if blocked[t.Tree] || t.GivenUp {
			continue
		}
		act, gone, err := p.work(ctx, t)
		if err != nil {
			errs = append(errs, fmt.Errorf("task %s of %s: %w", t.ID, t.Tree, err))
			blocked[t.Tree] = true
			continue
		}
		blocked[t.Tree] = !gone
		p.report.Queue = append(p.report.Queue, act)
	}
	return errors.Join(errs...)
}

// work sees to the first task of a tree, and reports whether the next one is first now.
func (p *pass) work(ctx context.Context, t Task) (act Act, gone bool, err error) {
	act = Act{Tree: t.Tree, Task: t.ID, Action: actHold, Reservation: t.Reservation, Message: t.Error}
	last, err := p.fateOf(ctx, t.Tree, t.Reservation, t.SentAt, false)
	if err != nil {
		return act, false, err
	}
	switch last.fate {
	case pending:
		return act, false, nil
	case forgotten:
		act.Action, act.Message = actGiveUp, last.why
		return act, true, p.giveUp(ctx, t, last.why)
	case running, ended, failed:
		// A crash, or a lost answer, came between its acceptance and its removal.
		act.Action = actDone
		return act, true, p.change(ctx, t.ID, func(*Task) bool { return false })
	}
	act.Reservation = ""
	switch {
	case waits(t.NotBefore, p.k.Now(), p.k.lim) > 0, p.k.tooSoon(t.ID):
		act.Action = actWait
	case !p.free(ctx, t.Tree, t.NoGit, t.BesideForeign):
		act.Action = actTaken
	case p.capped():
		act.Action = actCapped
	default:
		return p.send(ctx, t)
	}
	return act, false, nil
}

// send dispatches a task: first the id is written, then the dispatch is made, then the task goes or what came of it is written.
func (p *pass) send(ctx context.Context, t Task) (act Act, gone bool, err error) {
	id, now := newID(), p.k.Now()
	_, err = p.k.queue.change(ctx, t.ID, func(q *Task) bool {
		q.Reservation, q.SentAt = id, now.Wall.UTC()
		t = *q
		return true
	})
	if errors.Is(err, ErrNoTask) {
		return Act{Tree: t.Tree, Task: t.ID, Action: actDone, Message: "it was taken out meanwhile"}, true, nil
	}
	if err != nil {
		return act, false, err
	}
	out, v := p.dispatch(ctx, t.ID, t.order())
	act = Act{Tree: t.Tree, Task: t.ID, Action: actStart, Reservation: id, Member: out.Member, Code: out.Code, Message: out.Message}
	// What is known by now is to be written, also while the keeper is told to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queueWait+askTimeout)
	defer cancel()
	switch v {
	case sent:
		p.k.Say("info", "unqueued", t.Tree, fmt.Sprintf("task %s: member %s", t.ID, out.Member))
		// The next one of this tree waits for the next pass: its tree is taken now.
		return act, false, p.change(ctx, t.ID, func(*Task) bool { return false })
	case inDoubt:
		act.Action = actUnknown
		return act, false, nil
	case notNow:
		act.Action, act.Reservation = actRefused, ""
		return act, false, p.change(ctx, t.ID, func(q *Task) bool {
			q.Reservation, q.SentAt, q.Error = "", time.Time{}, out.Message
			return true
		})
	}
	act.Action, act.Reservation = actRefused, ""
	if t.Failures+1 >= p.k.lim.crashes {
		act.Action, t.Reservation = actGiveUp, ""
		return act, true, p.giveUp(ctx, t, out.Message)
	}
	return act, false, p.change(ctx, t.ID, func(q *Task) bool {
		q.Failures++
		q.Reservation, q.SentAt, q.Error = "", time.Time{}, out.Message
		q.NotBefore = fleet.DeadlineAfter(p.k.Now(), p.k.lim.pause(q.Failures))
		return true
	})
}

// giveUp leaves a task in the queue for people to see, and lets the next of its tree pass it by.
func (p *pass) giveUp(ctx context.Context, t Task, why string) error {
	err := p.change(ctx, t.ID, func(q *Task) bool {
		q.GivenUp, q.Error, q.Reservation = true, why, t.Reservation
		return true
	})
	if err == nil {
		p.k.Say("warn", "task_given_up", t.Tree, fmt.Sprintf(
			"task %s is not tried again until 'fleetdeck keep --reset %s'; 'fleetdeck queue rm %s' drops it: %s", t.ID, t.Tree, t.ID, why))
	}
	return err
}

// change changes a task that may have been taken out meanwhile.
func (p *pass) change(ctx context.Context, id string, edit func(*Task) bool) error {
	if _, err := p.k.queue.change(ctx, id, edit); !errors.Is(err, ErrNoTask) {
		return err
	}
	return nil
}
