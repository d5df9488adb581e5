package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/plain"
)

// judge reports the entries that stand for t, with the verdict on each and why.
func (e *explanation) judge(t fleet.Tree, entries []fleet.Entry, roster fleet.Roster) {
	for _, entry := range entries {
		if !t.Same(entry.On()) {
			continue
		}
		verdict, droppable := fleet.Judge(entry, roster, e.at)
		row := fleet.ReservationRow{
			Tree: entry.Tree, ID: entry.ID, Role: entry.Role, Profile: entry.Profile, Slot: entry.Slot, ReservedAt: entry.ReservedAt,
			ExpiresAt: entry.ExpiresAt, RemainingS: entry.Remaining(e.at).Seconds(), Verdict: verdict, Dispatcher: entry.Dispatcher,
			Deadline: entry.Deadline(), Droppable: droppable,
		}
		e.Entries = append(e.Entries, entryReport{ReservationRow: row, Droppable: droppable, Why: e.why(entry, verdict, droppable)})
	}
}

func (e *explanation) why(entry fleet.Entry, verdict fleet.Verdict, droppable bool) string {
	switch {
	case verdict == fleet.VerdictListed:
		return "its worker is listed, so occupancy skips it and a prune drops it"
	case entry.Stale(e.at):
		return "this host wrote it before it was booted again, so nothing that it stands for can be running"
	case verdict == fleet.VerdictExpired:
		return "its grace ran out " + seconds(-entry.Remaining(e.at).Seconds()) + " ago"
	case verdict == fleet.VerdictInvalid && droppable:
		return "it has no id or no clean path, and its time is over"
	case verdict == fleet.VerdictInvalid:
		return "it has no id or no clean path, but whoever wrote it meant something: it holds until its time is over"
	}
	why := "its worker is not listed yet, and its grace has " + seconds(entry.Remaining(e.at).Seconds()) + " left"
	if !e.Daemon.Running {
		why += ", as far as can be known without the daemon"
	}
	return why
}

// holderOf reports who is in the way.
func holderOf(h fleet.Holding, at fleet.Instant) *holderReport {
	r := &holderReport{Reservation: h.ReservationID()}
	if h.Entry != nil {
		r.Dispatcher = h.Entry.Dispatcher
	}
	if h.State == fleet.Reserved {
		r.RemainingS = max(0, h.Remaining.Seconds())
		r.Until = at.Wall.Add(max(0, h.Remaining)).UTC()
	}
	switch {
	case h.Member != nil:
		m := h.Member
		r.Kind, r.ID, r.Path, r.Role, r.Profile, r.State, r.Since = "member", m.ID, m.Tree, m.Role, m.Profile, m.State, m.StartedAt
		r.EndedBy = "the end of its agent, by itself or by 'fleetdeck stop " + m.ID + "'; nothing else, and no time"
	case h.Launch != nil:
		l := h.Launch
		r.Kind, r.ID, r.Path, r.Role, r.Profile, r.Step, r.Since = "launch", l.ID, l.Tree, l.Role, l.Profile, l.Step, l.AcceptedAt
		r.EndedBy = "being listed, when it becomes a member; its failure; or its deadline, when the daemon ends it with all its processes"
	case h.Entry != nil:
		e := h.Entry
		r.Kind, r.ID, r.Path, r.Role, r.Profile, r.Since = "reservation", e.ID, e.Tree, e.Role, e.Profile, e.ReservedAt
		if e.Boot.ID == "" {
			r.Until = e.ExpiresAt // the wall clock is all that its writer gave
		}
		r.EndedBy = "its worker being listed, its dispatch being provably refused, the end of its grace, or 'fleetdeck release'; not the end of who wrote it"
	case h.State == fleet.Foreign:
		f := h.Foreign
		r.Kind, r.ID, r.Path, r.Profile, r.Since = "foreign agent", "pid "+strconv.Itoa(f.Pid), f.Tree, f.Agent, f.Since
		if f.Tree == "" {
			r.Path = f.Dir
		}
		r.EndedBy = "the end of that process: fleetdeck did not start it, and does not end it"
	default:
		return nil
	}
	return r
}

// inTheWay is the refusal that a dispatch gets for who holds the tree.
func (e *explanation) inTheWay(besideForeign bool) error {
	h := e.Holder
	if e.Occupancy == fleet.Foreign && besideForeign {
		return nil
	}
	switch e.Occupancy {
	case fleet.Taken:
		return fleet.Refuse(fleet.CodeTreeOccupied, "%s is occupied by member %s", e.Tree, h.ID)
	case fleet.Reserved:
		return fleet.Refuse(fleet.CodeTreeReserved, "%s is reserved by %s %s, %s left", e.Tree, h.Kind, orNone(h.ID), seconds(h.RemainingS))
	case fleet.Foreign:
		return fleet.Refuse(fleet.CodeTreeForeign, "%s, which fleetdeck did not start, works in %s: %s", h.Profile, e.Tree, h.ID).
			WithHint("end it, or send somebody beside it with --beside-foreign")
	}
	return nil
}

// seconds is s to the precision that a glance needs.
func seconds(s float64) string {
	const most = 1e9 // some 30 years; a foreign writer's grace may be longer than a Duration
	return duration(time.Duration(min(s, most) * float64(time.Second)))
}

// clock is t for people who read it at now.
func clock(t, now time.Time) string {
	if t.Sub(now).Abs() < 12*time.Hour {
		return t.Local().Format("15:04:05")
	}
	return t.Local().Format("2006-01-02 15:04")
}

// lines says it in plain sentences, each safe to draw.
func (e explanation) lines() []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, plain.Clean(fmt.Sprintf(format, args...), -1)) }

	where := "the file"
	if e.Node != "" {
		where = "etcd"
	}
	add("%s is the tree %s (%s).", e.Asked, at(e.Node, e.Tree), e.Spelling)
	e.holderLines(add)
	for _, r := range e.Entries {
		drop := "It may not be dropped"
		if r.Droppable {
			drop = "It may be dropped"
		}
		add("In "+where+": reservation %s under %s, %s%s. %s: %s.", orNone(r.ID), r.Tree, r.Verdict, by(r.Dispatcher), drop, r.Why)
	}
	if len(e.Entries) == 0 && e.File.Error == "" {
		add("In %s: no reservation for it.", where)
	}
	if e.File.Error != "" && e.Node == "" {
		add("The reservation file cannot be used: %s.", e.File.Error)
	} else if e.File.Error != "" {
		add("Nobody can say what other hosts hold: %s.", e.File.Error)
	}
	for _, r := range e.Slots {
		add("Role %s: %d of %d slots free%s.", r.Role, r.Free, len(r.Slots), fillings(r.Slots))
	}
	switch h := e.Lock.Holder; {
	case e.Node != "": // etcd admits
	case h != nil:
		add("The admission lock is held by pid %d (%s): a dispatch waits for it up to %s, then gives up with exit code %d.", h.Pid, h.Program, e.lockWait, exitBusy)
	default:
		add("The admission lock is free.")
	}
	if e.Daemon.Running {
		add("The daemon answers: pid %d, up %s.", e.Daemon.Pid, age(e.Daemon.Since, e.at.Wall))
	} else {
		add("The daemon does not answer, so nobody can say who is in the tree: %s.", e.Daemon.Error)
	}
	if e.Dispatch.Outcome == fleet.Accepted {
		add("A dispatch of a %s on %s would be accepted now, exit code 0, if the agent can be started.", e.Dispatch.Role, e.Dispatch.Profile)
	} else {
		code := ""
		if e.Dispatch.Code != "" {
			code = fmt.Sprintf(" (%s)", e.Dispatch.Code)
		}
		add("A dispatch of a %s on %s would be refused now%s, exit code %d: %s.", e.Dispatch.Role, e.Dispatch.Profile, code, e.Dispatch.ExitCode, e.Dispatch.Message)
	}
	for _, a := range e.Advice {
		add("→ %s", a)
	}
	return out
}

func (e explanation) holderLines(add func(string, ...any)) {
	h := e.Holder
	if h == nil {
		if e.Occupancy == fleet.Taken || e.Occupancy == fleet.Reserved {
			add("It is %s, by another host.", e.Occupancy)
		} else if e.Daemon.Running && e.File.Error == "" {
			add("It is free: nobody is in it, and nobody is on the way.")
		} else {
			add("Nobody is known to be in it, which proves nothing.")
		}
		return
	}
	what := fmt.Sprintf("It is %s: %s %s", e.Occupancy, h.Kind, orNone(h.ID))
	if h.Kind == "foreign agent" {
		what += ", " + h.Profile
	}
	if h.Role != "" {
		what += fmt.Sprintf(", a %s on %s", h.Role, h.Profile)
	}
	for _, s := range []string{string(h.State), h.Step} {
		if s != "" {
			what += ", " + s
		}
	}
	what += by(h.Dispatcher)
	if !h.Since.IsZero() {
		what += fmt.Sprintf(", since %s (%s)", clock(h.Since, e.at.Wall), age(h.Since, e.at.Wall))
	}
	if e.Occupancy == fleet.Reserved {
		what += fmt.Sprintf(", until %s at the latest (%s left)", clock(h.Until, e.at.Wall), seconds(h.RemainingS))
	}
	add("%s.", what)
	if h.Path != e.Tree {
		add("It is held as %s, another path of the same directory.", h.Path)
	}
	add("What ends that: %s.", h.EndedBy)
}

func orNone(id string) string {
	if id == "" {
		return "without an id"
	}
	return id
}

func by(d fleet.Dispatcher) string {
	if d.Program == "" && d.Pid == 0 {
		return ""
	}
	return fmt.Sprintf(", written by %s (pid %d on %s)", orNone(d.Program), d.Pid, d.Host)
}

// at names a path of a node, if there are nodes.
func at(node, path string) string {
	if node == "" {
		return path
	}
	return node + ":" + path
}

// fillings says what fills the slots that are not free.
func fillings(slots []fleet.Slot) string {
	var taken []string
	for _, sl := range slots {
		if sl.State != fleet.SlotFree {
			taken = append(taken, fmt.Sprintf("%s %s by %s in %s", sl.Name, sl.State, sl.Member, at(sl.Node, sl.Tree)))
		}
	}
	if len(taken) == 0 {
		return ""
	}
	return ": " + strings.Join(taken, ", ")
}

func printLines(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
