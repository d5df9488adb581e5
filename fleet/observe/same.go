package observe

import (
	"reflect"
	"slices"
	"time"

	"fleetdeck/fleet"
)

// Same reports whether a and b differ only in when they were made.
func Same(a, b fleet.Snapshot) bool {
	for _, s := range []*fleet.Snapshot{&a, &b} {
		s.Rev, s.At, s.File.ReadAt, s.Daemon.AnsweredAt = 0, fleet.Instant{}, time.Time{}, time.Time{}
	}
	return a.Daemon == b.Daemon && a.File == b.File && sameLock(a.Lock, b.Lock) && sameKeeper(a.Keeper, b.Keeper) &&
		sameEnd(a.Events, b.Events) && sameEnd(a.History, b.History) && slices.Equal(a.Queue, b.Queue) && slices.Equal(a.Slots, b.Slots) &&
		slices.EqualFunc(a.Trees, b.Trees, func(x, y fleet.TreeRow) bool {
			x.RemainingS, y.RemainingS = 0, 0
			return x == y
		}) &&
		slices.EqualFunc(a.Reservations, b.Reservations, func(x, y fleet.ReservationRow) bool {
			x.RemainingS, y.RemainingS = 0, 0
			return x == y
		}) &&
		reflect.DeepEqual(a.Launches, b.Launches) && reflect.DeepEqual(a.Members, b.Members) &&
		slices.EqualFunc(a.Nodes, b.Nodes, sameNode) && sameCluster(a.Cluster, b.Cluster)
}

// sameNode leaves out what stands in lists of its own: those are compared.
func sameNode(a, b fleet.Node) bool {
	return a.Name == b.Name && a.Lost == b.Lost && a.Host == b.Host && a.Boot == b.Boot && a.Version == b.Version &&
		len(a.Members) == len(b.Members) && len(a.Held) == len(b.Held)
}

// sameCluster leaves out what is another with each answer.
func sameCluster(a, b *fleet.ClusterInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Fleet == b.Fleet && a.Node == b.Node && a.Error == b.Error && slices.EqualFunc(a.Endpoints, b.Endpoints, func(x, y fleet.Endpoint) bool {
		for _, e := range []*fleet.Endpoint{&x, &y} {
			e.Revision, e.Bytes, e.LatencyMS = 0, 0, 0
		}
		return x == y
	})
}

func sameLock(a, b fleet.LockInfo) bool { return a.State == b.State && sameHolder(a.Holder, b.Holder) }

func sameKeeper(a, b fleet.KeeperInfo) bool {
	same := sameHolder(a.Holder, b.Holder)
	a.Holder, b.Holder = nil, nil
	return same && a == b
}

func sameHolder(a, b *fleet.LockHolder) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Pid == b.Pid && a.Program == b.Program && a.Since.Equal(b.Since)
}

// sameEnd compares lists that only ever grow at their end and lose their beginning.
func sameEnd[T comparable](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || a[0] == b[0] && a[len(a)-1] == b[len(b)-1])
}
