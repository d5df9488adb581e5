package tui

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/sahilm/fuzzy"

	"fleetdeck/fleet"
)

// finder looks for a tree by a few letters of its path or branch.
type finder struct {
	input    editor
	found    []*fleet.TreeRow
	at       int
	freeOnly bool
}

// begin starts with nothing typed, on the chosen tree.
func (d *finder) begin(m *Model, chosen string) {
	d.input.set("")
	d.input.hint = "type to find a tree, or a path"
	d.search(m, chosen)
}

// search finds the trees that match what is typed, the best first.
func (d *finder) search(m *Model, chosen string) {
	d.found, d.at = nil, 0
	var all []*fleet.TreeRow
	for _, t := range m.ix.trees {
		if !d.freeOnly || t.Occupancy == fleet.Free && m.assumed[t.Tree] == nil {
			all = append(all, t)
		}
	}
	typed := strings.TrimSpace(d.input.value())
	if typed == "" {
		d.found = all
	} else {
		for _, f := range fuzzy.FindFrom(typed, candidates{m, all}) {
			d.found = append(d.found, all[f.Index])
		}
	}
	for i, t := range d.found {
		if t.Tree == chosen {
			d.at = i
		}
	}
}

// candidates is trees as what is typed is compared with.
type candidates struct {
	m   *Model
	all []*fleet.TreeRow
}

func (c candidates) Len() int { return len(c.all) }

func (c candidates) String(i int) string {
	return c.m.short(c.all[i].Tree) + " " + c.all[i].Branch
}

// pick is what is under the cursor, or else what is typed as a path.
func (d *finder) pick(m *Model) string {
	typed := strings.TrimSpace(d.input.value())
	if rest, ok := strings.CutPrefix(typed, "~/"); ok && m.opts.Home != "" {
		typed = m.opts.Home + "/" + rest
	}
	// A path is meant as it is typed, whatever it resembles.
	if strings.HasPrefix(typed, "/") || strings.HasPrefix(typed, ".") {
		return typed
	}
	if d.at < len(d.found) {
		return d.found[d.at].Tree
	}
	return typed
}

func (d *finder) update(m *Model, msg tea.Msg) {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, keyListUp):
			d.at = max(d.at-1, 0)
			return
		case key.Matches(k, keyListDown):
			d.at = max(min(d.at+1, len(d.found)-1), 0)
			return
		case key.Matches(k, keyFreeOnly):
			d.freeOnly = !d.freeOnly
			d.search(m, "")
			return
		}
	}
	before := d.input.value()
	if d.input.update(msg); d.input.value() != before {
		d.search(m, "")
	}
}

// treeLines is the chosen trees, or what is found while one is looked for.
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
		s := m.occupancy(t.Occupancy).String()
		if x := m.ix.member[t.Member]; x != nil {
			s += " by " + cut(x.Role, 12)
		} else if t.Occupancy == fleet.Reserved {
			m.counting = true
			s += " " + countdown(t.Deadline.Remaining(m.now))
		}
		return s
	}
	if d.field != fieldTree {
		switch t := m.treeRowOf(d.tree); {
		case len(d.trees) > 1:
			names := make([]string, len(d.trees))
			for i, t := range d.trees {
				names[i] = m.short(t)
			}
			out := []string{label + m.strong.of(plural(len(d.trees), "tree", "trees"))}
			return append(out, m.targets(names, w, min(most, 4))...)
		case t != nil:
			return []string{label + named(t, state(t), w-indent)}
		case d.tree == "":
			return []string{label + m.faint.of("none is chosen")}
		}
		return []string{label + tail(m.short(d.tree), w-indent)}
	}
	f := &d.finder
	note := ""
	if f.freeOnly {
		note = m.faint.of(" free ones only")
	}
	out := []string{label + spread(f.input.view(m, w-indent-width(note)-1, 1, true)[0], note, w-indent)}
	top := max(min(f.at-most/2, len(f.found)-most), 0)
	for i := top; i < min(top+most, len(f.found)); i++ {
		t := f.found[i]
		text := named(t, state(t), w-indent-2)
		if i == f.at {
			text = m.selected.of(fit(clean(text), w-indent-2))
		}
		out = append(out, strings.Repeat(" ", indent)+text)
	}
	if len(f.found) == 0 {
		why := "no such tree is known; enter takes it as a path"
		if f.freeOnly {
			why = "no such tree is free: ctrl+t shows the others too"
		}
		out = append(out, strings.Repeat(" ", indent)+m.faint.of(cut(why, w-indent)))
	}
	return out
}

// slotsFor says how many slots of a role on a profile are free, empty where none limits it.
func (m *Model) slotsFor(role, profile string) string {
	all, free, elsewhere := 0, 0, 0
	for _, s := range m.ix.slots {
		switch {
		case s.Role != role:
		case s.Profile != profile:
			elsewhere++
		default:
			all++
			if s.State == fleet.SlotFree {
				free++
			}
		}
	}
	switch {
	case all > 0:
		return fmt.Sprintf("%d of %s free on this profile", free, plural(all, "slot", "slots"))
	case elsewhere > 0:
		return "no slot of this role carries this profile: it would be refused"
	}
	return ""
}
