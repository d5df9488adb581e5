package tui

import "strings"

// labelWidth is how wide the names of the form's fields are.
const labelWidth = 10

// lines are the fields. Where they do not all fit, the present one is kept in sight.
func (d *spawnDialog) lines(m *Model, w, h int) []string {
	label := func(i int, name string) string { // labelWidth cells
		if d.field == i {
			return m.accent.of("▌") + m.strong.of(pad(name, 9))
		}
		return " " + m.faint.of(pad(name, 9))
	}
	d.settle(m)
	const indent = labelWidth
	below := func(s string) string { return strings.Repeat(" ", indent) + m.faint.of(cut(s, w-indent)) }
	var fields [fieldCount][]string
	fields[fieldTree] = d.treeLines(m, label(fieldTree, "Tree"), w, max(min(h-8, 8), 1))
	if d.has(m, fieldAlso) {
		fields[fieldAlso] = d.alsoLines(m, label, w, max(min(h-10, 6), 1))
	}
	if d.has(m, fieldBeside) {
		fields[fieldBeside] = []string{label(fieldBeside, "Beside") + d.beside.line(m, w-indent, d.field == fieldBeside)}
		if h >= 12 {
			for _, l := range m.whoIsForeign(d.foreign(m), w-indent) {
				fields[fieldBeside] = append(fields[fieldBeside], below(l))
			}
		}
	}
	fields[fieldRole] = []string{label(fieldRole, "Role") + d.role.line(m, w-indent, d.field == fieldRole)}
	if s := m.slotsFor(d.role.value(), d.profile.value()); s != "" && h >= 12 {
		fields[fieldRole] = append(fields[fieldRole], below(s))
	}
	fields[fieldProfile] = []string{label(fieldProfile, "Profile") + d.profile.line(m, w-indent, d.field == fieldProfile)}
	if i := d.profile.at; i < len(m.choices.Profiles) && h >= 12 {
		fields[fieldProfile] = append(fields[fieldProfile], below(m.choices.Profiles[i].Command))
	}
	if !d.queue {
		fields[fieldBranch] = []string{label(fieldBranch, "Worktree") + d.branch.view(m, w-indent, 1, d.field == fieldBranch)[0]}
	}
	d.task.hint = "what to do (may be empty)"
	if d.queue {
		d.task.hint = "what to do"
	}
	rows := min(max(h-12, 1), 6)
	for i, l := range d.task.view(m, w-indent, rows, d.field == fieldTask) {
		head := strings.Repeat(" ", indent)
		if i == 0 {
			head = label(fieldTask, "Task")
		}
		fields[fieldTask] = append(fields[fieldTask], head+l)
	}
	all := 0
	for _, f := range fields {
		all += len(f) + min(len(f), 1) // with a blank line behind it
	}
	var out []string
	start := 0
	for i, f := range fields {
		if i == d.field {
			start = len(out)
		}
		out = append(out, f...)
		if all <= h+1 && i != fieldTask && len(f) > 0 {
			out = append(out, "")
		}
	}
	if over := len(out) - h; over > 0 {
		out = out[min(start, over):]
	}
	return out
}

// line is the choice with what else could be chosen.
func (c *choice) line(m *Model, w int, focused bool) string {
	if len(c.of) == 0 {
		return m.faint.of("none is configured")
	}
	var s []string
	for i, o := range c.of {
		o = cut(o, 20)
		switch {
		case i == c.at && focused:
			s = append(s, m.selected.of(" "+o+" "))
		case i == c.at:
			s = append(s, m.strong.of(" "+o+" "))
		default:
			s = append(s, m.faint.of(" "+o+" "))
		}
	}
	// The chosen one stays in sight.
	for from := 0; ; from++ {
		if line := fit(strings.Join(s[from:], " "), w); from >= c.at || !strings.HasSuffix(strings.TrimRight(line, " "), "…") {
			return line
		}
	}
}
