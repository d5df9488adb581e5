package cluster

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
)

func TestALostHostsMembersAreLostAndNotForgotten(t *testing.T) {
	kite := open(t, oneNode(t).Endpoints())
	crane := kite.again(t, func(o *Options) { o.Node = "crane" }) // its daemon is not there
	var many []fleet.Member
	for i := range maxOps + 20 {
		many = append(many, fleet.Member{ID: fmt.Sprintf("M%03d", i), Tree: "/src/api"})
	}
	held := reserve(t, kite, architect("/src/api"))
	for _, members := range [][]fleet.Member{many, many[:1]} {
		if err := crane.Publish(t.Context(), members); err != nil {
			t.Fatal(err)
		}
		nodes, err := kite.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []fleet.Node{{Name: "crane", Lost: true, Members: members}, {Name: "kite", Held: []fleet.NodeTree{{
			Tree: "/src/api", ID: held.ID, State: reserved, Role: "architect", Profile: "shell", Slot: "architect-1",
			ReservedAt: held.ReservedAt, ExpiresAt: held.ExpiresAt, Fence: kite.fence(t, held.ID),
		}}}}
		if diff := cmp.Diff(want, nodes); diff != "" {
			t.Errorf("nodes (-want +got):\n%s", diff)
		}
	}
}

// A daemon lists a member a moment after that has its trees, and its host may die in that moment.
func TestAMemberThatItsHostDidNotListYetIsShownWithWhatItHolds(t *testing.T) {
	kite := open(t, oneNode(t).Endpoints())
	d := architect("/src/api")
	d.Also = []fleet.Tree{{Path: "/src/web"}}
	held := reserve(t, kite, d)
	members := func() []fleet.Member {
		t.Helper()
		nodes, err := kite.Nodes(t.Context())
		if err != nil || len(nodes) != 1 {
			t.Fatalf("nodes are %v, %v, want one", nodes, err)
		}
		return nodes[0].Members
	}
	if got := members(); got != nil {
		t.Errorf("members are %v while the launch is none yet", got)
	}
	bind(t, kite, held)
	id := "M" + held.ID
	want := []fleet.Member{{
		ID: id, Tree: "/src/api", Also: []fleet.Tree{{Path: "/src/web"}}, Role: "architect", RequestedRole: "architect", Profile: "shell",
		Slot: held.Slot, State: fleet.StateUnknown, StateSource: "launch", StartedAt: held.ReservedAt, Reservation: held.ID,
	}}
	if diff := cmp.Diff(want, members()); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	listed := []fleet.Member{{ID: id, Tree: "/src/api", State: fleet.StateIdle, Reservation: held.ID}}
	if err := kite.Publish(t.Context(), listed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(listed, members()); diff != "" {
		t.Errorf("members once they are listed (-want +got):\n%s", diff)
	}
}

func TestOnlyAHostThatHoldsNothingTakesItsMembersOffTheList(t *testing.T) {
	kite := open(t, oneNode(t).Endpoints())
	crane := kite.again(t, func(o *Options) { o.Node = "crane" })
	held := reserve(t, kite, architect("/src/api"))
	bind(t, kite, held)
	listed := []fleet.Member{{ID: "M" + held.ID, Tree: "/src/api", State: fleet.StateWaiting}}
	for _, l := range []*Ledger{kite, crane} {
		if err := l.Publish(t.Context(), listed); err != nil {
			t.Fatal(err)
		}
	}
	left := func(want ...string) {
		t.Helper()
		if err := kite.Unlist(t.Context()); err != nil {
			t.Fatal(err)
		}
		nodes, err := crane.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range nodes {
			if len(n.Members) == 1 && n.Members[0].State == fleet.StateWaiting { // as it was listed, not as its hold tells
				got = append(got, n.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("hosts with a member (-want +got):\n%s", diff)
		}
	}
	left("crane", "kite")
	if err := kite.Vacate(t.Context(), window, held.ID); err != nil {
		t.Fatal(err)
	}
	left("crane")
}
