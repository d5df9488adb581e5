package proof_test

import (
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/proof"
)

func TestAHistoryOfManyHostsIsRightIfAnOrderExplainsIt(t *testing.T) {
	bind := func(id string, r proof.Result) proof.Op { return proof.Op{Kind: proof.List, ID: id, Result: r} }
	drop := func(kind proof.Kind, id string) proof.Op {
		return proof.Op{Kind: kind, ID: id, By: id, Result: proof.Done}
	}
	held := func(id, slot string) proof.Op {
		op := reserve(id, proof.Done)
		op.Pool, op.Slot = "p", slot
		return op
	}
	noSlot := proof.Op{Kind: proof.Reserve, ID: "-", Result: proof.No, Code: fleet.CodeSlotUnavailable, Pool: "p"}
	gone := proof.Op{Kind: proof.Exit, ID: "a", Pool: "p", Result: proof.Done}
	for name, c := range map[string]struct {
		ops  []proof.Op
		want bool
	}{
		"two reserve one tree":                        {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(3, 4, reserve("b", proof.Done))}, false},
		"the second after the grace":                  {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(3, 1000, reserve("b", proof.Done))}, true},
		"a lease that ends late":                      {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(2000, 2001, refused("a", fleet.CodeTreeReserved))}, true},
		"a member's tree after its grace":             {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(3, 4, bind("a", proof.Done)), at(3000, 3001, reserve("b", proof.Done))}, false},
		"bound after it was settled":                  {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(3, 4, drop(proof.Settle, "a")), at(5, 6, bind("a", proof.Done))}, false},
		"settled while it was bound":                  {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(3, 6, drop(proof.Settle, "a")), at(3, 6, bind("a", proof.Done)), at(7, 8, reserve("b", proof.Done))}, false},
		"vacated":                                     {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(3, 4, bind("a", proof.Done)), at(5, 6, drop(proof.Exit, "a")), at(7, 8, reserve("b", proof.Done))}, true},
		"bound, perhaps":                              {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(3, 4, bind("a", proof.Unknown)), at(2000, 2001, reserve("b", proof.Done))}, true},
		"admitted after its grace":                    {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(1000, 1001, spawn("a", proof.Done))}, false},
		"stale while it stands":                       {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(3, 4, spawn("a", proof.No))}, false},
		"refused by one that nobody reserved":         {[]proof.Op{at(1, 2, refused("a", fleet.CodeTreeReserved))}, false},
		"refused by one that was told no":             {[]proof.Op{at(1, 2, reserve("a", proof.No)), at(3, 4, refused("a", fleet.CodeTreeReserved))}, false},
		"refused by one of whom nobody knows":         {[]proof.Op{at(1, 2, reserve("a", proof.Unknown)), at(3, 4, refused("a", fleet.CodeTreeReserved))}, true},
		"a slot for two":                              {[]proof.Op{at(1, 2, held("a", "one")), at(1000, 1002, held("b", "one"))}, true},
		"a slot for two at a time":                    {[]proof.Op{at(1, 2, held("a", "one")), {Kind: proof.Reserve, Tree: "/b", ID: "b", Call: 3, Return: 4, Early: 1000, Result: proof.Done, Pool: "p", Slot: "one"}}, false},
		"no slot while one is free":                   {[]proof.Op{at(1, 2, held("a", "one")), at(3, 4, noSlot)}, false},
		"no slot while both are held":                 {[]proof.Op{at(1, 2, held("a", "one")), {Kind: proof.Reserve, Tree: "/b", ID: "b", Call: 1, Return: 2, Early: 1000, Result: proof.Done, Pool: "p", Slot: "two"}, at(3, 4, noSlot)}, true},
		"a slot of a member that went":                {[]proof.Op{at(1, 2, held("a", "one")), at(5, 6, gone), at(7, 8, held("b", "one"))}, true},
		"what stands at the end was dropped long ago": {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(3, 4, drop(proof.Release, "a")), at(9, 9, proof.Op{Kind: proof.Look, ID: "a", Result: proof.Done})}, false},
		"nothing stands where a member should":        {[]proof.Op{at(1, 2, reserve("a", proof.Done)), at(3, 4, bind("a", proof.Done)), at(2000, 2000, proof.Op{Kind: proof.Look, Result: proof.Done})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := proof.Cluster{Trees: []string{"/src/api", "/b"}, Slots: map[string][]string{"p": {"one", "two"}}, Ops: c.ops}
			if err := h.Check(time.Minute); (err == nil) != c.want {
				t.Errorf("Check = %v, want right: %t", err, c.want)
			}
		})
	}
}

func TestWhoComesLaterHasTheYoungerFence(t *testing.T) {
	stays := []proof.Stay{{Place: "/a", ID: "b", From: 5, To: 6}, {Place: "/a", ID: "a", From: 1, To: 2}, {Place: "/b", ID: "c", From: 7, To: 8}}
	if err := proof.Fenced(stays, map[string]int64{"a": 3, "b": 4, "c": 1}); err != nil {
		t.Error(err)
	}
	if err := proof.Fenced(stays, map[string]int64{"a": 4, "b": 3, "c": 1}); err == nil {
		t.Error("a fence that shrank was not seen")
	}
}
