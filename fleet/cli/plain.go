package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/observe"
	"fleetdeck/fleet/plain"
	"fleetdeck/fleet/replay"
	"fleetdeck/tui"
)

// runPlain shows the fleet line by line until a signal ends it.
func runPlain(ctx context.Context, g *globals, o consoleOptions) (err error) {
	s, err := g.open()
	if err != nil {
		return err
	}
	ctx, live, stop := s.watch(ctx)
	defer stop()
	if o.record != "" {
		rec, rerr := replay.Create(o.record, now(), observe.Same)
		if rerr != nil {
			return &usageError{rerr}
		}
		defer func() { err = errors.Join(err, rec.Close()) }()
		defer recordAll(ctx, live, rec)()
	}
	return g.plain(ctx, live)
}

// plain prints how the fleet stands, then a line for each change, until ctx ends or source does, with [io.EOF].
func (g *globals) plain(ctx context.Context, source interface {
	Snapshot(ctx context.Context, rev uint64) (fleet.Snapshot, error)
}) error {
	var known fleet.Snapshot
	for {
		next, err := source.Snapshot(ctx, known.Rev)
		if p := (*tui.Panic)(nil); errors.As(context.Cause(ctx), &p) {
			return p
		}
		if ctx.Err() != nil || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		list := status(next)
		if known.Rev > 0 {
			next = carry(known, next)
			list = diff(known, next)
		}
		for _, c := range list {
			if err := g.printChange(c); err != nil {
				return err
			}
		}
		known = next
	}
}

// change is something that changed in the fleet, in words.
type change struct {
	Time time.Time `json:"time"`
	// Kind is what it is about: "daemon", "file", "lock", "keeper", "tree", "member", "slot", "queue", "event", "history",
	// "cluster" or "node".
	Kind   string `json:"kind"`
	Tree   string `json:"tree,omitempty"`
	Member string `json:"member,omitempty"`
	// Status says that it is how things stood at the beginning, and no change.
	Status bool   `json:"status,omitempty"`
	Text   string `json:"text"`
}

func (g *globals) printChange(c change) error {
	c.Text = plain.Clean(c.Text, -1)
	if g.json {
		return g.printLine(c)
	}
	at := ""
	if !c.Status {
		at = c.Time.Local().Format("15:04:05") + " "
	}
	_, err := fmt.Fprintf(g.out, "%s%s\n", at, c.Text)
	return err
}

// changes gathers changes of one moment.
type changes struct {
	at   time.Time
	list []change
}

func (c *changes) add(kind, tree, member, format string, args ...any) {
	c.list = append(c.list, change{Time: c.at, Kind: kind, Tree: tree, Member: member, Text: fmt.Sprintf(format, args...)})
}

// status is how the fleet stands, in words: everything that is not at rest.
func status(s fleet.Snapshot) []change {
	empty := fleet.Snapshot{
		Daemon: fleet.DaemonInfo{Running: !s.Daemon.Running}, Lock: fleet.LockInfo{State: "free"}, Events: s.Events, History: s.History,
	}
	free := 0
	for _, t := range s.Trees {
		if t.Occupancy == fleet.Free && !t.Missing || !s.Daemon.Running {
			free++
			empty.Trees = append(empty.Trees, t) // counted, not told one by one
		}
	}
	list := diff(empty, s)
	all := changes{at: moment(s)}
	if s.Daemon.Running {
		all.add("tree", "", "", "%d trees, %d of them free", len(s.Trees), free)
	} else {
		all.add("tree", "", "", "%d trees; who is where is not known without the daemon", len(s.Trees))
	}
	list = append(list, all.list...)
	for i := range list {
		list[i].Status = true
	}
	return list
}

// moment is when s was made, for people.
func moment(s fleet.Snapshot) time.Time { return s.At.Wall }

// carry is next, with what only the daemon knows taken from prev where the daemon does not answer: nothing is known to have
// changed then.
func carry(prev, next fleet.Snapshot) fleet.Snapshot {
	if !next.Daemon.Running {
		next.Trees, next.Members, next.Launches, next.Slots = prev.Trees, prev.Members, prev.Launches, prev.Slots
	}
	return next
}

// diff says in words what changed from prev to next.
func diff(prev, next fleet.Snapshot) []change {
	c := &changes{at: moment(next)}
	c.base(prev, next)
	c.cluster(prev, next)
	c.trees(prev, next)
	c.members(prev, next)
	c.slots(prev, next)
	c.queue(prev, next)
	c.told(prev, next)
	return c.list
}

// base is what everything else rests on: daemon, file, lock and keeper.
func (c *changes) base(prev, next fleet.Snapshot) {
	switch p, n := prev.Daemon, next.Daemon; {
	case n.Running && !p.Running:
		c.add("daemon", "", "", "daemon is up, pid %d, version %s", n.Pid, n.Version)
	case n.Running && p.Pid != n.Pid:
		c.add("daemon", "", "", "daemon is another by now, pid %d, version %s", n.Pid, n.Version)
	case !n.Running && p.Running:
		c.add("daemon", "", "", "daemon is down, start it with 'fleetdeck up': %s", n.Error)
	}
	if p, n := prev.File.Error, next.File.Error; next.Cluster != nil {
		// what stands in the file's place has lines of its own
	} else if p != n && n != "" {
		c.add("file", "", "", "reservation file is unusable, dispatches are refused: %s", n)
	} else if p != n {
		c.add("file", "", "", "reservation file is usable again")
	}
	switch p, n := prev.Lock.Holder, next.Lock.Holder; {
	case n != nil && (p == nil || p.Pid != n.Pid):
		c.add("lock", "", "", "lock is held by pid %d (%s)", n.Pid, n.Program)
	case n == nil && p != nil:
		c.add("lock", "", "", "lock is free")
	}
	p, n := prev.Keeper, next.Keeper
	if n.Running && !p.Running {
		c.add("keeper", "", "", "keeper runs, %d trees to keep staffed", n.Staff)
	} else if p.Running && !n.Running {
		c.add("keeper", "", "", "keeper does not run any more")
	}
	if n.Broken != p.Broken {
		c.add("keeper", "", "", "keeper has given up on %d of %d trees, see 'fleetdeck keep --status'", n.Broken, n.Staff)
	}
	if n.Error != "" && n.Error != p.Error {
		c.add("keeper", "", "", "keeper's files are unusable: %s", n.Error)
	}
}

func (c *changes) trees(prev, next fleet.Snapshot) {
	before := byKey(prev.Trees, func(t fleet.TreeRow) string { return t.Tree })
	for _, t := range next.Trees {
		was, known := before[t.Tree]
		delete(before, t.Tree)
		name := shorten(t.Tree)
		switch {
		case t.Missing && !was.Missing:
			c.add("tree", t.Tree, t.Member, "tree %s is missing: its directory is gone", name)
		case was.Missing && !t.Missing:
			c.add("tree", t.Tree, t.Member, "tree %s is there again", name)
		}
		switch {
		case was.Occupancy == t.Occupancy && was.Member == t.Member && was.Reservation == t.Reservation:
		case t.Occupancy == fleet.Free && !known:
			c.add("tree", t.Tree, "", "tree %s is new, and free", name)
		default:
			c.add("tree", t.Tree, t.Member, "tree %s is %s", name, holder(t, next))
		}
		if known && was.Branch != t.Branch && t.Branch != "" {
			c.add("tree", t.Tree, t.Member, "tree %s is on branch %s", name, t.Branch)
		}
	}
	for _, t := range prev.Trees {
		if _, gone := before[t.Tree]; gone {
			c.add("tree", t.Tree, "", "tree %s is not listed any more", shorten(t.Tree))
		}
	}
}

// holder says what a tree is, and through whom.
func holder(t fleet.TreeRow, s fleet.Snapshot) string {
	switch t.Occupancy {
	case fleet.Taken:
		for _, m := range s.Members {
			if m.ID == t.Member {
				whole := ""
				if n := len(m.Also); n > 0 {
					whole = fmt.Sprintf(", over %d trees, begun in %s", n+1, shorten(m.Tree))
				}
				return fmt.Sprintf("occupied by member %s, %s on %s, %s%s", m.ID, m.Role, m.Profile, m.State, whole)
			}
		}
		return "occupied by member " + t.Member
	case fleet.Reserved:
		by := ""
		for _, r := range s.Reservations {
			if r.Tree == t.Tree && r.ID == t.Reservation && r.Dispatcher.Program != "" {
				by = fmt.Sprintf(" by %s, pid %d", r.Dispatcher.Program, r.Dispatcher.Pid)
			}
		}
		return fmt.Sprintf("reserved%s, %s left", by, duration(time.Duration(t.RemainingS*float64(time.Second))))
	}
	return string(t.Occupancy)
}

func (c *changes) members(prev, next fleet.Snapshot) {
	before := byKey(prev.Members, func(m fleet.Member) string { return m.ID })
	for _, m := range next.Members {
		was, known := before[m.ID]
		name := fmt.Sprintf("member %s in %s", m.ID, shorten(m.Tree))
		if m.CharterMismatch && !was.CharterMismatch {
			c.add("member", m.Tree, m.ID, "%s has the charter of a role that it does not hold", name)
		}
		if was.State == m.State && (m.State != fleet.StateWaiting || was.StateMessage == m.StateMessage) {
			continue
		}
		switch {
		case m.State == fleet.StateWaiting:
			c.add("member", m.Tree, m.ID, "%s waits: “%s”", name, m.StateMessage)
		case m.State == fleet.StateExited && m.ExitCode != nil && known:
			c.add("member", m.Tree, m.ID, "%s ended with code %d", name, *m.ExitCode)
		case m.State == fleet.StateExited && known:
			c.add("member", m.Tree, m.ID, "%s ended, its exit code is not known", name)
		case known && m.StateMessage != "":
			c.add("member", m.Tree, m.ID, "%s is %s: “%s”", name, m.State, m.StateMessage)
		case known:
			c.add("member", m.Tree, m.ID, "%s is %s", name, m.State)
		}
	}
}

func (c *changes) slots(prev, next fleet.Snapshot) {
	before := byKey(prev.Slots, func(s fleet.Slot) string { return s.Name })
	for _, s := range next.Slots {
		if was := before[s.Name]; was.State == s.State && was.Member == s.Member {
			continue
		}
		text := "slot " + s.Name + " is " + s.State
		switch s.State {
		case fleet.SlotReserved:
			text += " for a launch in " + shorten(s.Tree)
		case fleet.SlotBound:
			text += " to member " + s.Member + " in " + shorten(s.Tree)
		}
		c.add("slot", s.Tree, s.Member, "%s", text)
	}
}

func (c *changes) queue(prev, next fleet.Snapshot) {
	before := byKey(prev.Queue, func(r fleet.QueueRow) string { return r.ID })
	for _, r := range next.Queue {
		was, known := before[r.ID]
		delete(before, r.ID)
		if known && was.State == r.State {
			continue
		}
		text := fmt.Sprintf("task %s for %s is %s", r.ID, shorten(r.Tree), strings.ReplaceAll(r.State, "_", " "))
		if r.Error != "" {
			text += ": " + r.Error
		}
		c.add("queue", r.Tree, "", "%s", text)
	}
	for _, r := range prev.Queue {
		if _, gone := before[r.ID]; gone {
			c.add("queue", r.Tree, "", "task %s for %s has left the queue", r.ID, shorten(r.Tree))
		}
	}
}

// told is what others say: the daemon's warnings that no other line is about, and what consoles did.
func (c *changes) told(prev, next fleet.Snapshot) {
	for _, e := range fresh(prev.Events, next.Events) {
		if e.Level == "info" || e.Kind == "state" || e.Kind == "exited" {
			continue
		}
		text := e.Level + ": "
		if e.Tree != "" {
			text += shorten(e.Tree) + ": "
		}
		c.add("event", e.Tree, e.Member, "%s", text+e.Message)
	}
	for _, d := range fresh(prev.History, next.History) {
		text := fmt.Sprintf("console, pid %d: %s: %s", d.By.Pid, d.Command, d.Outcome)
		if d.Message != "" {
			text += ": " + d.Message
		}
		c.add("history", d.Tree, d.Member, "%s", text)
	}
}

// fresh is what next has at its end that prev does not have.
func fresh[T comparable](prev, next []T) []T {
	if len(prev) == 0 {
		return next
	}
	last := prev[len(prev)-1]
	for i := len(next) - 1; i >= 0; i-- {
		if next[i] == last {
			return next[i+1:]
		}
	}
	return next
}

func byKey[T any](rows []T, key func(T) string) map[string]T {
	m := make(map[string]T, len(rows))
	for _, r := range rows {
		m[key(r)] = r
	}
	return m
}
