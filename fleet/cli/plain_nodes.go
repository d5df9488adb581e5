package cli

import "fleetdeck/fleet"

// cluster is what other hosts show, and whether they are heard.
func (c *changes) cluster(prev, next fleet.Snapshot) {
	if next.Cluster == nil {
		return
	}
	was := ""
	if prev.Cluster != nil {
		was = prev.Cluster.Error
	}
	switch is := next.Cluster.Error; {
	case is != "" && was == "" && next.Cluster.HeardAt.IsZero():
		c.add("cluster", "", "", "etcd is not heard, only this host is shown: %s", is)
	case is != "" && was == "":
		c.add("cluster", "", "", "etcd is not heard since %s, what other hosts show is of then: %s", next.Cluster.HeardAt.Local().Format("15:04:05"), is)
	case is == "" && was != "":
		c.add("cluster", "", "", "etcd is heard again")
	}
	before := byKey(prev.Nodes, func(n fleet.Node) string { return n.Name })
	for _, n := range next.Nodes {
		was, known := before[n.Name]
		delete(before, n.Name)
		switch {
		case n.Lost && (!known || !was.Lost):
			c.add("node", "", "", "node %s is lost, what it holds stays taken: %d members, %d trees", n.Name, len(n.Members), len(n.Held))
		case !n.Lost && !known:
			c.add("node", "", "", "node %s is there, with %d members", n.Name, len(n.Members))
		case !n.Lost && was.Lost:
			c.add("node", "", "", "node %s is back", n.Name)
		}
	}
	for _, n := range prev.Nodes {
		if _, gone := before[n.Name]; gone {
			c.add("node", "", "", "node %s has left the fleet", n.Name)
		}
	}
}
