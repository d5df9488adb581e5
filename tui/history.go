package tui

import (
	"cmp"
	"path"
	"strconv"
	"strings"

	"fleetdeck/fleet"
)

// outcomeLook is the look of how a command ended.
func (s *styles) outcomeLook(outcome string) look {
	switch outcome {
	case "done":
		return look{"✓", "done", s.ok}
	case "refused":
		return look{"×", "refused", s.warn}
	case "unknown":
		return look{"?", "unknown", s.danger}
	case "failed":
		return look{"!", "failed", s.danger}
	case "cancelled":
		return look{"–", "cancelled", s.faint}
	}
	return look{"?", cut(outcome, 9), s.faint}
}

// historyKind is the list of what consoles were told to do, the newest first.
func (m *Model) historyKind() kind[*fleet.Deed] {
	type row = *fleet.Deed
	what := func(d row) string { return d.What }
	outcome := func(d row) string { return d.Outcome }
	by := func(d row) string { return dispatcher(d.By) }
	return kind[row]{
		title: "History",
		key: func(d row) string {
			return strconv.FormatInt(d.Time.UnixNano(), 36) + "/" + strconv.Itoa(d.By.Pid) + "/" + d.Command
		},
		text: func(d row) string {
			return strings.Join([]string{d.What, d.Outcome, string(d.Code), d.Command, d.Message, by(d)}, " ")
		},
		look:   func(d row) look { return m.outcomeLook(d.Outcome) },
		fields: map[string]func(row) string{"what": what, "outcome": outcome, "code": func(d row) string { return string(d.Code) }, "tree": func(d row) string { return path.Base(d.Tree) }},
		columns: []column[row]{
			{title: "TIME", w: 8, by: func(a, b row) int { return a.Time.Compare(b.Time) }, cell: func(d row, _ int) (string, paint) { return d.Time.Local().Format("15:04:05"), m.faint }},
			{title: "WHAT", w: 8, by: ordered(what), cell: func(d row, _ int) (string, paint) { return d.What, "" }},
			{title: "OUTCOME", w: 9, by: ordered(outcome), cell: func(d row, _ int) (string, paint) { l := m.outcomeLook(d.Outcome); return l.word, l.paint }},
			{title: "TREE", w: 12, grow: 1, most: 40, from: 56, end: true, by: ordered(func(d row) string { return d.Tree }), cell: func(d row, _ int) (string, paint) { return m.inList(d.Tree), m.faint }},
			{title: "MESSAGE", w: 10, grow: 3, from: 74, cell: func(d row, _ int) (string, paint) { return cmp.Or(d.Message, d.Command), "" }},
			{title: "BY", w: 12, grow: 1, most: 40, from: 130, by: ordered(by), cell: func(d row, _ int) (string, paint) { return by(d), m.faint }},
		},
		groups: []grouping[row]{{name: "what", of: what}, {name: "outcome", of: outcome}, {name: "tree", of: func(d row) string { return m.short(d.Tree) }}, {name: "console", of: by}},
		fault:  func(d row) bool { return d.Outcome != "done" && d.Outcome != "cancelled" },
		empty: func() [2]string {
			return [2]string{"no console was told to do anything yet", "each command that one issues is kept here, with how it ended"}
		},
	}
}

// historyDetail is a command with how it ended.
func (m *Model) historyDetail(d *fleet.Deed, w int) []string {
	l := m.outcomeLook(d.Outcome)
	out := []string{" " + l.String(), ""}
	out = append(out, m.fact("at", d.Time.Local().Format("2006-01-02 15:04:05")+" · "+m.since(d.Time), w), m.fact("by", dispatcher(d.By), w))
	if d.Tree != "" {
		out = append(out, m.fact("tree", fleet.ShortPath(d.Tree, m.opts.Home), w))
	}
	if d.Member != "" {
		out = append(out, m.fact("member", d.Member, w))
	}
	if d.Code != "" {
		out = append(out, m.fact("code", string(d.Code), w))
	}
	if d.Message != "" {
		out = append(out, "")
		for _, l := range wrapText(d.Message, w-2) {
			out = append(out, " "+l)
		}
	}
	if d.Command != "" {
		out = append(out, "", " "+m.strong.of("The same by hand"))
		for _, l := range wrapText(d.Command, w-2) {
			out = append(out, " "+l)
		}
	}
	return out
}
