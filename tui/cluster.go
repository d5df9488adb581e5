package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fleetdeck/fleet"
)

// many reports whether the fleet has many hosts.
func (m *Model) many() bool { return m.ix.Cluster != nil }

// lastTab is the last view that there is.
func (m *Model) lastTab() view {
	if m.many() {
		return viewNodes
	}
	return viewHistory
}

// elsewhere reports whether node is another host than this one.
func (m *Model) elsewhere(node string) bool {
	return m.many() && node != "" && node != m.ix.Cluster.Node
}

// hostOf is the other host that a tree is on; empty where it is on this one.
func (m *Model) hostOf(tree string) string {
	if node, _ := fleet.Where(tree); m.elsewhere(node) {
		return node
	}
	return ""
}

// treeIn is a tree in a list: without its node, where a column of its own names that.
func (m *Model) treeIn(l interface{ draws(title string) bool }, tree string) string {
	if l.draws("NODE") {
		_, path := fleet.Where(tree)
		return m.below(path)
	}
	return m.inList(tree)
}

// named is the last part of a tree's name, behind its node where that is another host.
func (m *Model) named(tree string) string {
	node, path := fleet.Where(tree)
	if path = path[strings.LastIndexByte(path, '/')+1:]; node != "" {
		return node + ":" + path
	}
	return path
}

// The width of the column of nodes: as wide as the longest name, within bounds. From leastNode on no other column gives way to it.
const (
	shortNode = 5
	leastNode = 11
	longNode  = 28
)

// fitNodes makes the columns of nodes as wide as the names are.
func (m *Model) fitNodes() {
	w := shortNode
	for _, n := range m.ix.nodes {
		w = max(w, width(clean(n.Name)))
	}
	w = min(w, longNode)
	m.trees.widthOf("NODE", w, leastNode)
	m.members.widthOf("NODE", w, leastNode)
	m.slots.widthOf("NODE", w, leastNode)
	m.entries.widthOf("NODE", w, leastNode)
}

// nodeCell is a node in a list: one that is lost stands out, and this host does not.
func (m *Model) nodeCell(node string) (string, paint) {
	switch {
	case m.ix.lost[node]:
		return node, m.warn
	case m.elsewhere(node):
		return node, ""
	}
	return node, m.faint
}

// etcdAway says why etcd is not heard; empty where it is, and on one host.
func (m *Model) etcdAway() string {
	if c := m.ix.Cluster; c != nil {
		return c.Error
	}
	return ""
}

// baseAge is the age of what everything rests on: the file, or what etcd told. That etcd is away is said elsewhere.
func (m *Model) baseAge() time.Duration {
	c := m.ix.Cluster
	switch {
	case c == nil:
		return age(m.now, m.ix.File.ReadAt)
	case c.Error != "":
		return 0
	}
	return age(m.now, c.HeardAt)
}

// etcd is etcd's state in the truth line: who leads, and how soon it answers, or for how long it was not heard.
func (m *Model) etcd() string {
	c := m.ix.Cluster
	switch {
	case c.Error != "" && c.HeardAt.IsZero():
		return m.danger.of("× etcd not heard")
	case c.Error != "":
		m.counting = true
		return m.danger.of("× etcd not heard " + seconds(age(m.now, c.HeardAt)))
	case len(c.Endpoints) == 0:
		return m.faint.of("asking etcd")
	case m.ix.File.Error != "":
		return m.danger.of("etcd unreadable")
	case slices.ContainsFunc(c.Endpoints, func(e fleet.Endpoint) bool { return e.Full }):
		return m.danger.of("× etcd full") // one full server is enough for none to take a write
	}
	well, leader, latency := 0, "", 0.0
	for _, e := range c.Endpoints {
		if e.Error != "" {
			continue
		}
		if well++; e.Leader || leader == "" && (latency == 0 || e.LatencyMS < latency) {
			latency = e.LatencyMS
		}
		if e.Leader {
			leader = e.Name
		}
	}
	s := "etcd"
	if well < len(c.Endpoints) {
		s += fmt.Sprintf(" %d/%d", well, len(c.Endpoints))
	}
	if leader != "" {
		s += " led by " + cut(leader, 16)
	}
	s += " " + millis(latency)
	if well < len(c.Endpoints) {
		return m.warn.of(s)
	}
	return s
}

// elected is the fleet's keeper in the truth line: the host that keeps the staff of all.
func (m *Model) elected() string {
	switch {
	case m.etcdAway() != "":
		return m.faint.of("keeper waits")
	case m.ix.queued > 0 && !m.kept():
		return m.warn.of("no keeper here") // each host's queue is worked off by its own
	case m.ix.Cluster.Keeper != "":
		return "keeper " + cut(m.ix.Cluster.Keeper, 12)
	case m.ix.Keeper.Staff > 0:
		return m.warn.of("no keeper")
	}
	return m.faint.of("no keeper")
}

// millis is a short time in milliseconds: "1.2 ms", "42 ms".
func millis(ms float64) string {
	if ms < 9.95 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// mostLost is how many lost hosts a bar names.
const mostLost = 3

// clusterAlerts are the bars of a fleet of many hosts.
func (m *Model) clusterAlerts(bar func(p paint, title, text string)) {
	c, e := m.ix.Cluster, m.ix.File.Error
	switch {
	case c.Error != "" && c.HeardAt.IsZero():
		bar(m.dangerBar, "ETCD NOT HEARD", "only this host is shown · dispatches are refused, members go on · "+c.Error)
	case c.Error != "":
		m.counting = true
		bar(m.dangerBar, "ETCD NOT HEARD", "for "+seconds(age(m.now, c.HeardAt))+": what other hosts show is of then · dispatches are refused, members go on · "+c.Error)
	case e != "" && m.ix.File.Code == fleet.CodeClusterUnreachable:
		bar(m.dangerBar, "ETCD DOES NOT ANSWER", "dispatches are refused, members go on · "+e)
	case e != "":
		bar(m.dangerBar, "RESERVATIONS UNREADABLE", "dispatches are refused · "+e+" · `fleetdeck doctor` says how to mend it")
	}
	var lost []string
	members, trees := 0, 0
	for _, n := range m.ix.nodes {
		if m.ix.lost[n.Name] {
			lost = append(lost, cut(n.Name, 20))
			members, trees = members+len(n.Members), trees+len(n.Held)
		}
	}
	if len(lost) == 0 {
		return
	}
	title, which := "HOST LOST", lost[0]
	if len(lost) > 1 {
		title, which = fmt.Sprintf("%d HOSTS LOST", len(lost)), "NODE"
	}
	if more := len(lost) - mostLost; more > 0 {
		lost = append(lost[:mostLost], fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("%s · %s and %s stay taken", strings.Join(lost, ", "), plural(members, "member", "members"), plural(trees, "tree", "trees"))
	if bound(m.keys.Nodes) {
		text += " · " + m.keys.Nodes.Help().Key + " shows them"
	}
	bar(m.warnBar, title, text+" · `fleetdeck release --lost "+which+"` frees them")
}
