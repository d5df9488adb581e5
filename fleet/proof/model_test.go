package proof_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/proof"
)

// at makes op one that took from call to back.
func at(call, back int64, op proof.Op) proof.Op {
	op.Tree, op.Call, op.Return = "/src/api", call, back
	if op.Kind == proof.Reserve && op.Early == 0 {
		op.Early, op.Late = 1000, 1000
	}
	return op
}

func reserve(id string, r proof.Result) proof.Op {
	return proof.Op{Kind: proof.Reserve, ID: id, Result: r}
}
func spawn(id string, r proof.Result) proof.Op {
	return proof.Op{Kind: proof.Spawn, ID: id, Result: r, Code: fleet.CodeReservationStale}
}
func list(id string) proof.Op { return proof.Op{Kind: proof.List, ID: id, Result: proof.Done} }
func exit(id string) proof.Op { return proof.Op{Kind: proof.Exit, ID: id, Result: proof.Done} }
func prune(dropped ...string) proof.Op {
	op := proof.Op{Kind: proof.Prune, Result: proof.Done}
	for _, id := range dropped {
		op.Dropped = append(op.Dropped, fleet.Pruned{Tree: "/src/api", ID: id})
	}
	return op
}
func refused(by string, code fleet.Code) proof.Op {
	return proof.Op{Kind: proof.Reserve, ID: "-", Result: proof.No, By: by, Code: code}
}

func TestHistoryIsRightIfAnOrderExplainsIt(t *testing.T) {
	for name, c := range map[string]struct {
		ops  []proof.Op
		want bool
	}{
		"two reserve one tree": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(3, 4, reserve("b", proof.Done)),
		}, false},
		"the second comes after the grace": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(900, 1001, reserve("b", proof.Done)),
		}, true},
		"the second is back before the grace is over": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(900, 999, reserve("b", proof.Done)),
		}, false},
		"refused by one that came later": {[]proof.Op{
			at(1, 2, refused("a", fleet.CodeTreeReserved)), at(3, 4, reserve("a", proof.Done)),
		}, false},
		"refused by one that was over": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(1001, 1002, refused("a", fleet.CodeTreeReserved)),
		}, false},
		"refused by one at the same time": {[]proof.Op{
			at(1, 4, refused("a", fleet.CodeTreeReserved)), at(3, 5, reserve("a", proof.Done)),
		}, true},
		"killed, and it had reserved": {[]proof.Op{
			at(1, 2, reserve("a", proof.Unknown)), at(3, 4, refused("a", fleet.CodeTreeReserved)),
		}, true},
		"killed, and it had not": {[]proof.Op{
			at(1, 2, reserve("a", proof.Unknown)), at(3, 4, reserve("b", proof.Done)),
		}, true},
		"a pending one is pruned": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(3, 4, prune("a")),
		}, false},
		"one that is over is pruned": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(999, 1000, prune("a")),
		}, true},
		"a listed one is pruned": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(3, 4, spawn("a", proof.Done)), at(5, 6, list("a")), at(7, 8, prune("a")),
		}, true},
		"a prune keeps what is over": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(1001, 1002, prune()),
		}, false},
		"admitted after its reservation was dropped": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(3, 4, proof.Op{Kind: proof.Settle, ID: "a", Result: proof.Done}), at(5, 6, spawn("a", proof.Done)),
		}, false},
		"admitted after its grace": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(1001, 1002, spawn("a", proof.Done)),
		}, false},
		"stale while it stands": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(3, 4, spawn("a", proof.No)),
		}, false},
		"listed after its grace": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(3, 4, spawn("a", proof.Done)), at(1001, 1002, list("a")),
		}, false},
		"reserved while a member is there": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(3, 4, spawn("a", proof.Done)), at(5, 6, list("a")), at(7, 8, reserve("b", proof.Done)),
		}, false},
		"reserved over the entry of one that was listed and left": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(3, 4, spawn("a", proof.Done)), at(5, 6, list("a")), at(7, 8, exit("a")), at(9, 10, reserve("b", proof.Done)),
		}, true},
		"a late release drops another's": {[]proof.Op{
			at(1, 2, reserve("b", proof.Done)), at(3, 4, proof.Op{Kind: proof.Release, ID: "a", Result: proof.Done, By: "b"}),
		}, false},
		"what stands at the end is what was reserved": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(3, 3, proof.Op{Kind: proof.Look, ID: "a", Result: proof.Done}),
		}, true},
		"a reservation was erased": {[]proof.Op{
			at(1, 2, reserve("a", proof.Done)), at(3, 3, proof.Op{Kind: proof.Look, Result: proof.Done}),
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := proof.Window{Trees: map[string]proof.Tree{"/src/api": {}}, Ops: c.ops}
			err := w.Check(time.Minute)
			var v *proof.Violation
			if got := err == nil; got != c.want || !got && !errors.As(err, &v) {
				t.Fatalf("Check = %v, want right: %t", err, c.want)
			}
			if v != nil {
				if err := v.Draw(filepath.Join(t.TempDir(), "history.html")); err != nil {
					t.Errorf("Draw: %v", err)
				}
			}
		})
	}
}

func TestASlotIsHeldByOne(t *testing.T) {
	took := func(call, back int64, id, slot string) proof.Op {
		return proof.Op{Kind: proof.Spawn, ID: id, Call: call, Return: back, Result: proof.Done, Pool: "p", Slot: slot}
	}
	left := func(call, back int64, id string) proof.Op {
		return proof.Op{Kind: proof.Exit, ID: id, Call: call, Return: back, Result: proof.Done, Pool: "p"}
	}
	none := func(call, back int64) proof.Op {
		return proof.Op{Kind: proof.Spawn, ID: "x", Call: call, Return: back, Result: proof.No, Code: fleet.CodeSlotUnavailable, Pool: "p"}
	}
	for name, c := range map[string]struct {
		ops  []proof.Op
		want bool
	}{
		"two slots for two":             {[]proof.Op{took(1, 2, "a", "one"), took(3, 4, "b", "two"), none(5, 6)}, true},
		"one slot for two":              {[]proof.Op{took(1, 2, "a", "one"), took(3, 4, "b", "one")}, false},
		"one slot for two in turn":      {[]proof.Op{took(1, 2, "a", "one"), left(3, 4, "a"), took(5, 6, "b", "one")}, true},
		"refused while one is free":     {[]proof.Op{took(1, 2, "a", "one"), none(3, 4)}, false},
		"refused after one was freed":   {[]proof.Op{took(1, 2, "a", "one"), took(1, 2, "b", "two"), left(3, 4, "a"), none(5, 6)}, false},
		"refused while one is freed":    {[]proof.Op{took(1, 2, "a", "one"), took(1, 2, "b", "two"), left(3, 6, "a"), none(5, 7)}, true},
		"taken by one who was killed":   {[]proof.Op{{Kind: proof.Spawn, ID: "a", Call: 1, Return: 2, Pool: "p"}, took(3, 4, "b", "two"), none(5, 6)}, true},
		"a slot that there is not":      {[]proof.Op{took(1, 2, "a", "three")}, false},
		"listed on a slot of another's": {[]proof.Op{took(1, 2, "a", "one"), {Kind: proof.List, ID: "b", Call: 3, Return: 4, Result: proof.Done, Pool: "p", Slot: "one"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := proof.Window{Pools: map[string]proof.Pool{"p": {}}, Slots: map[string][]string{"p": {"one", "two"}}, Ops: c.ops}
			if err := w.Check(time.Minute); (err == nil) != c.want {
				t.Errorf("Check = %v, want right: %t", err, c.want)
			}
		})
	}
}

func TestTwoAtATimeInOnePlaceAreSeen(t *testing.T) {
	a, b := proof.Stay{Place: "/src/api", ID: "a", From: 1, To: 5}, proof.Stay{Place: "/src/api", ID: "b", From: 5, To: 9}
	if err := proof.Alone([]proof.Stay{b, a, {Place: "/src/web", ID: "c", From: 2, To: 8}}); err != nil {
		t.Errorf("one after the other: %v", err)
	}
	b.From = 4
	if err := proof.Alone([]proof.Stay{b, a}); err == nil {
		t.Error("two at a time in /src/api were not seen")
	}
	inner := proof.Stay{Place: "/src/api", ID: "d", From: 7, To: 8}
	if err := proof.Alone([]proof.Stay{{Place: "/src/api", ID: "a", From: 1, To: 9}, {Place: "/src/api", ID: "a", From: 2, To: 3}, inner}); err == nil {
		t.Error("one within the stay of another was not seen")
	}
}
