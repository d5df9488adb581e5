package tui

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// act is one change of the fleet, from the key to its end.
//
//	start ──► under way ──► ended: a notice says how
//	             │ esc
//	             └──► cancelled: its context ends; how it really ended is still reported
//
// While it is under way its line says whether it waits for the admission lock, and for whom.
type act struct {
	id        uint64
	command   uint64 // of the first act that the same command began: esc calls off all of them
	label     string // "dispatch ~/src/api"
	tree      string
	since     fleet.Instant
	cancel    context.CancelFunc
	cancelled bool
}

func (a *act) stop() {
	a.cancelled = true
	a.cancel()
}

// end is how an act ended, as people read it.
type end struct {
	level      string
	text, hint string
	refused    bool  // a dispatch that left nothing behind
	held       *held // what was refused because somebody has the tree
	accepted   *fleet.Outcome
	order      *fleet.Order // of a dispatch, which was not accepted: what it said is kept for the next try
}

type endedMsg struct {
	id  uint64
	end end
}

// start runs a change in a tea.Cmd, with a context of its own.
func (m *Model) start(label, tree string, run func(context.Context) end) tea.Cmd {
	ctx, cancel := context.WithCancel(m.ctx)
	a := &act{id: m.next(), label: label, tree: tree, since: m.now, cancel: cancel}
	a.command = a.id
	m.acts = append(m.acts, a)
	do := func() tea.Msg {
		defer cancel()
		return endedMsg{a.id, run(ctx)}
	}
	if len(m.acts) > 1 {
		return do // the lock is being looked at already
	}
	m.shown = fleet.LockInfo{}
	return tea.Batch(do, m.lookAtLock())
}

// callOff cancels what the latest command that can still be cancelled began, and reports whether there was one.
func (m *Model) callOff() bool {
	var command uint64
	for _, a := range m.acts {
		if !a.cancelled {
			command = a.command
		}
	}
	for _, a := range m.acts {
		if a.command == command {
			a.stop()
		}
	}
	return command != 0
}

type lockMsg struct{ fleet.LockInfo }

// lookInterval is how often the lock is looked at while an act is under way.
const lookInterval = 250 * time.Millisecond

func (m *Model) lookAtLock() tea.Cmd {
	f := m.fleet
	return tea.Tick(lookInterval, func(time.Time) tea.Msg { return lockMsg{f.Lock()} })
}

func (m *Model) gotLock(msg lockMsg) tea.Cmd {
	if len(m.acts) == 0 {
		return nil
	}
	m.shown = msg.LockInfo
	return m.lookAtLock()
}

// ended says how an act ended, and reads the fleet anew.
func (m *Model) ended(msg endedMsg) tea.Cmd {
	for i, a := range m.acts {
		if a.id != msg.id {
			continue
		}
		m.acts = append(m.acts[:i:i], m.acts[i+1:]...)
		m.settle(a, msg.end)
		e := msg.end
		if a.cancelled && e.level != levelInfo {
			e.level = levelWarn
			e.text = "cancelled: " + e.text
		}
		if e.held != nil && !a.cancelled {
			m.offerElse(e.held)
		}
		if o := e.order; o != nil {
			m.drafts[o.Tree] = *o
		}
		return tea.Batch(m.record(e, a.tree), m.pollNow(), m.awaitSettled(e))
	}
	return nil
}

// settledMsg is what became of an accepted dispatch.
type settledMsg struct {
	tree string
	out  fleet.Outcome
}

// awaitSettled waits, out of sight, for what becomes of an accepted dispatch.
func (m *Model) awaitSettled(e end) tea.Cmd {
	if e.accepted == nil {
		return nil
	}
	f, ctx, out := m.fleet, m.ctx, *e.accepted
	return func() tea.Msg { return settledMsg{out.Tree, f.Settled(ctx, out)} }
}

// gotSettled says that a dispatch which was accepted came to nothing. One that came to something shows by itself.
func (m *Model) gotSettled(msg settledMsg) tea.Cmd {
	if msg.out.Outcome == fleet.Accepted || m.ctx.Err() != nil {
		return nil
	}
	return m.record(end{level: levelAlarm, text: m.short(msg.tree) + ": the dispatch came to nothing: " + msg.out.Message, hint: msg.out.Hint}, msg.tree)
}

// progress is an act under way as lines of at most w cells: what it is, whom it waits for, how long already, and how
// to cancel it.
func (m *Model) progress(a *act, w int) []string {
	what, wait := clean(a.label), ""
	switch h := m.shown.Holder; {
	case a.cancelled:
		what += " · cancelling"
	case m.many(): // the lock of this host is waited for by nothing
	case h != nil && h.Pid != m.pid:
		wait = "waiting for the admission lock · held by " + holder(h)
	case m.shown.State == "held" && h == nil:
		wait = "waiting for the admission lock · its holder cannot be seen"
	}
	since := " · " + seconds(m.now.Mono-a.since.Mono)
	if !a.cancelled {
		since += " · esc cancels"
	}
	if wait == "" {
		return []string{cut(what, w-width(since)) + since}
	}
	if one := what + " · " + wait + since; width(one) <= w {
		return []string{one}
	}
	return append([]string{cut(what, w-width(since)) + since}, wrap(wait, w)...)
}

// holder names a process that holds the lock.
func holder(h *fleet.LockHolder) string {
	if h.Program == "" {
		return fmt.Sprintf("pid %d", h.Pid)
	}
	return fmt.Sprintf("pid %d (%s)", h.Pid, cut(h.Program, 40))
}

// failed is the end of an act that gave err.
func failed(what string, err error) end {
	if r := fleet.RefusalOf(err); r != nil {
		return end{level: levelAlarm, text: what + ": " + r.Message, hint: r.Hint}
	}
	if errors.Is(err, context.Canceled) {
		return end{level: levelWarn, text: what + " gave up before it changed anything"}
	}
	return end{level: levelAlarm, text: what + ": " + err.Error()}
}

// assumption is a dispatch that the console was asked for and that no snapshot shows yet.
//
//	assumed ──► the tree is no longer free in a snapshot: forgotten, the snapshot is the truth
//	        ──► refused: forgotten
//	        ──► settled ──► a snapshot made later still shows the tree free: forgotten
type assumption struct {
	act     uint64
	role    string
	profile string
	settled bool
	at      fleet.Instant // when it was settled
}

// assume shows the dispatch that was just started on the rows of its trees. One into a new worktree has no row yet.
func (m *Model) assume(o fleet.Order) {
	trees := o.Also
	if o.Branch == "" {
		trees = append([]string{o.Tree}, trees...)
	}
	for _, t := range trees {
		m.assumed[t] = &assumption{act: m.acts[len(m.acts)-1].id, role: o.Role, profile: o.Profile}
	}
}

// settle takes note of the end of a dispatch.
func (m *Model) settle(a *act, e end) {
	for tree, as := range m.assumed {
		switch {
		case as.act != a.id:
		case e.refused:
			delete(m.assumed, tree)
		default:
			as.settled, as.at = true, m.now
		}
	}
}

// confirm forgets the assumptions that the present snapshot has overtaken.
func (m *Model) confirm() {
	if len(m.assumed) == 0 {
		return
	}
	for _, t := range m.ix.trees {
		as := m.assumed[t.Tree]
		if as == nil {
			continue
		}
		later := as.settled && m.ix.At.Boot == as.at.Boot && m.ix.At.Mono > as.at.Mono
		if t.Occupancy != fleet.Free || later {
			delete(m.assumed, t.Tree)
		}
	}
	for tree, as := range m.assumed {
		// A tree that no snapshot lists is on no row: its act's line and its end's notice are all there is to show.
		if as.settled && !m.knows(tree) {
			delete(m.assumed, tree)
		}
	}
}

// knows reports whether the fleet lists tree.
func (m *Model) knows(tree string) bool { return m.ix.tree[tree] != nil }
