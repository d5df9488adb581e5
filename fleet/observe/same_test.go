package observe

import (
	"testing"
	"time"

	"fleetdeck/fleet"
)

func TestSnapshotsAreTheSameExactlyIfTheyDifferInTheirAge(t *testing.T) {
	full := func() fleet.Snapshot {
		return fleet.Snapshot{
			Rev: 1, Trees: []fleet.TreeRow{{Tree: "/a"}}, Members: []fleet.Member{{ID: "m"}}, Launches: []fleet.Launch{{ID: "l"}},
			Slots: []fleet.Slot{{Name: "s"}}, Reservations: []fleet.ReservationRow{{ID: "r"}}, Queue: []fleet.QueueRow{{ID: "q"}},
			Events: []fleet.Event{{Seq: 1}}, History: []fleet.Deed{{What: "prune"}}, Lock: fleet.LockInfo{State: "held", Holder: &fleet.LockHolder{Pid: 1}},
			Keeper: fleet.KeeperInfo{Running: true, Holder: &fleet.LockHolder{Pid: 2}}, Nodes: []fleet.Node{{Name: "kite", Members: []fleet.Member{{}}}},
			Cluster: &fleet.ClusterInfo{Fleet: "web", Endpoints: []fleet.Endpoint{{URL: "http://a", Leader: true}}},
		}
	}
	code := 1
	for _, test := range []struct {
		name   string
		change func(*fleet.Snapshot)
		same   bool
	}{
		{"nothing", func(*fleet.Snapshot) {}, true},
		{"rev", func(s *fleet.Snapshot) { s.Rev = 2 }, true},
		{"its time", func(s *fleet.Snapshot) { s.At.Mono = time.Hour }, true},
		{"when the file was read", func(s *fleet.Snapshot) { s.File.ReadAt = time.Unix(1, 0) }, true},
		{"when the daemon answered", func(s *fleet.Snapshot) { s.Daemon.AnsweredAt = time.Unix(1, 0) }, true},
		{"a tree's countdown", func(s *fleet.Snapshot) { s.Trees[0].RemainingS = 1 }, true},
		{"a reservation's countdown", func(s *fleet.Snapshot) { s.Reservations[0].RemainingS = 1 }, true},
		{"when the cluster answered, and how fast", func(s *fleet.Snapshot) {
			s.Cluster.HeardAt, s.Cluster.Endpoints[0].LatencyMS, s.Cluster.Endpoints[0].Revision, s.Cluster.Endpoints[0].Bytes = time.Unix(1, 0), 2, 3, 4
		}, true},
		{"no cluster", func(s *fleet.Snapshot) { s.Cluster = nil }, false},
		{"the cluster is away", func(s *fleet.Snapshot) { s.Cluster.Error = "deadline exceeded" }, false},
		{"the leader", func(s *fleet.Snapshot) { s.Cluster.Endpoints[0].Leader = false }, false},
		{"a host", func(s *fleet.Snapshot) { s.Nodes[0].Lost = true }, false},
		{"a host less", func(s *fleet.Snapshot) { s.Nodes = nil }, false},
		{"a host's members", func(s *fleet.Snapshot) { s.Nodes[0].Members = nil }, false},
		{"a tree", func(s *fleet.Snapshot) { s.Trees[0].Dirty = true }, false},
		{"a tree less", func(s *fleet.Snapshot) { s.Trees = nil }, false},
		{"a member", func(s *fleet.Snapshot) { s.Members[0].ExitCode = &code }, false},
		{"a launch", func(s *fleet.Snapshot) { s.Launches[0].Step = "booting" }, false},
		{"a slot", func(s *fleet.Snapshot) { s.Slots[0].State = fleet.SlotBound }, false},
		{"a verdict", func(s *fleet.Snapshot) { s.Reservations[0].Verdict = fleet.VerdictExpired }, false},
		{"the queue", func(s *fleet.Snapshot) { s.Queue[0].State = "sent" }, false},
		{"an event", func(s *fleet.Snapshot) { s.Events = append(s.Events, fleet.Event{Seq: 2}) }, false},
		{"as many other events", func(s *fleet.Snapshot) { s.Events[0].Seq = 2 }, false},
		{"a deed", func(s *fleet.Snapshot) { s.History = append(s.History, fleet.Deed{What: "stop"}) }, false},
		{"the lock's holder", func(s *fleet.Snapshot) { s.Lock.Holder = &fleet.LockHolder{Pid: 3} }, false},
		{"no holder", func(s *fleet.Snapshot) { s.Lock.Holder = nil }, false},
		{"the keeper", func(s *fleet.Snapshot) { s.Keeper.Broken = 1 }, false},
		{"the keeper's process", func(s *fleet.Snapshot) { s.Keeper.Holder = &fleet.LockHolder{Pid: 3} }, false},
		{"the daemon", func(s *fleet.Snapshot) { s.Daemon.Running = true }, false},
		{"the file", func(s *fleet.Snapshot) { s.File.Error = "zeros" }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			next := full()
			test.change(&next)
			if got := Same(full(), next); got != test.same {
				t.Errorf("Same = %t, want %t", got, test.same)
			}
		})
	}
}
