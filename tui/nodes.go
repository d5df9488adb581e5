package tui

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// nodeKind is the list of the fleet's hosts.
func (m *Model) nodeKind() kind[*fleet.Node] {
	type row = *fleet.Node
	state := func(n row) string { return m.nodeLook(n).word }
	number := func(of func(row) int) func(row, int) (string, paint) {
		return func(n row, _ int) (string, paint) { return strconv.Itoa(of(n)), "" }
	}
	members := func(n row) int { return len(n.Members) }
	trees := func(n row) int { return len(n.Held) }
	slots := func(n row) int { return len(slotsOfNode(n)) }
	return kind[row]{
		title:  "Nodes",
		key:    func(n row) string { return n.Name },
		text:   func(n row) string { return strings.Join([]string{n.Name, state(n), n.Host, n.Version}, " ") },
		look:   m.nodeLook,
		fields: map[string]func(row) string{"node": func(n row) string { return n.Name }, "state": state, "host": func(n row) string { return n.Host }, "version": func(n row) string { return n.Version }},
		columns: []column[row]{
			{title: "NODE", w: 10, grow: 1, most: 28, by: ordered(func(n row) string { return n.Name }), cell: func(n row, _ int) (string, paint) { return n.Name, "" }},
			{title: "STATE", w: 8, by: ordered(state), cell: func(n row, _ int) (string, paint) { l := m.nodeLook(n); return l.word, l.paint }},
			{title: "KEEPER", w: 6, from: 52, cell: func(n row, _ int) (string, paint) {
				if m.keeps(n) {
					return "keeps", ""
				}
				return "", ""
			}},
			{title: "MEMBERS", w: 7, by: ordered(members), cell: number(members)},
			{title: "TREES", w: 5, by: ordered(trees), cell: number(trees)},
			{title: "SLOTS", w: 5, from: 44, by: ordered(slots), cell: number(slots)},
			{title: "HOST", w: 12, grow: 1, most: 32, from: 58, by: ordered(func(n row) string { return n.Host }), cell: func(n row, _ int) (string, paint) { return n.Host, m.faint }},
			{title: "VERSION", w: 12, grow: 1, most: 32, from: 72, by: ordered(func(n row) string { return n.Version }), cell: func(n row, _ int) (string, paint) { return n.Version, m.faint }},
		},
		groups: []grouping[row]{{name: "state", of: state}, {name: "version", of: func(n row) string { return n.Version }}},
		fault:  func(n row) bool { return n.Lost },
		empty: func() [2]string {
			return [2]string{"no host has told of itself yet", "`fleetdeck up` on a host makes it a node of the fleet"}
		},
	}
}

// keeps reports whether a node is the fleet's keeper.
func (m *Model) keeps(n *fleet.Node) bool { return m.many() && m.ix.Cluster.Keeper == n.Name }

// nodeLook is how a node is: what etcd told last, where that is heard.
func (m *Model) nodeLook(n *fleet.Node) look {
	switch {
	case !m.elsewhere(n.Name) && (n.Lost || !m.ix.Daemon.Running):
		return look{"×", "down", m.danger}
	case !m.elsewhere(n.Name):
		return look{"●", "here", m.ok}
	case n.Lost:
		return m.member(fleet.StateLost)
	case m.etcdAway() != "":
		return look{"?", "unknown", m.warn}
	}
	return look{"●", "present", m.ok}
}

// slotsOfNode is the slots that a node has, each once.
func slotsOfNode(n *fleet.Node) map[fleet.NodeTree]bool {
	out := map[fleet.NodeTree]bool{}
	for _, t := range n.Held {
		if t.Slot != "" {
			out[fleet.NodeTree{ID: t.ID, Slot: t.Slot}] = true
		}
	}
	return out
}

// nodeDetail is a node with its members and what else it holds, and the cluster as this host sees it.
func (m *Model) nodeDetail(n *fleet.Node, w int) []string {
	out := []string{" " + m.nodeLook(n).String()}
	if m.ix.lost[n.Name] {
		for _, l := range wrap("Nothing was heard of its daemon for a while. Whether its members still run nobody knows, so that they keep their trees and slots until it is back. If it will not come back, `fleetdeck release --lost "+clean(n.Name)+"` releases them.", w-2) {
			out = append(out, " "+m.warn.of(l))
		}
	}
	var facts []string
	if n.Host != "" {
		facts = append(facts, m.fact("host", n.Host, w))
	}
	if n.Version != "" {
		facts = append(facts, m.fact("version", n.Version, w))
	}
	if m.keeps(n) {
		facts = append(facts, m.fact("keeper", "keeps the staff of all hosts", w))
	}
	if len(facts) > 0 {
		out = append(append(out, ""), facts...)
	}
	out = append(out, m.nodeMembers(n, w)...)
	return append(out, m.servers(w)...)
}

// nodeMembers is who works on a node, and what is on its way there.
func (m *Model) nodeMembers(n *fleet.Node, w int) []string {
	const most = 12
	var lines []string
	for _, x := range n.Members {
		if m.ix.lost[n.Name] {
			x.State = fleet.StateLost
		}
		l := m.member(x.State)
		lines = append(lines, " "+l.paint.of(l.glyph)+" "+cut(fmt.Sprintf("%-8s %s in %s", l.word, x.Role, m.below(x.Tree)), w-4))
	}
	for _, t := range n.Held {
		if t.State != "member" {
			l := m.occupancy(fleet.Reserved)
			lines = append(lines, " "+l.paint.of(l.glyph)+" "+cut(fmt.Sprintf("%-8s %s in %s", t.State, t.Role, m.below(t.Tree)), w-4))
		}
	}
	if len(lines) == 0 {
		return []string{"", " " + m.faint.of("nobody works there")}
	}
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most], m.faint.of(fmt.Sprintf("   and %d more", more)))
	}
	title := "Works"
	if m.ix.lost[n.Name] {
		title = "Holds"
	}
	return append([]string{"", " " + m.strong.of(title)}, lines...)
}

// servers is etcd's servers as this host sees them.
func (m *Model) servers(w int) []string {
	c := m.ix.Cluster
	if c == nil || len(c.Endpoints) == 0 {
		return nil
	}
	heard := "never heard"
	if !c.HeardAt.IsZero() {
		heard = "heard " + m.since(c.HeardAt)
	}
	out := []string{"", " " + m.strong.of("etcd") + m.faint.of(cut(" · fleet "+c.Fleet+" · "+heard, w-6))}
	for _, e := range c.Endpoints {
		name := cmp.Or(e.Name, e.URL)
		if trouble := e.Trouble(); trouble != "" {
			out = append(out, " "+m.danger.of("×")+" "+cut(name+"  "+trouble, w-4))
			continue
		}
		glyph, leads := "○", ""
		if e.Leader {
			glyph, leads = "●", "  leads"
		}
		out = append(out, " "+m.ok.of(glyph)+" "+cut(fmt.Sprintf("%s%s  %s  %s  %s", name, leads, e.Version, millis(e.LatencyMS), megabytes(e.Bytes)), w-4))
	}
	return out
}

// megabytes is a size for people: "0.2 MB", "48 MB".
func megabytes(n int64) string {
	mb := float64(n) / 1e6
	if mb < 9.95 {
		return fmt.Sprintf("%.1f MB", mb)
	}
	return fmt.Sprintf("%.0f MB", mb)
}

// membersOfNode shows the members of the selected node.
func (m *Model) membersOfNode() tea.Cmd {
	n, ok := m.nodes.current()
	if !ok {
		return nil
	}
	m.show(viewMembers)
	m.members.filter("node:" + n.Name)
	return nil
}
