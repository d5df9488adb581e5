package cluster

import (
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
)

// leader is the index of the node that leads.
func leader(t *testing.T, l *Ledger) int {
	t.Helper()
	c, err := l.client()
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	await(t, "there is a leader", func() bool {
		for i, endpoint := range l.Endpoints {
			status, err := clientv3.NewMaintenance(c).Status(t.Context(), endpoint)
			if err == nil && status.Header.MemberId == status.Leader {
				at = i
				return true
			}
		}
		return false
	})
	return at
}

func TestTheLeadersDeathGivesNothingAwayAndIsNotMissed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three nodes: not with -short")
	}
	etcd := etcdrun.Start(t, 3)
	l := open(t, etcd.Endpoints())
	one := reserve(t, l, architect("/src/one"))
	bind(t, l, one)
	d := draft("/src/two")
	d.Grace = 2 * time.Second
	two := reserve(t, l, d)
	news := l.again(t).Watch(t.Context())
	<-news

	etcd.Kill(leader(t, l))
	var racing sync.WaitGroup
	var mu sync.Mutex // guards won
	won := 0
	for range 6 {
		host := l.again(t)
		racing.Go(func() {
			_, err := host.Reserve(t.Context(), window, draft("/src/three"), nobody)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				won++
			} else if codeOf(err) != fleet.CodeTreeReserved {
				t.Errorf("reserve without the old leader: %v", err)
			}
		})
	}
	racing.Wait()
	if won != 1 {
		t.Errorf("%d hold one tree", won)
	}
	if _, err := l.Reserve(t.Context(), window, draft("/src/one"), nobody); codeOf(err) != fleet.CodeTreeOccupied {
		t.Errorf("reserve the member's tree: %v, want %s", err, fleet.CodeTreeOccupied)
	}
	await(t, "the grace that ran on ends", func() bool {
		h, err := l.find(t.Context(), two.ID)
		return err == nil && h == nil
	})
	reserve(t, l, draft("/src/two"))
	seen := false
	await(t, "the watch tells of what came after", func() bool {
		select {
		case <-news:
			entries, err := l.Read()
			seen = seen || err == nil && len(entries) == 2
		default:
		}
		return seen
	})
}
