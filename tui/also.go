package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// What can be chosen for several marked trees, and beside a foreign agent.
const (
	eachItsOwn = "one in each"
	oneOverAll = "one over all"

	no  = "no"
	yes = "yes, beside it"
)

// mostAlso bounds the further trees of one agent, far above what anybody works over.
const mostAlso = 32

// several reports whether the form is about marked trees.
func (d *spawnDialog) several() bool { return len(d.trees) > 1 }

// add takes what is found as a further tree, and reports whether there was something to take.
func (d *spawnDialog) add(m *Model) bool {
	if d.several() {
		return false
	}
	tree := d.more.pick(m)
	if tree == "" || d.more.except[tree] || len(d.also) == mostAlso {
		return false
	}
	d.setAlso(m, append(slices.Clone(d.also), tree))
	return true
}

// addOrGoOn adds what is typed or chosen; where nothing is, it goes on to the task.
func (d *spawnDialog) addOrGoOn(m *Model) tea.Cmd {
	typed := d.more.input.value()
	switch {
	case d.add(m):
	case strings.TrimSpace(typed) == "":
		d.field = fieldTask
	default:
		return m.say(levelWarn, "no further tree: "+cut(typed, 40)+" is none that is found, or is chosen already", "")
	}
	return nil
}

// setAlso replaces the further trees. Where the trees are others, a yes to foreign agents was not about them.
func (d *spawnDialog) setAlso(m *Model, trees []string) {
	d.also, d.beside.at = trees, 0
	d.findMore(m)
}

// findMore looks for a further tree from the start.
func (d *spawnDialog) findMore(m *Model) {
	d.more.except = map[string]bool{d.tree: true}
	for _, t := range d.also {
		d.more.except[t] = true
	}
	d.more.begin(m, "")
}

func (d *spawnDialog) updateAlso(m *Model, msg tea.Msg) {
	k, isKey := msg.(tea.KeyPressMsg)
	switch {
	case d.several():
		turn(&d.over, k, isKey)
	case isKey && key.Matches(k, keyTakeOut) && d.more.input.value() == "" && len(d.also) > 0:
		d.setAlso(m, d.also[:len(d.also)-1])
	default:
		d.more.update(m, msg)
	}
}

// alsoLines is the further trees that the agent holds, and what is found while one is looked for; of several marked trees,
// whether each gets an agent.
func (d *spawnDialog) alsoLines(m *Model, label func(int, string) string, w, most int) []string {
	if d.several() {
		return []string{label(fieldAlso, "Agents") + d.over.line(m, w-labelWidth, d.field == fieldAlso)}
	}
	head := label(fieldAlso, "Also")
	if len(d.also) == 0 && d.field != fieldAlso {
		return []string{head + m.faint.of(cut("none; several are held together, or not at all", w-labelWidth))}
	}
	var out []string
	for i, t := range d.also {
		if i == most-1 && len(d.also) > most {
			out = append(out, head+m.faint.of(plural(len(d.also)-i, "more tree", "more trees")))
			break
		}
		out = append(out, head+m.namedPath(t, w-labelWidth))
		head = strings.Repeat(" ", labelWidth)
	}
	if d.field == fieldAlso {
		out = append(out, d.more.lines(m, head, w, max(most-len(out), 1))...)
	}
	return out
}

// foreign is the trees of the dispatch in which an agent works that fleetdeck did not start.
func (d *spawnDialog) foreign(m *Model) []*fleet.TreeRow {
	trees := d.trees
	switch {
	case d.several():
	case strings.TrimSpace(d.branch.value()) != "":
		trees = d.also // the new worktree has nobody in it
	default:
		trees = append([]string{d.tree}, d.also...)
	}
	var out []*fleet.TreeRow
	for _, tree := range trees {
		if t := m.treeRowOf(tree); t != nil && t.Occupancy == fleet.Foreign {
			out = append(out, t)
		}
	}
	return out
}

// whoIsForeign names the agents that fleetdeck did not start, one a line.
func (m *Model) whoIsForeign(trees []*fleet.TreeRow, w int) []string {
	var out []string
	for _, t := range trees {
		f := t.Foreign
		who := cmp.Or(cut(f.Agent, 16), "an agent") + fmt.Sprintf(" (pid %d", f.Pid)
		if !f.Since.IsZero() {
			who += ", for " + span(age(m.now, f.Since))
		}
		who += ") works in "
		out = append(out, who+strings.TrimRight(tail(m.short(t.Tree), w-width(who)), " "))
	}
	if len(out) > 3 {
		out = append(out[:2], fmt.Sprintf("and %d more foreign agents work in others of them", len(out)-2))
	}
	return out
}
