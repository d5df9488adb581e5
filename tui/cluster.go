package tui

import (
	"fmt"
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

// millis is a short time in milliseconds: "1.2 ms", "42 ms".
func millis(ms float64) string {
	if ms < 9.95 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

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
		if n.Lost {
			lost = append(lost, clean(n.Name))
			members, trees = members+len(n.Members), trees+len(n.Held)
		}
	}
	if len(lost) == 0 {
		return
	}
	title := "HOST LOST"
	if len(lost) > 1 {
		title = fmt.Sprintf("%d HOSTS LOST", len(lost))
	}
	bar(m.warnBar, title, fmt.Sprintf("%s · %s and %s stay taken until it is back · %s shows them",
		strings.Join(lost, ", "), plural(members, "member", "members"), plural(trees, "tree", "trees"), m.keys.Nodes.Help().Key))
}
