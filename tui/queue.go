package tui

import (
	"path/filepath"
	"strings"

	"fleetdeck/fleet"
)

// States of a task in the queue.
const (
	taskQueued  = "queued"
	taskSent    = "sent"
	taskGivenUp = "given_up"
)

// taskLook is the look of a task in the queue.
func (s *styles) task(state string) look {
	switch state {
	case taskQueued:
		return look{"○", "queued", s.text}
	case taskSent:
		return look{"◐", "sent", s.reserved}
	case taskGivenUp:
		return look{"!", "given up", s.danger}
	}
	return look{"?", cut(state, 8), s.faint}
}

// queueKind is the list of tasks that wait for their tree.
func (m *Model) queueKind() kind[*fleet.QueueRow] {
	type row = *fleet.QueueRow
	role := func(q row) string { return q.Role }
	state := func(q row) string { return q.State }
	return kind[row]{
		title: "Queue",
		key:   func(q row) string { return q.ID },
		text: func(q row) string {
			return strings.Join([]string{q.Tree, q.State, q.Role, q.Profile, q.Task, q.ID, q.Error}, " ")
		},
		look:   func(q row) look { return m.task(q.State) },
		fields: map[string]func(row) string{"state": state, "role": role, "profile": func(q row) string { return q.Profile }, "tree": func(q row) string { return filepath.Base(q.Tree) }},
		columns: []column[row]{
			{title: "TREE", w: 12, grow: 2, most: 48, end: true, by: ordered(func(q row) string { return q.Tree }), cell: func(q row, _ int) (string, paint) { return m.inList(q.Tree), "" }},
			{title: "STATE", w: 8, by: ordered(state), cell: func(q row, _ int) (string, paint) { l := m.task(q.State); return l.word, l.paint }},
			{title: "AGE", w: 6, from: 48, by: func(a, b row) int { return b.AddedAt.Compare(a.AddedAt) }, cell: func(q row, _ int) (string, paint) { return span(age(m.now, q.AddedAt)), m.faint }},
			{title: "ROLE", w: 9, from: 66, by: ordered(role), cell: func(q row, _ int) (string, paint) { return q.Role, "" }},
			{title: "PROFILE", w: 9, from: 80, by: ordered(func(q row) string { return q.Profile }), cell: func(q row, _ int) (string, paint) { return q.Profile, m.faint }},
			{title: "TASK", w: 12, grow: 3, cell: func(q row, _ int) (string, paint) {
				if q.Error != "" {
					return q.Error, m.warn
				}
				return q.Task, ""
			}},
		},
		groups: []grouping[row]{{name: "tree", of: func(q row) string { return m.short(q.Tree) }}, {name: "state", of: state}, {name: "role", of: role}},
		fault:  func(q row) bool { return q.State == taskGivenUp || q.Error != "" },
		empty: func() [2]string {
			return [2]string{"no task waits", m.keys.Enqueue.Help().Key + " queues one for a tree; the keeper sends it once the tree is free"}
		},
	}
}

// queueDetail is a task with what it waits for.
func (m *Model) queueDetail(q *fleet.QueueRow, w int) []string {
	out := []string{" " + cut(fleet.ShortPath(q.Tree, m.opts.Home), w-2), " " + m.task(q.State).String(), ""}
	out = append(out, m.fact("for", q.Role+" on "+q.Profile, w))
	if !q.AddedAt.IsZero() {
		out = append(out, m.fact("queued", q.AddedAt.Local().Format("15:04:05")+" · "+m.since(q.AddedAt), w))
	}
	out = append(out, m.fact("id", q.ID, w))
	if q.Reservation != "" {
		out = append(out, m.fact("sent as", q.Reservation, w))
	}
	para := func(p paint, text string) {
		out = append(out, "")
		for _, l := range wrap(text, w-2) {
			out = append(out, " "+p.of(l))
		}
	}
	if q.Error != "" {
		para(m.warn, q.Error)
	}
	switch t := m.treeRowOf(q.Tree); {
	case q.State == taskGivenUp:
		para("", "The keeper does not try it again. `fleetdeck keep --reset` gives it another chance.")
	case q.State == taskSent:
		para("", "It was sent, and its outcome is not known yet.")
	case !m.kept():
		para(m.warn, "No keeper runs: nobody sends it. `fleetdeck up` or `fleetdeck keep` does.")
	case t != nil && t.Occupancy != fleet.Free:
		para("", "The keeper sends it once its tree is free: now that is "+m.occupancy(t.Occupancy).word+".")
	default:
		para("", "The keeper sends it with its next pass.")
	}
	if q.Task != "" {
		out = append(out, "", " "+m.strong.of("Task"))
		for _, l := range wrapText(q.Task, w-2) {
			out = append(out, " "+l)
		}
	}
	return out
}

// wrapText is a text of several lines, each wrapped.
func wrapText(s string, w int) []string {
	var out []string
	for l := range strings.Lines(s) {
		out = append(out, wrap(l, w)...)
	}
	return out
}
