package tui

import (
	"slices"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// The fields of the spawn form, in their order.
const (
	fieldTree = iota
	fieldAlso
	fieldBeside
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
	over    choice   // whether one agent goes over all of trees, or one into each
	also    []string // further trees that the agent holds
	more    finder   // of these
	beside  choice   // whether it may work beside a foreign agent
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
func (m *Model) askQueue() tea.Cmd {
	if cmd := m.notQueued(m.chosenTrees()); cmd != nil {
		return cmd
	}
	return m.openSpawn(true)
}

// notQueued says that a task of another host's tree waits there, where one of trees is such.
func (m *Model) notQueued(trees []string) tea.Cmd {
	for _, tree := range trees {
		if node := m.hostOf(tree); node != "" {
			_, path := fleet.Where(tree)
			return m.say(levelInfo, "each host has a queue of its own, and "+m.short(tree)+" is on "+node,
				"there it is `fleetdeck queue add "+path+"`; from here "+m.keys.Spawn.Help().Key+" dispatches")
		}
	}
	return nil
}

func (m *Model) openSpawn(queue bool) tea.Cmd {
	d := &spawnDialog{tree: m.selectedTree(), field: fieldTask, queue: queue, over: choice{of: []string{eachItsOwn, oneOverAll}}, beside: choice{of: []string{no, yes}}}
	if trees := m.chosenTrees(); len(trees) > 0 {
		d.tree = trees[0]
		if len(trees) > 1 {
			d.trees = trees
		}
	}
	d.branch.hint = "none: in the tree itself; a branch makes a linked worktree"
	d.task.lines = true
	d.offer(m)
	switch t := m.treeRowOf(d.tree); {
	case d.tree == "":
		d.field = fieldTree
	case queue || len(d.trees) > 0 || t == nil:
	case t.Occupancy == fleet.Foreign:
		d.field = fieldBeside // which is to be said before anything else
	case t.Occupancy != fleet.Free:
		d.field = fieldTree
	}
	d.finder.freeOnly = !queue
	d.more = finder{freeOnly: true, optional: true}
	if o, ok := m.drafts[d.tree]; ok && len(d.trees) == 0 {
		d.task.set(o.Task)
		d.branch.set(o.Branch)
		d.also = o.Also
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
	switch d.field {
	case fieldTree, fieldTask, fieldBranch:
		return true
	}
	return d.field == fieldAlso && !d.several()
}

func (d *spawnDialog) keys() []key.Binding {
	send, other := keyDispatch, keyToQueue
	if d.queue {
		send, other = bind("enter", "queue", "enter"), bind("ctrl+r", "dispatch it instead", "ctrl+r")
	}
	switch d.field {
	case fieldTree:
		return []key.Binding{keyPick, keyListUp, keyListDown, keyFreeOnly, keyNextField, keyCancel}
	case fieldAlso:
		if !d.several() {
			return []key.Binding{keyAdd, keyTakeOut, keyListUp, keyListDown, keyFreeOnly, keyNextField, keyCancel}
		}
	case fieldTask:
		return []key.Binding{send, keyNewline, keyEditor, other, keyPrevField, keyCancel}
	case fieldBranch:
		return []key.Binding{send, keyNextField, other, keyCancel}
	}
	return []key.Binding{send, keyLeft, keyRight, keyNextField, other, keyCancel}
}

// enter comes into the present field. The tree is looked for from the start.
func (d *spawnDialog) enter(m *Model) {
	switch d.field {
	case fieldTree:
		d.finder.begin(m, d.tree)
	case fieldAlso:
		d.findMore(m)
	}
}

// leave goes to another field.
func (d *spawnDialog) leave(m *Model, by int) {
	switch d.field {
	case fieldTree:
		d.pick(m)
	case fieldAlso:
		d.add(m)
	}
	for more := true; more; more = !d.has(m, d.field) {
		d.field = (d.field + by + fieldCount) % fieldCount
	}
	d.enter(m)
}

// has reports whether the form has a field as things are. What is queued goes into one tree that is there.
func (d *spawnDialog) has(m *Model, field int) bool {
	switch field {
	case fieldAlso, fieldBranch:
		return !d.queue
	case fieldBeside:
		return !d.queue && len(d.foreign(m)) > 0
	}
	return true
}

func (d *spawnDialog) pick(m *Model) {
	if tree := d.finder.pick(m); tree != "" && tree != d.tree {
		d.tree, d.trees, d.beside.at = tree, nil, 0
		d.also = slices.DeleteFunc(slices.Clone(d.also), func(t string) bool { return t == tree })
		if last, ok := m.lastIn[tree]; ok {
			d.role.offer(d.role.of, last.role)
			d.profile.offer(d.profile.of, last.profile)
		}
	}
}

func (d *spawnDialog) update(m *Model, msg tea.Msg) tea.Cmd {
	k, isKey := msg.(tea.KeyPressMsg)
	d.settle(m)
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
		d.settle(m)
		return nil
	case isKey && d.field == fieldTask && key.Matches(k, keyEditor):
		return m.editText(d.task.value())
	case isKey && key.Matches(k, keyDispatch):
		if d.field == fieldTree {
			d.pick(m)
			d.field = fieldTask
			return nil
		}
		if d.field == fieldAlso && !d.several() {
			return d.addOrGoOn(m)
		}
		return d.send(m)
	}
	switch d.field {
	case fieldTree:
		d.finder.update(m, msg)
	case fieldAlso:
		d.updateAlso(m, msg)
	case fieldBeside:
		turn(&d.beside, k, isKey)
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

// settle leaves a field that the form does not have any more.
func (d *spawnDialog) settle(m *Model) {
	if !d.has(m, d.field) {
		d.field = fieldTask
	}
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
