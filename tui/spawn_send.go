package tui

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// send dispatches or queues what the form says. What is wrong with it is for the dispatcher to say, except what is missing.
func (d *spawnDialog) send(m *Model) tea.Cmd {
	o := fleet.Order{Tree: d.tree, Role: d.role.value(), Profile: d.profile.value(), Task: d.task.value()}
	if !d.queue {
		o.Branch = strings.TrimSpace(d.branch.value())
	}
	switch {
	case o.Tree == "":
		d.field = fieldTree
		d.enter(m)
		return m.say(levelWarn, "which tree? choose one or type a path", "")
	case o.Role == "" || o.Profile == "":
		return m.say(levelWarn, "no role or profile can be chosen yet", "see what `fleetdeck doctor` says of the configuration")
	case d.queue && strings.TrimSpace(o.Task) == "":
		d.field = fieldTask
		return m.say(levelWarn, "what is to be queued? type a task", "")
	}
	trees := d.trees
	if len(trees) == 0 {
		trees = []string{o.Tree}
	}
	if d.queue {
		if cmd := m.notQueued(trees); cmd != nil {
			return cmd
		}
	}
	m.dialog = nil
	if !d.queue {
		o.BesideForeign = d.beside.value() == yes
		if o.Also = d.also; d.several() && d.over.value() == oneOverAll {
			trees, o.Also = trees[:1], trees[1:]
		}
	}
	m.last = choiceOf{o.Role, o.Profile}
	delete(m.drafts, o.Tree)
	var cmds []tea.Cmd
	begun := len(m.acts)
	for _, tree := range trees {
		o.Tree = tree
		m.lastIn[tree] = m.last
		if d.queue {
			cmds = append(cmds, m.enqueue(o))
		} else {
			cmds = append(cmds, m.dispatch(o))
		}
	}
	for _, a := range m.acts[begun:] {
		a.command = m.acts[begun].id
	}
	m.list().unmark()
	return tea.Batch(cmds...)
}

// dispatch starts a dispatch, and shows it on the tree's row at once.
func (m *Model) dispatch(o fleet.Order) tea.Cmd {
	f, where := m.fleet, m.whereTo(o)
	cmd := m.start("dispatch "+o.Role+" to "+where, o.Tree, func(ctx context.Context) end {
		return outcome(f.Dispatch(ctx, o), o, where)
	})
	m.assume(o)
	return cmd
}

// whereTo is where an order sends its agent, for people.
func (m *Model) whereTo(o fleet.Order) string {
	where := m.short(o.Tree)
	if o.Branch != "" {
		where = "a worktree of " + where + " on " + clean(o.Branch)
	}
	switch n := len(o.Also); n {
	case 0:
	case 1:
		where += " and " + m.short(o.Also[0])
	default:
		where += fmt.Sprintf(" and %d more trees", n)
	}
	return where
}

// enqueue puts a task into the queue.
func (m *Model) enqueue(o fleet.Order) tea.Cmd {
	f, where := m.fleet, m.short(o.Tree)
	what := "queue a task for " + where
	keeper := m.kept()
	return m.start(what, o.Tree, func(ctx context.Context) end {
		if err := f.Enqueue(ctx, o); err != nil {
			return failed(what, err)
		}
		e := end{level: levelInfo, text: "queued for " + where}
		if !keeper {
			e.level, e.hint = levelWarn, "no keeper runs: nobody sends it until one does"
		}
		return e
	})
}

// outcome is how a dispatch ended, for people.
func outcome(out fleet.Outcome, o fleet.Order, where string) end {
	message := out.Message
	if message == "" {
		message = string(out.Code)
	}
	switch out.Outcome {
	case fleet.Accepted:
		if out.Tree == "" {
			out.Tree = o.Tree
		}
		return end{level: levelInfo, accepted: &out, text: "dispatched " + o.Role + " on " + o.Profile + " to " + where + ": it is booting"}
	case fleet.Refused:
		e := end{level: levelAlarm, refused: true, text: "refused: " + message, hint: out.Hint, order: &o}
		if out.Code == fleet.CodeTreeReserved || out.Code == fleet.CodeTreeOccupied || out.Code == fleet.CodeTreeForeign {
			e.held = &held{order: o, message: message, foreign: out.Code == fleet.CodeTreeForeign}
		}
		return e
	}
	hint := out.Hint
	if hint == "" {
		hint = "its reservation stays until its grace runs out"
	}
	return end{level: levelAlarm, text: "outcome unknown: " + message, hint: hint}
}
