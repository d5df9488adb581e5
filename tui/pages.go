package tui

import (
	"context"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// turns is the key of an action that, pressed again, shows another page.
func turns(k key.Binding, does string) key.Binding { return bind(k.Help().Key, does, k.Keys()...) }

// showDiff shows what the selected tree holds that is not committed.
func (m *Model) showDiff() tea.Cmd {
	tree := m.selectedTree()
	if tree == "" {
		return m.say(levelInfo, "no tree is selected", "")
	}
	return m.diffOf(tree, false)
}

// diffOf shows what a tree holds that is not committed, or all since its branch began. The same key shows the other.
func (m *Model) diffOf(tree string, since bool) tea.Cmd {
	f := m.fleet
	p := &pager{
		name: "Diff of " + m.short(tree), none: "everything is committed", paint: diffPaint, turn: turns(m.keys.Diff, "since its branch began"),
		fetch: func(ctx context.Context) (string, error) { return f.Diff(ctx, tree, since) },
		other: func(m *Model) tea.Cmd { return m.diffOf(tree, !since) },
	}
	if since {
		p.name, p.none, p.turn = "Diff of "+m.short(tree)+" since its branch began", "nothing was changed", turns(m.keys.Diff, "what is not committed")
	}
	return m.page(p)
}

// diffPaint is the style of a line of a diff.
func diffPaint(m *Model, l string) paint {
	switch {
	case strings.HasPrefix(l, "diff "), strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"):
		return m.strong
	case strings.HasPrefix(l, "@@"), strings.HasPrefix(l, "commit "):
		return m.accent
	case strings.HasPrefix(l, "+"):
		return m.ok
	case strings.HasPrefix(l, "-"):
		return m.removed
	}
	return ""
}

// renewPage is how often an explanation is made anew while it is read.
const renewPage = time.Second

// showExplanation explains what is selected: the member where members or slots are listed or its screen has the focus, and else
// the tree.
func (m *Model) showExplanation() tea.Cmd {
	x, tree := m.selectedMember(), m.selectedTree()
	l := m.listed()
	switch {
	case x != nil && (l == viewMembers || l == viewSlots || l == viewTrees && m.pane == paneDetail):
		return m.explainMember(x)
	case tree == "":
		return m.say(levelInfo, "no tree is selected", "")
	}
	return m.explainTree(tree)
}

// explainTree says why a tree can or cannot be dispatched into. The same key goes on to the member in it.
func (m *Model) explainTree(tree string) tea.Cmd {
	f := m.fleet
	p := &pager{
		name: "Why " + m.short(tree) + " is as it is", paint: noPaint, prose: true, renew: renewPage,
		fetch: func(ctx context.Context) (string, error) { return f.Explain(ctx, tree) },
	}
	if x := m.memberIn(tree); x != nil {
		p.turn, p.other = turns(m.keys.Explain, "its member"), func(m *Model) tea.Cmd { return m.explainMember(x) }
	}
	return m.page(p)
}

// explainMember says who says what of a member, and when. The same key goes on to its tree.
func (m *Model) explainMember(x *fleet.Member) tea.Cmd {
	f, id, tree := m.fleet, x.ID, x.Tree
	return m.page(&pager{
		name: "Who says what of " + clean(x.Role) + " in " + m.short(tree), paint: noPaint, prose: true, renew: renewPage,
		fetch: func(ctx context.Context) (string, error) { return f.Witnesses(ctx, id) },
		turn:  turns(m.keys.Explain, "its tree"),
		other: func(m *Model) tea.Cmd { return m.explainTree(tree) },
	})
}

func noPaint(*Model, string) paint { return "" }
