package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
)

// fleetOfThree is kite, which looks, crane and the lost heron.
func fleetOfThree() []fleet.Node {
	ends := time.Unix(90, 0)
	held := func(tree, id, state, slot string) fleet.NodeTree {
		return fleet.NodeTree{Tree: tree, ID: id, State: state, Role: "architect", Profile: "claude", Slot: slot, ExpiresAt: ends}
	}
	return []fleet.Node{
		{Name: "crane", Members: []fleet.Member{{ID: "c1", Tree: "/src/web", File: "1:2", Reservation: "r1", State: fleet.StateIdle, Also: []fleet.Tree{{Path: "/src/lib", File: "1:3"}}}},
			Held: []fleet.NodeTree{held("/src/web", "r1", "member", "one"), held("/src/lib", "r1", "member", "one"), held("/src/next", "r2", "launching", "two")}},
		{Name: "heron", Lost: true, Members: []fleet.Member{{ID: "h1", Tree: "/src/web", Reservation: "r3", State: fleet.StateWorking}},
			Held: []fleet.NodeTree{held("/src/web", "r3", "member", "")}},
		{Name: "kite", Members: []fleet.Member{{ID: "old", Tree: "/src/api"}}, Held: []fleet.NodeTree{held("/src/api", "r4", "member", "three")}},
	}
}

func TestRowsOfOtherHostsStandBesideThisOnes(t *testing.T) {
	own := func() fleet.Snapshot {
		return fleet.Snapshot{
			Trees: []fleet.TreeRow{{Tree: "/src/api", Occupancy: fleet.Taken, Member: "k1"}, {Tree: "/src/web", Occupancy: fleet.Free}}, Members: []fleet.Member{{ID: "k1", Tree: "/src/api", File: "1:2"}},
			Reservations: []fleet.ReservationRow{{Tree: "/src/web", ID: "r9"}},
			Slots: []fleet.Slot{
				{Name: "one", Role: "architect", Profile: "claude", State: fleet.SlotFree}, {Name: "two", Role: "architect", Profile: "claude", State: fleet.SlotFree},
				{Name: "three", Role: "architect", Profile: "claude", State: fleet.SlotBound, Member: "k1"}, {Name: "one", Role: "dev", Profile: "claude", State: fleet.SlotFree},
			},
		}
	}
	ends := fleet.Deadline{Wall: time.Unix(90, 0)}
	want := fleet.Snapshot{
		Trees: []fleet.TreeRow{
			{Tree: "/src/api", Node: "kite", Occupancy: fleet.Taken, Member: "k1"}, {Tree: "/src/web", Node: "kite", Occupancy: fleet.Free},
			{Tree: "crane:/src/web", Node: "crane", Occupancy: fleet.Taken, Member: "c1", Reservation: "r1"},
			{Tree: "crane:/src/lib", Node: "crane", Occupancy: fleet.Taken, Member: "c1", Reservation: "r1"},
			{Tree: "crane:/src/next", Node: "crane", Occupancy: fleet.Reserved, Reservation: "r2", Deadline: ends},
			{Tree: "heron:/src/web", Node: "heron", Occupancy: fleet.Taken, Member: "h1", Reservation: "r3"},
		},
		Members: []fleet.Member{
			{ID: "k1", Node: "kite", Tree: "/src/api", File: "1:2"},
			{ID: "c1", Node: "crane", Tree: "crane:/src/web", Reservation: "r1", State: fleet.StateIdle, Also: []fleet.Tree{{Path: "crane:/src/lib"}}},
			{ID: "h1", Node: "heron", Tree: "heron:/src/web", Reservation: "r3", State: fleet.StateLost},
		},
		Reservations: []fleet.ReservationRow{
			{Tree: "/src/web", Node: "kite", ID: "r9"},
			{Tree: "crane:/src/next", Node: "crane", ID: "r2", Role: "architect", Profile: "claude", Slot: "two", ExpiresAt: ends.Wall, Verdict: fleet.VerdictPending, Deadline: ends},
		},
		Slots: []fleet.Slot{
			{Name: "one", Role: "architect", Profile: "claude", State: fleet.SlotBound, Member: "c1", Reservation: "r1", Tree: "crane:/src/web", Node: "crane"},
			{Name: "two", Role: "architect", Profile: "claude", State: fleet.SlotReserved, Reservation: "r2", Tree: "crane:/src/next", Node: "crane"},
			{Name: "three", Role: "architect", Profile: "claude", State: fleet.SlotBound, Member: "k1", Node: "kite"}, {Name: "one", Role: "dev", Profile: "claude", State: fleet.SlotFree},
		},
		Nodes: fleetOfThree(), Cluster: &fleet.ClusterInfo{Node: "kite"},
	}
	got, roster := own(), append(make([]fleet.Member, 0, 8), own().Members...) // with room for more
	got.Members = roster
	newHosts(fleetOfThree(), fleet.ClusterInfo{Node: "kite"}).join(&got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if roster[0].Node != "" {
		t.Error("the roster itself was changed")
	}

	want.Trees[1].Occupancy = fleet.Unsure
	want.Cluster.Error = "away"
	got = own()
	newHosts(fleetOfThree(), fleet.ClusterInfo{Node: "kite", Error: "away"}).join(&got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("while the cluster is away (-want +got):\n%s", diff)
	}

	got, one := own(), own()
	(*hosts)(nil).join(&got)
	if diff := cmp.Diff(one, got); diff != "" {
		t.Errorf("on one host (-want +got):\n%s", diff)
	}
}
