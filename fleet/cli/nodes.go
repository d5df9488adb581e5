package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fleetdeck/fleet"
)

// everywhere adds the members of the other hosts to those of this one. Where the cluster does not say, that is told, and this
// host's are shown all the same.
func (s *session) everywhere(ctx context.Context, here []fleet.Member) []fleet.Member {
	rows := append([]fleet.Member{}, here...)
	if s.cluster == nil {
		return rows
	}
	for i := range rows {
		rows[i].Node = s.conf.Cluster.Node
	}
	ctx, cancel := context.WithTimeout(ctx, s.conf.LockWait)
	defer cancel()
	nodes, err := s.cluster.Nodes(ctx)
	if err != nil {
		fmt.Fprintf(s.err, "fleetdeck: warning: only this host's members are shown: %v\n", err)
		return rows
	}
	for _, n := range nodes {
		if n.Name == s.conf.Cluster.Node {
			continue
		}
		for _, m := range n.Members {
			if n.Lost {
				m.State = fleet.StateLost
			}
			m.Node = n.Name
			rows = append(rows, m)
		}
	}
	return rows
}

// publish keeps what other hosts see of this one's members as it is, until ctx ends. What cannot be told now is told later.
func (s *session) publish(ctx context.Context) {
	const every, lookAfterTold = time.Second, 15 * time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	var told []fleet.Member
	var toldAt time.Time // what was told is looked after: etcd may have been put back from an older copy
	for {
		roster, err := s.client.Roster(ctx)
		if err == nil {
			alive := slices.DeleteFunc(roster.Members, func(m fleet.Member) bool { return !m.Alive() })
			if time.Since(toldAt) > lookAfterTold || !slices.EqualFunc(told, alive, sameRow) {
				asking, cancel := context.WithTimeout(ctx, s.conf.LockWait)
				if s.cluster.Publish(asking, alive) == nil {
					told, toldAt = alive, time.Now()
				}
				cancel()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sameRow reports whether other hosts would see the same of a and b.
func sameRow(a, b fleet.Member) bool {
	return a.ID == b.ID && a.State == b.State && a.StateMessage == b.StateMessage && a.Role == b.Role && a.Slot == b.Slot && a.CharterOutdated == b.CharterOutdated
}
