package tui

import (
	"context"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
)

// The fields of the spawn form, in their order.
const (
	fieldTree = iota
	fieldRole
	fieldProfile
	fieldTask
	fieldCount
)

// spawnDialog asks for a dispatch. Its defaults are such that enter alone dispatches into the selected tree: the form
// opens on the task, where enter dispatches and alt+enter breaks the line.
type spawnDialog struct {
	tree    string
	find    editor // the tree, as it is looked for or typed
	found   []*fleet.TreeRow
	at      int // in found
	role    choice
	profile choice
	task    editor
	field   int
}

// choice is one of a few.
type choice struct {
	of []string
	at int
}

func (c *choice) value() string {
	if c.at < len(c.of) {
		return c.of[c.at]
	}
	return ""
}

func (c *choice) turn(d int) {
	if n := len(c.of); n > 0 {
		c.at = (c.at + d + n) % n
	}
}

// offer replaces what can be chosen, and keeps what was.
func (c *choice) offer(of []string, preferred ...string) {
	preferred = append([]string{c.value()}, preferred...)
	c.of, c.at = of, 0
	for _, p := range preferred {
		if i := slices.Index(of, p); i >= 0 && p != "" {
			c.at = i
			return
		}
	}
}

// askSpawn opens the form on the selected tree.
func (m *Model) askSpawn() tea.Cmd {
	d := &spawnDialog{tree: m.selectedTree(), field: fieldTask}
	d.find.hint = "type to find a tree, or a path"
	d.task.hint, d.task.lines = "what to do (may be empty)", true
	d.offer(m)
	if t := m.treeRowOf(d.tree); d.tree == "" || t != nil && t.Occupancy != fleet.Free {
		d.field = fieldTree
	}
	m.dialog = d
	d.enter(m)
	return m.askChoices()
}

// treeRowOf is the row of a tree, or nil.
func (m *Model) treeRowOf(tree string) *fleet.TreeRow {
	for _, t := range m.ix.trees {
		if t.Tree == tree {
			return t
		}
	}
	return nil
}

// offer takes the roles and profiles that can be named now.
func (d *spawnDialog) offer(m *Model) {
	d.role.offer(m.choices.Roles, m.last.role, fleet.RoleDev)
	profiles := make([]string, len(m.choices.Profiles))
	for i, p := range m.choices.Profiles {
		profiles[i] = p.Name
	}
	d.profile.offer(profiles, m.last.profile)
}

func (d *spawnDialog) title() string   { return "Dispatch an agent" }
func (d *spawnDialog) takesText() bool { return d.field == fieldTree || d.field == fieldTask }

func (d *spawnDialog) keys() []key.Binding {
	switch d.field {
	case fieldTree:
		return []key.Binding{keyPick, keyListUp, keyListDown, keyNextField, keyCancel}
	case fieldTask:
		return []key.Binding{keyDispatch, keyNewline, keyPrevField, keyCancel}
	}
	return []key.Binding{keyDispatch, keyLeft, keyRight, keyNextField, keyCancel}
}

// enter comes into the present field. The tree is looked for from the start.
func (d *spawnDialog) enter(m *Model) {
	if d.field == fieldTree {
		d.find.set("")
		d.search(m)
	}
}

// search finds the trees that match what is typed. With nothing typed the chosen one is under the cursor.
func (d *spawnDialog) search(m *Model) {
	d.found, d.at = nil, 0
	words := strings.Fields(strings.ToLower(d.find.value()))
	for _, t := range m.ix.trees {
		if len(words) == 0 || matches(strings.ToLower(m.short(t.Tree)+" "+t.Tree+" "+t.Branch+" "+string(t.Occupancy)), words) {
			if t.Tree == d.tree {
				d.at = len(d.found)
			}
			d.found = append(d.found, t)
		}
	}
}

// pick takes what is under the cursor, or else what is typed as a path.
func (d *spawnDialog) pick(m *Model) {
	typed := strings.TrimSpace(d.find.value())
	if rest, ok := strings.CutPrefix(typed, "~/"); ok && m.opts.Home != "" {
		typed = m.opts.Home + "/" + rest
	}
	switch {
	case d.at < len(d.found):
		d.tree = d.found[d.at].Tree
	case typed != "":
		d.tree = typed
	}
}

// leave goes to another field.
func (d *spawnDialog) leave(m *Model, by int) {
	if d.field == fieldTree {
		d.pick(m)
	}
	d.field = (d.field + by + fieldCount) % fieldCount
	d.enter(m)
}

func (d *spawnDialog) update(m *Model, msg tea.Msg) tea.Cmd {
	k, isKey := msg.(tea.KeyPressMsg)
	switch {
	case isKey && key.Matches(k, keyCancel):
		m.dialog = nil
		return nil
	case isKey && key.Matches(k, keyNextField):
		d.leave(m, 1)
		return nil
	case isKey && key.Matches(k, keyPrevField):
		d.leave(m, -1)
		return nil
	case isKey && key.Matches(k, keyDispatch):
		if d.field == fieldTree {
			d.pick(m)
			d.field = fieldTask
			return nil
		}
		return d.dispatch(m)
	}
	switch d.field {
	case fieldTree:
		switch {
		case isKey && key.Matches(k, keyListUp):
			d.at = max(d.at-1, 0)
		case isKey && key.Matches(k, keyListDown):
			d.at = max(min(d.at+1, len(d.found)-1), 0)
		default:
			before := d.find.value()
			if d.find.update(msg); d.find.value() != before {
				d.search(m)
			}
		}
	case fieldRole:
		turn(&d.role, k, isKey)
	case fieldProfile:
		turn(&d.profile, k, isKey)
	case fieldTask:
		d.task.update(msg)
	}
	return nil
}

func turn(c *choice, k tea.KeyPressMsg, isKey bool) {
	switch {
	case !isKey:
	case key.Matches(k, keyLeft):
		c.turn(-1)
	case key.Matches(k, keyRight):
		c.turn(1)
	}
}

// dispatch sends what the form says. What is wrong with it is for the dispatcher to say, except what is missing.
func (d *spawnDialog) dispatch(m *Model) tea.Cmd {
	o := fleet.Order{Tree: d.tree, Role: d.role.value(), Profile: d.profile.value(), Task: d.task.value()}
	switch {
	case o.Tree == "":
		d.field = fieldTree
		d.enter(m)
		return m.say(levelWarn, "which tree? choose one or type a path", "")
	case o.Role == "" || o.Profile == "":
		return m.say(levelWarn, "no role or profile can be chosen yet", "see what `fleetdeck doctor` says of the configuration")
	}
	m.dialog = nil
	m.last.role, m.last.profile = o.Role, o.Profile
	return m.dispatch(o)
}

// dispatch starts a dispatch, and shows it on the tree's row at once.
func (m *Model) dispatch(o fleet.Order) tea.Cmd {
	f, where := m.fleet, m.short(o.Tree)
	cmd := m.start("dispatch "+o.Role+" to "+where, o.Tree, func(ctx context.Context) end {
		return outcome(f.Dispatch(ctx, o), o, where)
	})
	m.assumed[o.Tree] = &assumption{act: m.acts[len(m.acts)-1].id, role: o.Role, profile: o.Profile}
	return cmd
}

// outcome is how a dispatch ended, for people.
func outcome(out fleet.Outcome, o fleet.Order, where string) end {
	message := out.Message
	if message == "" {
		message = string(out.Code)
	}
	switch out.Outcome {
	case fleet.Accepted:
		return end{level: levelInfo, text: "dispatched " + o.Role + " on " + o.Profile + " to " + where + ": it is booting"}
	case fleet.Refused:
		return end{level: levelAlarm, refused: true, text: "refused: " + message, hint: out.Hint}
	}
	hint := out.Hint
	if hint == "" {
		hint = "its reservation stays until its grace runs out"
	}
	return end{level: levelAlarm, text: "outcome unknown: " + message, hint: hint}
}

// lines are the fields. Where they do not all fit, the present one is kept in sight.
func (d *spawnDialog) lines(m *Model, w, h int) []string {
	label := func(i int, name string) string {
		if d.field == i {
			return m.accent.of("▌") + m.strong.of(pad(name, 9))
		}
		return " " + m.faint.of(pad(name, 9))
	}
	const indent = 10
	var fields [fieldCount][]string
	fields[fieldTree] = d.treeLines(m, label(fieldTree, "Tree"), w, max(min(h-6, 8), 1))
	fields[fieldRole] = []string{label(fieldRole, "Role") + d.role.line(m, w-indent, d.field == fieldRole)}
	fields[fieldProfile] = []string{label(fieldProfile, "Profile") + d.profile.line(m, w-indent, d.field == fieldProfile)}
	if i := d.profile.at; i < len(m.choices.Profiles) && h >= 12 {
		fields[fieldProfile] = append(fields[fieldProfile], strings.Repeat(" ", indent)+m.faint.of(cut(m.choices.Profiles[i].Command, w-indent)))
	}
	rows := min(max(h-8, 1), 6)
	for i, l := range d.task.view(m, w-indent, rows, d.field == fieldTask) {
		head := strings.Repeat(" ", indent)
		if i == 0 {
			head = label(fieldTask, "Task")
		}
		fields[fieldTask] = append(fields[fieldTask], head+l)
	}
	var out []string
	start := 0
	for i, f := range fields {
		if i == d.field {
			start = len(out)
		}
		out = append(out, f...)
		if h >= 12 && i != fieldRole && i != fieldTask {
			out = append(out, "")
		}
	}
	if over := len(out) - h; over > 0 {
		out = out[min(start, over):]
	}
	return out
}

// treeLines is the chosen tree, or what is found while it is looked for.
func (d *spawnDialog) treeLines(m *Model, label string, w, most int) []string {
	const indent = 10
	named := func(t *fleet.TreeRow, state string, w int) string {
		room := w - width(state) - 2
		if room < 12 {
			return ansi.Truncate(state, 1, "") + " " + strings.TrimRight(tail(m.short(t.Tree), w-2), " ")
		}
		return spread(strings.TrimRight(tail(m.short(t.Tree), room), " "), state, w)
	}
	state := func(t *fleet.TreeRow) string {
		l := m.occupancy(t.Occupancy)
		s := l.String()
		if x := m.ix.member[t.Member]; x != nil {
			s += " by " + cut(x.Role, 12)
		} else if t.Occupancy == fleet.Reserved {
			m.counting = true
			s += " " + countdown(t.Deadline.Remaining(m.now))
		}
		return s
	}
	if d.field != fieldTree {
		if t := m.treeRowOf(d.tree); t != nil {
			return []string{label + named(t, state(t), w-indent)}
		}
		if d.tree == "" {
			return []string{label + m.faint.of("none is chosen")}
		}
		return []string{label + tail(m.short(d.tree), w-indent)}
	}
	out := []string{label + d.find.view(m, w-indent-2, 1, true)[0]}
	top := max(min(d.at-most/2, len(d.found)-most), 0)
	for i := top; i < min(top+most, len(d.found)); i++ {
		t := d.found[i]
		text := named(t, state(t), w-indent-2)
		if i == d.at {
			text = m.selected.of(fit(clean(text), w-indent-2))
		}
		out = append(out, strings.Repeat(" ", indent)+text)
	}
	if len(d.found) == 0 {
		out = append(out, strings.Repeat(" ", indent)+m.faint.of("no such tree is known; enter takes it as a path"))
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
