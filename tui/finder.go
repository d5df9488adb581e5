package tui

import (
	"fmt"
	"path/filepath"
	"slices"
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
	optional bool            // it may end without a tree: nothing is under the cursor until something is typed
	except   map[string]bool // trees that are not to be found
}

// begin starts with nothing typed, on the chosen tree.
func (d *finder) begin(m *Model, chosen string) {
	d.input.set("")
	d.input.hint = "type to find a tree, or a path"
	if d.optional {
		d.input.hint = "none; type to find one, or a path"
	}
	d.search(m, chosen)
}

// search finds the trees that match what is typed, the best first.
func (d *finder) search(m *Model, chosen string) {
	d.found, d.at = nil, 0
	var all []*fleet.TreeRow
	for _, t := range m.ix.trees {
		if !d.except[t.Tree] && (!d.freeOnly || t.Occupancy == fleet.Free && m.assumed[t.Tree] == nil) {
			all = append(all, t)
		}
	}
	typed := strings.TrimSpace(d.input.value())
	if typed == "" {
		d.found = all
		if d.optional {
			d.at = -1
		}
	} else {
		for _, f := range fuzzy.FindFrom(typed, candidates{m, all, strings.Contains(typed, "/")}) {
			d.found = append(d.found, all[f.Index])
		}
		// A few letters in a row of a name mean it, however well they are scattered over another path.
		typed = strings.ToLower(typed)
		named := func(t *fleet.TreeRow) int {
			if strings.Contains(strings.ToLower(filepath.Base(t.Tree)), typed) {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(d.found, func(a, b *fleet.TreeRow) int { return named(a) - named(b) })
	}
	for i, t := range d.found {
		if t.Tree == chosen {
			d.at = i
		}
	}
}

// candidates is trees as what is typed is compared with: without the directory that all lie in, unless a path is typed.
type candidates struct {
	m     *Model
	all   []*fleet.TreeRow
	paths bool
}

func (c candidates) Len() int { return len(c.all) }

func (c candidates) String(i int) string {
	t := c.all[i]
	if c.paths {
		return c.m.short(t.Tree) + " " + t.Branch
	}
	return c.m.inList(t.Tree) + " " + t.Branch
}

// pick is what is under the cursor, or else what is typed as a path.
func (d *finder) pick(m *Model) string {
	typed := strings.TrimSpace(d.input.value())
	if rest, ok := strings.CutPrefix(typed, "~/"); ok && m.opts.Home != "" {
		typed = m.opts.Home + "/" + rest
	}
	// A path is meant as it is typed, whatever it resembles.
	if node, _ := fleet.Where(typed); node != "" && m.many() {
		return typed
	}
	if strings.HasPrefix(typed, "/") || strings.HasPrefix(typed, ".") {
		return typed
	}
	switch {
	case d.at >= 0 && d.at < len(d.found):
		return d.found[d.at].Tree
	case d.optional:
		return "" // what resembles no tree is a slip, where none is needed
	}
	return typed
}

func (d *finder) update(m *Model, msg tea.Msg) {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, keyListUp):
			d.at = max(d.at-1, min(d.at, 0))
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

// lines is what is typed, behind label, and what is found, in at most 1+most lines.
func (d *finder) lines(m *Model, label string, w, most int) []string {
	note := ""
	if d.freeOnly {
		note = m.faint.of(" free ones only")
	}
	out := []string{label + spread(d.input.view(m, w-labelWidth-width(note)-1, 1, true)[0], note, w-labelWidth)}
	top := max(min(d.at-most/2, len(d.found)-most), 0)
	for i := top; i < min(top+most, len(d.found)); i++ {
		text := m.treeNamed(d.found[i], w-labelWidth-2)
		if i == d.at {
			text = m.selected.of(fit(clean(text), w-labelWidth-2))
		}
		out = append(out, strings.Repeat(" ", labelWidth)+text)
	}
	if len(d.found) == 0 {
		why := "no such tree is known; enter takes it as a path"
		if d.optional {
			why = "no such tree is known; a path begins with / or ."
		}
		if d.freeOnly {
			why = "no such tree is free: ctrl+t shows the others too"
		}
		out = append(out, strings.Repeat(" ", labelWidth)+m.faint.of(cut(why, w-labelWidth)))
	}
	return out
}

// treeNamed is a tree and how it is, in at most w cells.
func (m *Model) treeNamed(t *fleet.TreeRow, w int) string {
	state := m.treeState(t)
	room := w - width(state) - 2
	if room < 12 {
		return ansi.Truncate(state, 1, "") + " " + strings.TrimRight(tail(m.short(t.Tree), w-2), " ")
	}
	return spread(strings.TrimRight(tail(m.short(t.Tree), room), " "), state, w)
}

// treeState is how a tree is, and through whom.
func (m *Model) treeState(t *fleet.TreeRow) string {
	s := m.occupancy(t.Occupancy).String()
	if x := m.ix.member[t.Member]; x != nil {
		s += " by " + cut(x.Role, 12)
	} else if t.Occupancy == fleet.Reserved {
		m.counting = true
		s += " " + countdown(t.Deadline.Remaining(m.now))
	}
	return s
}

// namedPath is the tree at path, which need not be known.
func (m *Model) namedPath(path string, w int) string {
	if t := m.treeRowOf(path); t != nil {
		return m.treeNamed(t, w)
	}
	return tail(m.short(path), w)
}

// treeLines is the chosen trees, or what is found while one is looked for.
func (d *spawnDialog) treeLines(m *Model, label string, w, most int) []string {
	switch {
	case d.field == fieldTree:
		return d.finder.lines(m, label, w, most)
	case d.several():
		names := make([]string, len(d.trees))
		for i, t := range d.trees {
			names[i] = m.short(t)
		}
		out := []string{label + m.strong.of(plural(len(d.trees), "tree", "trees"))}
		return append(out, m.targets(names, w, min(most, 4))...)
	case d.tree == "":
		return []string{label + m.faint.of("none is chosen")}
	}
	return []string{label + m.namedPath(d.tree, w-labelWidth)}
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
