package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// action is something that the operator can have done outside of text: by its key, by its name in the palette, and
// under that name in the configuration.
type action struct {
	name  string
	group string
	key   *key.Binding
	// changes says that it changes the fleet or what is in a tree: it is off where the console is read-only.
	changes bool
	// destroys says that it ends something that does not come back: its key has to be a shifted letter.
	destroys bool
	// many says that it is for a fleet of many hosts: it is there in no other.
	many bool
	run  func(*Model) tea.Cmd
}

// does makes an action's run of a method that needs no command.
func does(f func(*Model)) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd { f(m); return nil }
}

// moves steps in the pane that has the focus.
func moves(by func(at mover) int) func(*Model) tea.Cmd {
	return does(func(m *Model) { at := m.mover(); at.step(by(at)) })
}

func shows(v view) func(*Model) tea.Cmd { return does(func(m *Model) { m.show(v) }) }

// The groups of actions, in the order in which help shows them.
const (
	groupMove  = "Move"
	groupSee   = "See"
	groupMark  = "Mark"
	groupAct   = "Act"
	groupEnd   = "End"
	groupLeave = "Leave"
)

// actions is everything that can be done, in the order of help. The first of a key's actions wins; there is only one.
func (k *keymap) actions() []action {
	half := func(at mover) int { return max(at.paging()/2, 1) }
	return []action{
		{name: "spawn", group: groupAct, key: &k.Spawn, changes: true, run: (*Model).askSpawn},
		{name: "enqueue", group: groupAct, key: &k.Enqueue, changes: true, run: (*Model).askQueue},
		{name: "attach", group: groupAct, key: &k.Attach, run: (*Model).open},
		{name: "message", group: groupAct, key: &k.Message, changes: true, run: (*Model).askMessage},
		{name: "answer", group: groupAct, key: &k.Answer, changes: true, run: (*Model).askAnswer},
		{name: "shell", group: groupAct, key: &k.Shell, changes: true, run: (*Model).openShell},
		{name: "edit", group: groupAct, key: &k.Edit, changes: true, run: (*Model).openEditor},
		{name: "diff", group: groupAct, key: &k.Diff, run: (*Model).showDiff},
		{name: "explain", group: groupAct, key: &k.Explain, run: (*Model).showExplanation},
		{name: "copy", group: groupAct, key: &k.Copy, run: (*Model).copyPath},
		{name: "copy-id", group: groupAct, key: &k.CopyID, run: (*Model).copyID},

		{name: "prune", group: groupEnd, key: &k.Prune, changes: true, destroys: true, run: (*Model).askPrune},
		{name: "release", group: groupEnd, key: &k.Release, changes: true, destroys: true, run: (*Model).askRelease},
		{name: "stop", group: groupEnd, key: &k.Stop, changes: true, destroys: true, run: (*Model).askStop},
		{name: "restart", group: groupEnd, key: &k.Restart, changes: true, destroys: true, run: (*Model).askRestart},
		{name: "dequeue", group: groupEnd, key: &k.Unqueue, changes: true, destroys: true, run: (*Model).askUnqueue},

		{name: "mark", group: groupMark, key: &k.Mark, run: does(func(m *Model) { m.list().mark() })},
		{name: "mark-range", group: groupMark, key: &k.Range, run: does(func(m *Model) { m.list().markRange() })},
		{name: "mark-all", group: groupMark, key: &k.MarkAll, run: does(func(m *Model) { m.list().markAll() })},

		{name: "trees", group: groupSee, key: &k.Trees, run: shows(viewTrees)},
		{name: "members", group: groupSee, key: &k.Members, run: shows(viewMembers)},
		{name: "slots", group: groupSee, key: &k.Slots, run: shows(viewSlots)},
		{name: "reservations", group: groupSee, key: &k.Reservations, run: shows(viewReservations)},
		{name: "queue", group: groupSee, key: &k.Queue, run: shows(viewQueue)},
		{name: "events", group: groupSee, key: &k.Events, run: shows(viewEvents)},
		{name: "history", group: groupSee, key: &k.History, run: shows(viewHistory)},
		{name: "nodes", group: groupSee, key: &k.Nodes, many: true, run: shows(viewNodes)},
		{name: "go-to", group: groupSee, key: &k.GoTo, run: (*Model).goTo},
		{name: "waiting", group: groupSee, key: &k.Waiting, run: (*Model).nextWaiting},
		{name: "filter", group: groupSee, key: &k.Filter, run: does((*Model).startFilter)},
		{name: "faults", group: groupSee, key: &k.Faults, run: does(func(m *Model) { m.list().toggleFaults() })},
		{name: "group", group: groupSee, key: &k.Group, run: (*Model).regroup},
		{name: "sort-next", group: groupSee, key: &k.SortNext, run: (*Model).sortNext},
		{name: "sort-previous", group: groupSee, key: &k.SortPrev, run: (*Model).sortPrevious},
		{name: "sort-reverse", group: groupSee, key: &k.SortReverse, run: does(func(m *Model) { m.list().reverse() })},
		{name: "refresh", group: groupSee, key: &k.Refresh, run: func(m *Model) tea.Cmd { return tea.Batch(tea.ClearScreen, m.refresh()) }},
		{name: "palette", group: groupSee, key: &k.Palette, run: does((*Model).openPalette)},
		{name: "help", group: groupSee, key: &k.Help, run: does(func(m *Model) { m.dialog = &helpDialog{} })},

		{name: "up", group: groupMove, key: &k.Up, run: moves(func(mover) int { return -1 })},
		{name: "down", group: groupMove, key: &k.Down, run: moves(func(mover) int { return 1 })},
		{name: "first", group: groupMove, key: &k.Top, run: moves(func(mover) int { return -far })},
		{name: "last", group: groupMove, key: &k.Bottom, run: moves(func(mover) int { return far })},
		{name: "half-up", group: groupMove, key: &k.HalfUp, run: moves(func(at mover) int { return -half(at) })},
		{name: "half-down", group: groupMove, key: &k.HalfDown, run: moves(half)},
		{name: "page-up", group: groupMove, key: &k.PageUp, run: moves(func(at mover) int { return -at.paging() })},
		{name: "page-down", group: groupMove, key: &k.PageDown, run: moves(mover.paging)},
		{name: "next-pane", group: groupMove, key: &k.NextPane, run: does(func(m *Model) { m.turn(1) })},
		{name: "previous-pane", group: groupMove, key: &k.PrevPane, run: does(func(m *Model) { m.turn(-1) })},
		{name: "pane", group: groupMove, key: &k.Placement, run: (*Model).placeDetail},
		{name: "zoom", group: groupMove, key: &k.Zoom, run: does((*Model).zoom)},

		{name: "back", group: groupLeave, key: &k.Back, run: (*Model).back},
		{name: "quit", group: groupLeave, key: &k.Quit, run: (*Model).quit},
		{name: "quit-now", group: groupLeave, key: &k.ForceQuit, run: func(*Model) tea.Cmd { return tea.Quit }},
		{name: "suspend", group: groupLeave, key: &k.Suspend, run: (*Model).suspend},
	}
}

// keyGroup is a titled part of the help.
type keyGroup struct {
	title   string
	actions []action
}

// groups is all actions by group.
func groups(all []action) []keyGroup {
	var out []keyGroup
	for _, a := range all {
		if n := len(out); n == 0 || out[n-1].title != a.group {
			out = append(out, keyGroup{title: a.group})
		}
		g := &out[len(out)-1]
		g.actions = append(g.actions, a)
	}
	return out
}

// command runs the action of a key.
func (m *Model) command(msg tea.KeyPressMsg) tea.Cmd {
	if a := m.byKey[msg.String()]; a != nil {
		return m.perform(a)
	}
	return nil
}

// perform runs an action, or says why it is off.
func (m *Model) perform(a *action) tea.Cmd {
	if a.many && !m.many() {
		return nil
	}
	if a.changes && m.opts.ReadOnly {
		return m.say(levelInfo, a.key.Help().Desc+" is off: this console is read-only", "")
	}
	return a.run(m)
}
