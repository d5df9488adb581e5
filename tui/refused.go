package tui

import (
	"context"
	"slices"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// held is a dispatch that was refused because somebody has the tree.
type held struct {
	order   fleet.Order
	message string
	foreign bool // it is held by an agent that fleetdeck did not start
	there   bool // its tree is on another host, whose queue is its own
}

// heldDialog says who holds the tree and until when, and offers what else can be done with the dispatch. It comes up by
// itself, so it swallows keys for a moment.
type heldDialog struct {
	held
	grace grace
}

// offerElse opens the dialog, where nothing else is open.
func (m *Model) offerElse(h *held) {
	if m.dialog != nil || m.typing {
		return // the notice says it, and the key that was meant for something else stays with that
	}
	d := &heldDialog{held: *h}
	d.there = m.hostOf(h.order.Tree) != ""
	d.grace.begin(m.now.Mono)
	m.dialog = d
}

func (d *heldDialog) title() string   { return "Refused" }
func (d *heldDialog) takesText() bool { return false }
func (d *heldDialog) keys() []key.Binding {
	keys := []key.Binding{keyWait}
	if d.queueable() {
		keys = append(keys, keyQueueIt)
	}
	keys = append(keys, keyWorktree)
	if d.foreign {
		keys = append(keys, keyBeside)
	}
	return append(keys, keyClose)
}

// queueable reports whether it can wait in the queue, where a task is for one tree of this host that is there.
func (d *heldDialog) queueable() bool {
	return !d.there && len(d.order.Also) == 0 && d.order.Branch == ""
}

func (d *heldDialog) lines(m *Model, w, h int) []string {
	out := []string{m.strong.of(cut(m.whereTo(d.order), w))}
	for _, l := range wrap(d.message, w) {
		out = append(out, m.danger.of(l))
	}
	var now []string
	for _, tree := range d.trees() {
		if t := m.treeRowOf(tree); t != nil {
			now = append(now, m.treeIsNow(t, w))
		}
	}
	if len(now) > 0 {
		out = append(append(out, ""), now[:min(len(now), max(h-len(out)-5, 1))]...)
	}
	what := "You can wait until the tree is free and dispatch then, leave it to the queue, or take a new linked worktree."
	switch {
	case d.there && len(d.order.Also) == 0:
		what = "You can wait until the tree is free and dispatch then, or take a new linked worktree."
	case !d.queueable():
		what = "You can wait until all of its trees are free and dispatch then, or take a new linked worktree."
	}
	for _, l := range wrap("Nothing was started and nothing stays reserved. "+what, w) {
		out = append(out, m.faint.of(l))
	}
	return out
}

// trees is what the order's agent is to hold, as far as it is there already.
func (h held) trees() []string {
	if h.order.Branch != "" {
		return h.order.Also
	}
	return append([]string{h.order.Tree}, h.order.Also...)
}

// treeIsNow says how a tree of a refused order is at present.
func (m *Model) treeIsNow(t *fleet.TreeRow, w int) string {
	now := m.occupancy(t.Occupancy).String()
	switch x := m.ix.member[t.Member]; {
	case x != nil:
		now += " by " + cut(x.Role, 16) + " · " + m.member(x.State).String() + " · up " + m.up(x)
	case t.Occupancy == fleet.Reserved:
		m.counting = true
		now += " · " + countdown(t.Deadline.Remaining(m.now)) + " left at most"
	}
	name := m.short(t.Tree)
	return fit(cut(name, max(w-width(now)-8, 12))+" is now "+now, w)
}

func (d *heldDialog) update(m *Model, msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyPressMsg)
	switch {
	case !ok:
	case key.Matches(k, m.keys.Back):
		m.dialog = nil
	case d.grace.swallows(m.now.Mono):
	case key.Matches(k, keyWait):
		m.dialog = nil
		return m.waitFor(d.order)
	case d.queueable() && key.Matches(k, keyQueueIt):
		m.dialog = nil
		if d.order.Task != "" {
			return m.enqueue(d.order)
		}
		return m.again(d.order, true)
	case key.Matches(k, keyWorktree):
		m.dialog = nil
		cmd := m.again(d.order, false)
		m.dialog.(*spawnDialog).field = fieldBranch
		return cmd
	case d.foreign && key.Matches(k, keyBeside):
		m.dialog = nil
		o := d.order
		o.BesideForeign = true
		return m.dispatch(o)
	case key.Matches(k, keyClose):
		m.dialog = nil
	}
	return nil
}

// again opens the form with what an earlier order said.
func (m *Model) again(o fleet.Order, queue bool) tea.Cmd {
	cmd := m.openSpawn(queue)
	d := m.dialog.(*spawnDialog)
	d.tree, d.trees, d.also, d.field = o.Tree, nil, o.Also, fieldTask
	d.role.offer(d.role.of, o.Role)
	d.role.at = max(indexOf(d.role.of, o.Role), 0)
	d.profile.at = max(indexOf(d.profile.of, o.Profile), 0)
	d.task.set(o.Task)
	return cmd
}

func indexOf(of []string, s string) int {
	for i, o := range of {
		if o == s {
			return i
		}
	}
	return -1
}

// waitFor dispatches once all of its trees are free. Somebody else may be quicker: then it is refused as ever.
func (m *Model) waitFor(o fleet.Order) tea.Cmd {
	f, where := m.fleet, m.whereTo(o)
	return m.start("wait for "+where, o.Tree, func(ctx context.Context) end {
		for rev := uint64(0); ; {
			s, err := f.Snapshot(ctx, rev)
			if err != nil {
				return failed("wait for "+where, err)
			}
			if freeIn(s, held{order: o}.trees(), o.BesideForeign) {
				return outcome(f.Dispatch(ctx, o), o, where)
			}
			rev = s.Rev
		}
	})
}

// freeIn reports whether nobody is in the way in any of trees. One of another host is listed only while it is held.
func freeIn(s fleet.Snapshot, trees []string, besideForeign bool) bool {
	heard := s.Cluster != nil && s.Cluster.Error == "" && s.File.Error == ""
	return !slices.ContainsFunc(trees, func(tree string) bool {
		for _, t := range s.Trees {
			if t.Tree == tree {
				return t.Occupancy != fleet.Free && !(besideForeign && t.Occupancy == fleet.Foreign)
			}
		}
		node, _ := fleet.Where(tree)
		return !heard || node == "" || node == s.Cluster.Node
	})
}
