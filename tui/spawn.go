package tui

import (
	"context"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// The fields of the spawn form, in their order.
const (
	fieldTree = iota
	fieldRole
	fieldProfile
	fieldBranch
	fieldTask
	fieldCount
)

// choiceOf is what was chosen for a dispatch.
type choiceOf struct{ role, profile string }

// spawnDialog asks for a dispatch. Its defaults are such that enter alone dispatches into the selected tree: the form
// opens on the task, where enter dispatches and alt+enter breaks the line.
type spawnDialog struct {
	trees   []string // more than one where several are marked
	tree    string
	finder  finder
	role    choice
	profile choice
	branch  editor
	task    editor
	field   int
	queue   bool // to be queued, not dispatched
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

// askSpawn opens the form on the selected tree, or on all that are marked.
func (m *Model) askSpawn() tea.Cmd { return m.openSpawn(false) }

// askQueue opens the form for a task that waits until its tree is free.
func (m *Model) askQueue() tea.Cmd { return m.openSpawn(true) }

func (m *Model) openSpawn(queue bool) tea.Cmd {
	d := &spawnDialog{tree: m.selectedTree(), field: fieldTask, queue: queue}
	if trees := m.chosenTrees(); len(trees) > 0 {
		d.tree = trees[0]
		if len(trees) > 1 {
			d.trees = trees
		}
	}
	d.branch.hint = "none: in the tree itself; a branch makes a linked worktree"
	d.task.lines = true
	d.offer(m)
	if t := m.treeRowOf(d.tree); d.tree == "" || !queue && len(d.trees) == 0 && t != nil && t.Occupancy != fleet.Free {
		d.field = fieldTree
	}
	d.finder.freeOnly = !queue
	if o, ok := m.drafts[d.tree]; ok && len(d.trees) == 0 {
		d.task.set(o.Task)
		d.branch.set(o.Branch)
	}
	m.dialog = d
	d.enter(m)
	return m.askChoices()
}

// offer takes the roles and profiles that can be named now.
func (d *spawnDialog) offer(m *Model) {
	last := m.lastIn[d.tree]
	d.role.offer(m.choices.Roles, last.role, m.last.role, fleet.RoleDev)
	profiles := make([]string, len(m.choices.Profiles))
	for i, p := range m.choices.Profiles {
		profiles[i] = p.Name
	}
	d.profile.offer(profiles, last.profile, m.last.profile)
}

func (d *spawnDialog) title() string {
	if d.queue {
		return "Queue a task"
	}
	return "Dispatch an agent"
}

func (d *spawnDialog) takesText() bool {
	return d.field == fieldTree || d.field == fieldTask || d.field == fieldBranch
}

func (d *spawnDialog) keys() []key.Binding {
	send, other := keyDispatch, keyToQueue
	if d.queue {
		send, other = bind("enter", "queue", "enter"), bind("ctrl+r", "dispatch it instead", "ctrl+r")
	}
	switch d.field {
	case fieldTree:
		return []key.Binding{keyPick, keyListUp, keyListDown, keyFreeOnly, keyNextField, keyCancel}
	case fieldTask:
		return []key.Binding{send, keyNewline, keyEditor, other, keyPrevField, keyCancel}
	case fieldBranch:
		return []key.Binding{send, keyNextField, other, keyCancel}
	}
	return []key.Binding{send, keyLeft, keyRight, keyNextField, other, keyCancel}
}

// enter comes into the present field. The tree is looked for from the start.
func (d *spawnDialog) enter(m *Model) {
	if d.field == fieldTree {
		d.finder.begin(m, d.tree)
	}
}

// leave goes to another field.
func (d *spawnDialog) leave(m *Model, by int) {
	if d.field == fieldTree {
		d.pick(m)
	}
	d.field = (d.field + by + fieldCount) % fieldCount
	if d.queue && d.field == fieldBranch {
		d.field += by // what is queued goes into a tree that is there
	}
	d.enter(m)
}

func (d *spawnDialog) pick(m *Model) {
	if tree := d.finder.pick(m); tree != "" && tree != d.tree {
		d.tree, d.trees = tree, nil
		if last, ok := m.lastIn[tree]; ok {
			d.role.offer(d.role.of, last.role)
			d.profile.offer(d.profile.of, last.profile)
		}
	}
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
	case isKey && key.Matches(k, keyToQueue):
		d.queue = !d.queue
		return nil
	case isKey && d.field == fieldTask && key.Matches(k, keyEditor):
		return m.editText(d.task.value())
	case isKey && key.Matches(k, keyDispatch):
		if d.field == fieldTree {
			d.pick(m)
			d.field = fieldTask
			return nil
		}
		return d.send(m)
	}
	switch d.field {
	case fieldTree:
		d.finder.update(m, msg)
	case fieldRole:
		turn(&d.role, k, isKey)
	case fieldProfile:
		turn(&d.profile, k, isKey)
	case fieldBranch:
		d.branch.update(msg)
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

// send dispatches or queues what the form says. What is wrong with it is for the dispatcher to say, except what is missing.
func (d *spawnDialog) send(m *Model) tea.Cmd {
	o := fleet.Order{Tree: d.tree, Role: d.role.value(), Profile: d.profile.value(), Task: d.task.value()}
	if !d.queue {
		o.Branch = strings.TrimSpace(d.branch.value())
	}
	switch {
	case o.Tree == "":
		d.field = fieldTree
		d.enter(m)
		return m.say(levelWarn, "which tree? choose one or type a path", "")
	case o.Role == "" || o.Profile == "":
		return m.say(levelWarn, "no role or profile can be chosen yet", "see what `fleetdeck doctor` says of the configuration")
	case d.queue && strings.TrimSpace(o.Task) == "":
		d.field = fieldTask
		return m.say(levelWarn, "what is to be queued? type a task", "")
	}
	m.dialog = nil
	trees := d.trees
	if len(trees) == 0 {
		trees = []string{o.Tree}
	}
	m.last = choiceOf{o.Role, o.Profile}
	delete(m.drafts, o.Tree)
	var cmds []tea.Cmd
	begun := len(m.acts)
	for _, tree := range trees {
		o.Tree = tree
		m.lastIn[tree] = m.last
		if d.queue {
			cmds = append(cmds, m.enqueue(o))
		} else {
			cmds = append(cmds, m.dispatch(o))
		}
	}
	for _, a := range m.acts[begun:] {
		a.command = m.acts[begun].id
	}
	m.list().unmark()
	return tea.Batch(cmds...)
}

// dispatch starts a dispatch, and shows it on the tree's row at once.
func (m *Model) dispatch(o fleet.Order) tea.Cmd {
	f, where := m.fleet, m.short(o.Tree)
	label := "dispatch " + o.Role + " to " + where
	if o.Branch != "" {
		where = "a worktree of " + where + " on " + clean(o.Branch)
		label = "dispatch " + o.Role + " to " + where
	}
	cmd := m.start(label, o.Tree, func(ctx context.Context) end {
		return outcome(f.Dispatch(ctx, o), o, where)
	})
	if o.Branch == "" {
		m.assumed[o.Tree] = &assumption{act: m.acts[len(m.acts)-1].id, role: o.Role, profile: o.Profile}
	}
	return cmd
}

// enqueue puts a task into the queue.
func (m *Model) enqueue(o fleet.Order) tea.Cmd {
	f, where := m.fleet, m.short(o.Tree)
	what := "queue a task for " + where
	keeper := m.kept()
	return m.start(what, o.Tree, func(ctx context.Context) end {
		if err := f.Enqueue(ctx, o); err != nil {
			return failed(what, err)
		}
		e := end{level: levelInfo, text: "queued for " + where}
		if !keeper {
			e.level, e.hint = levelWarn, "no keeper runs: nobody sends it until one does"
		}
		return e
	})
}

// outcome is how a dispatch ended, for people.
func outcome(out fleet.Outcome, o fleet.Order, where string) end {
	message := out.Message
	if message == "" {
		message = string(out.Code)
	}
	switch out.Outcome {
	case fleet.Accepted:
		if out.Tree == "" {
			out.Tree = o.Tree
		}
		return end{level: levelInfo, accepted: &out, text: "dispatched " + o.Role + " on " + o.Profile + " to " + where + ": it is booting"}
	case fleet.Refused:
		e := end{level: levelAlarm, refused: true, text: "refused: " + message, hint: out.Hint, order: &o}
		if out.Code == fleet.CodeTreeReserved || out.Code == fleet.CodeTreeOccupied || out.Code == fleet.CodeTreeForeign {
			e.held = &held{order: o, message: message, foreign: out.Code == fleet.CodeTreeForeign}
		}
		return e
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
	below := func(s string) string { return strings.Repeat(" ", indent) + m.faint.of(cut(s, w-indent)) }
	var fields [fieldCount][]string
	fields[fieldTree] = d.treeLines(m, label(fieldTree, "Tree"), w, max(min(h-8, 8), 1))
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
	var out []string
	start := 0
	for i, f := range fields {
		if i == d.field {
			start = len(out)
		}
		out = append(out, f...)
		if h >= 16 && i != fieldTask && len(f) > 0 {
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
