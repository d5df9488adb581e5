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
