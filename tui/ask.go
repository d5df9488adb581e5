package tui

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// short is a tree's path for people, behind its node where that is another host.
func (m *Model) short(tree string) string {
	node, path := fleet.Where(tree)
	if path = fleet.ShortPath(path, m.opts.Home); node != "" {
		path = fleet.At(node, path)
	}
	return clean(path)
}

// inList is a tree's path in a list, whose title names the directory that all of them lie in. It stands behind its node where that is
// another host.
func (m *Model) inList(tree string) string {
	node, path := fleet.Where(tree)
	if path = m.below(path); node != "" {
		return fleet.At(node, path)
	}
	return path
}

// below is a path without the directory that all trees lie in.
func (m *Model) below(path string) string {
	if rest, ok := strings.CutPrefix(path, m.ix.root+"/"); ok && m.ix.root != "" {
		return rest
	}
	return fleet.ShortPath(path, m.opts.Home)
}

// describe is a member for a question about it.
func (m *Model) describe(x *fleet.Member) []string {
	return []string{
		x.Role + " on " + x.Profile + " in " + m.holds(x),
		"member " + x.ID + " · " + string(x.State) + " · up " + m.up(x),
	}
}

// copies is the rows themselves, as they are now: what a question was asked about must not change under it.
func copies[T any](rows []*T) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = *r
	}
	return out
}

func whereMember(x fleet.Member) string { return x.Role + " in " + x.Tree }

// askStop asks whether to end the chosen members.
func (m *Model) askStop() tea.Cmd {
	xs := m.chosenMembers()
	if len(xs) == 0 {
		if t := m.treeRowOf(m.selectedTree()); t != nil && m.ix.launch[t.Launch] != nil && m.list().marked() == 0 {
			return m.askStopLaunch(*m.ix.launch[t.Launch])
		}
		return m.sayNobody("stop")
	}
	targets, f := copies(xs), m.fleet
	what, done := "stop "+clean(targets[0].ID), "stopped "+clean(targets[0].ID)+" in "+m.short(targets[0].Tree)
	q := &confirm{
		name: "Stop this member?", text: m.describe(xs[0]),
		effect: "Its agent gets TERM, then KILL. What it has not saved is lost; its tree is free again.",
		yes:    yesKey("stop it"),
	}
	if n := len(targets); n > 1 {
		what, done = "stop "+plural(n, "member", "members"), "stopped "+plural(n, "member", "members")
		q.name, q.text, q.yes = "Stop "+plural(n, "member?", "members?"), nil, yesKey("stop all "+plural(n, "member", "members"))
		q.effect = "Their agents get TERM, then KILL. What they have not saved is lost; their trees are free again."
		for _, x := range targets {
			q.names = append(q.names, x.Role+" in "+m.short(x.Tree)+" · "+string(x.State))
		}
	}
	q.do = func() tea.Cmd {
		return m.start(what, targets[0].Tree, func(ctx context.Context) end {
			return overAll(ctx, targets, done, what, whereMember, func(ctx context.Context, x fleet.Member) error { return f.Stop(ctx, x.ID) })
		})
	}
	m.dialog = q
	return nil
}

// askStopLaunch asks whether to end a launch that is not listed yet.
func (m *Model) askStopLaunch(l fleet.Launch) tea.Cmd {
	f, where := m.fleet, m.short(l.Tree)
	what := "stop the launch in " + where
	m.dialog = &confirm{
		name:   "Stop this launch?",
		text:   []string{l.Role + " on " + l.Profile + " on its way to " + where, "launch " + l.ID + " · " + l.Step},
		effect: "What was started of it is ended. Its tree and its slot are free again.",
		yes:    yesKey("stop it"),
		do: func() tea.Cmd {
			return m.start(what, l.Tree, func(ctx context.Context) end {
				if err := f.Stop(ctx, l.ID); err != nil {
					return failed(what, err)
				}
				return end{level: levelInfo, text: "stopped the launch in " + where}
			})
		},
	}
	return nil
}

// askRestart asks whether to end the chosen members and to dispatch their tasks again.
func (m *Model) askRestart() tea.Cmd {
	xs := m.chosenMembers()
	if x := m.selectedMember(); len(xs) == 0 && x != nil && m.listed() == viewMembers {
		xs = []*fleet.Member{x} // one that has ended can be started again
	}
	if len(xs) == 0 {
		return m.sayNobody("restart")
	}
	targets, f := copies(xs), m.fleet
	what := "restart " + clean(targets[0].ID)
	q := &confirm{
		name: "Restart this member?", text: m.describe(xs[0]),
		effect: "Its agent is ended as by stop. Then its task is dispatched again, as a new member on the same role and profile: an admission like any other.",
		yes:    yesKey("restart it"),
	}
	if n := len(targets); n > 1 {
		what = "restart " + plural(n, "member", "members")
		q.name, q.text, q.yes = "Restart "+plural(n, "member?", "members?"), nil, yesKey("restart all "+plural(n, "member", "members"))
		for _, x := range targets {
			q.names = append(q.names, x.Role+" in "+m.short(x.Tree)+" · "+string(x.State))
		}
	}
	q.do = func() tea.Cmd {
		return m.start(what, targets[0].Tree, func(ctx context.Context) end {
			if len(targets) == 1 {
				x := targets[0]
				o := fleet.Order{Tree: x.Tree, Role: x.Role, Profile: x.Profile, Task: x.Task, Also: paths(x.Also)}
				return outcome(f.Restart(ctx, x.ID), o, m.whereTo(o))
			}
			return overAll(ctx, targets, "restarted "+plural(len(targets), "member", "members"), what, whereMember,
				func(ctx context.Context, x fleet.Member) error { return notAccepted(f.Restart(ctx, x.ID)) })
		})
	}
	m.dialog = q
	return nil
}

// paths is the paths of trees.
func paths(trees []fleet.Tree) []string {
	var out []string
	for _, t := range trees {
		out = append(out, t.Path)
	}
	return out
}

// notAccepted is an outcome as an error, nil where it was accepted.
func notAccepted(o fleet.Outcome) error {
	if o.Outcome == fleet.Accepted {
		return nil
	}
	return fleet.Refuse(o.Code, "%s", o.Message)
}

// askRelease asks whether to drop the chosen reservations.
func (m *Model) askRelease() tea.Cmd {
	es := m.chosenEntries()
	if len(es) == 0 {
		if tree := m.selectedTree(); tree != "" {
			return m.say(levelInfo, "no reservation stands for "+m.short(tree), "")
		}
		return m.say(levelInfo, "no reservation is selected", "")
	}
	for _, e := range es {
		if node := m.hostOf(e.Tree); node != "" {
			_, path := fleet.Where(e.Tree)
			return m.say(levelInfo, m.short(e.Tree)+" is released on "+node, "there it is `fleetdeck release --id "+e.ID+" "+path+"`")
		}
	}
	targets, f := copies(es), m.fleet
	e := targets[0]
	what, done := "release "+m.short(e.Tree), "released "+m.short(e.Tree)
	q := &confirm{
		name:   "Release this reservation?",
		text:   []string{m.short(e.Tree) + " · " + string(e.Verdict), "by " + dispatcher(e.Dispatcher), "id " + e.ID},
		effect: "It holds nothing any more; releasing it tidies the file.",
		yes:    yesKey("release it"),
	}
	for _, e := range targets {
		if e.Verdict == fleet.VerdictPending {
			q.effect = "Its tree counts as free at once. A worker that is still on its way there is refused by the daemon."
			if t := m.treeRowOf(e.Tree); t != nil && t.Launch != "" {
				q.effect = "The daemon has accepted its launch, which goes on and holds the tree: " + m.keys.Stop.Help().Key + " ends that."
			}
		}
	}
	if n := len(targets); n > 1 {
		what, done = "release "+plural(n, "reservation", "reservations"), "released "+plural(n, "reservation", "reservations")
		q.name, q.text, q.yes = "Release "+plural(n, "reservation?", "reservations?"), nil, yesKey("release all "+plural(n, "of them", "of them"))
		for _, e := range targets {
			q.names = append(q.names, m.short(e.Tree)+" · "+string(e.Verdict)+" · "+dispatcher(e.Dispatcher))
		}
	}
	q.do = func() tea.Cmd {
		return m.start(what, e.Tree, func(ctx context.Context) end {
			return overAll(ctx, targets, done, what, func(e fleet.ReservationRow) string { return e.Tree },
				func(ctx context.Context, e fleet.ReservationRow) error { return f.Release(ctx, e.Tree, e.ID) })
		})
	}
	m.dialog = q
	return nil
}

// askUnqueue asks whether to take the chosen tasks out of the queue.
func (m *Model) askUnqueue() tea.Cmd {
	if m.listed() != viewQueue {
		return m.say(levelInfo, "tasks are taken out in the queue", m.keys.Queue.Help().Key+" shows it")
	}
	qs := m.queue.chosen()
	if len(qs) == 0 {
		return m.say(levelInfo, "no task is selected", "")
	}
	targets, f := copies(qs), m.fleet
	what, done := "take a task of "+m.short(targets[0].Tree)+" out of the queue", "taken out: the task of "+m.short(targets[0].Tree)
	q := &confirm{
		name: "Take this task out of the queue?", text: []string{m.short(targets[0].Tree) + " · " + targets[0].Role + " on " + targets[0].Profile, targets[0].Task},
		effect: "It is not sent any more. One that is being sent at this moment may start all the same.",
		yes:    yesKey("take it out"),
	}
	if n := len(targets); n > 1 {
		what, done = "take "+plural(n, "task", "tasks")+" out of the queue", "taken out: "+plural(n, "task", "tasks")
		q.name, q.text, q.yes = "Take "+plural(n, "task", "tasks")+" out of the queue?", nil, yesKey("take all out")
		for _, t := range targets {
			q.names = append(q.names, m.short(t.Tree)+" · "+t.Task)
		}
	}
	q.do = func() tea.Cmd {
		return m.start(what, targets[0].Tree, func(ctx context.Context) end {
			return overAll(ctx, targets, done, what, func(q fleet.QueueRow) string { return q.Tree },
				func(ctx context.Context, q fleet.QueueRow) error { return f.Unqueue(ctx, q.ID) })
		})
	}
	m.dialog = q
	return nil
}
