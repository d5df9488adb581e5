package tui

import (
	"fmt"
	"strings"
	"time"

	"fleetdeck/fleet"
)

// entryKind is the list of reservations.
func (m *Model) entryKind() kind[*fleet.ReservationRow] {
	type row = *fleet.ReservationRow
	role := func(e row) string { return e.Role }
	profile := func(e row) string { return e.Profile }
	by := func(e row) string { return dispatcher(e.Dispatcher) }
	verdict := func(e row) string { return string(e.Verdict) }
	node := func(e row) string { return e.Node }
	return kind[row]{
		title: "Reservations",
		key:   func(e row) string { return e.Tree + "\x00" + e.ID },
		text: func(e row) string {
			return strings.Join([]string{e.Tree, e.Node, verdict(e), e.Role, e.Profile, e.Slot, e.ID, e.Dispatcher.Program, e.Dispatcher.Host}, " ")
		},
		look:   func(e row) look { return m.verdict(e.Verdict) },
		fields: map[string]func(row) string{"verdict": verdict, "state": verdict, "role": role, "profile": profile, "by": by, "node": node, "id": func(e row) string { return e.ID }},
		columns: []column[row]{
			{title: "TREE", w: 14, grow: 3, most: 64, end: true, by: ordered(func(e row) string { return e.Tree }), cell: func(e row, _ int) (string, paint) { return m.treeIn(m.entries, e.Tree), "" }},
			{title: "NODE", w: 8, from: 60, many: true, by: ordered(node), cell: func(e row, _ int) (string, paint) { return m.nodeCell(e.Node) }},
			{title: "VERDICT", w: 7, by: ordered(verdict), cell: func(e row, _ int) (string, paint) { l := m.verdict(e.Verdict); return l.word, l.paint }},
			{title: "LEFT", w: 6, by: func(a, b row) int { return a.ExpiresAt.Compare(b.ExpiresAt) }, cell: func(e row, _ int) (string, paint) {
				if e.Verdict == fleet.VerdictPending || e.Verdict == fleet.VerdictInvalid && !e.Droppable {
					m.counting = true
					return countdown(e.Deadline.Remaining(m.now)), m.verdict(e.Verdict).paint
				}
				return "–", m.verdict(e.Verdict).paint
			}},
			{title: "ROLE", w: 9, from: 60, by: ordered(role), cell: func(e row, _ int) (string, paint) { return e.Role, "" }},
			{title: "PROFILE", w: 9, from: 74, by: ordered(profile), cell: func(e row, _ int) (string, paint) { return e.Profile, m.faint }},
			{title: "BY", w: 14, grow: 2, most: 40, from: 100, by: ordered(by), cell: func(e row, _ int) (string, paint) { return by(e), m.faint }},
			{title: "ID", w: 10, grow: 1, most: 28, from: 116, end: true, by: ordered(func(e row) string { return e.ID }), cell: func(e row, _ int) (string, paint) { return e.ID, m.faint }},
		},
		groups: []grouping[row]{{name: "verdict", of: verdict}, {name: "dispatcher", of: by}, {name: "role", of: role}, {name: "node", of: node, many: true}},
		fault:  entryFault,
		empty: func() [2]string {
			return [2]string{"no reservation stands", "each dispatch leaves one here until its worker is listed"}
		},
	}
}

// entryFault reports whether an entry holds nothing any more, or is none.
func entryFault(e *fleet.ReservationRow) bool {
	return e.Droppable && e.Verdict != fleet.VerdictListed || e.Verdict == fleet.VerdictInvalid
}

// dispatcher says who wrote a reservation.
func dispatcher(d fleet.Dispatcher) string {
	s := d.Program
	if s == "" {
		s = "unknown"
	}
	if d.Pid != 0 {
		s += fmt.Sprintf(" (pid %d", d.Pid)
		if d.Host != "" {
			s += " on " + d.Host
		}
		s += ")"
	}
	return s
}

// entryDetail is everything about a reservation.
func (m *Model) entryDetail(e *fleet.ReservationRow, w int) []string {
	v := m.verdict(e.Verdict)
	out := []string{" " + cut(m.short(e.Tree), w-2)}
	left := e.Deadline.Remaining(m.now)
	if e.Verdict != fleet.VerdictPending {
		why := map[fleet.Verdict]string{
			fleet.VerdictListed:  "its worker is a member: it holds nothing any more",
			fleet.VerdictExpired: "its grace ran out: it holds nothing any more",
			fleet.VerdictInvalid: "it has no id or no absolute path: it holds its tree until its time is over",
		}[e.Verdict]
		out = append(out, " "+v.String()+m.faint.of(" · ")+cut(why, w-16), "")
		out = append(out, m.fact("for", e.Role+" on "+e.Profile, w))
		return append(out, m.writer(e, w)...)
	}
	m.counting = true
	out = append(out, " "+v.String()+m.faint.of(" · ")+v.paint.of(countdown(left)+" left"))
	if !e.ReservedAt.IsZero() {
		out = append(out, " "+m.gauge(left, e.ExpiresAt.Sub(e.ReservedAt), w-2))
	}
	out = append(out, "", m.fact("for", e.Role+" on "+e.Profile, w))
	out = append(out, m.writer(e, w)...)
	return append(out, m.ends(e.Node, left, w)...)
}

// writer says who wrote a reservation, and when.
func (m *Model) writer(e *fleet.ReservationRow, w int) []string {
	out := []string{m.fact("by", dispatcher(e.Dispatcher), w)}
	if !e.ReservedAt.IsZero() {
		out = append(out, m.fact("at", e.ReservedAt.Local().Format("15:04:05")+" · "+m.since(e.ReservedAt), w))
	}
	if e.Slot != "" {
		out = append(out, m.fact("slot", e.Slot, w))
	}
	return append(out, m.fact("id", e.ID, w))
}

// ends says what ends a live reservation of a node.
func (m *Model) ends(node string, left time.Duration, w int) []string {
	out := []string{"", " " + m.strong.of("Ends when")}
	release := "you release it: " + m.keys.Release.Help().Key
	if m.elsewhere(node) {
		release = "it is released on " + clean(node)
	}
	for _, s := range []string{
		"its worker is listed",
		"its dispatch is provably refused",
		"its grace runs out, in " + countdown(left),
		release,
	} {
		out = append(out, " "+m.faint.of("·")+" "+cut(s, w-4))
	}
	return out
}
