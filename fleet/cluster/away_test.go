package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
)

// comeAndGo is a host whose daemon can be away.
func comeAndGo(t *testing.T, l *Ledger) (come, leave func()) {
	t.Helper()
	var cancel context.CancelFunc
	gone := make(chan struct{})
	come = func() {
		var ctx context.Context
		ctx, cancel = context.WithCancel(context.WithoutCancel(t.Context()))
		gone = make(chan struct{})
		go func() {
			defer close(gone)
			l.Attend(ctx, Presence{Daemon: l.Node, Host: l.Node}, func(error) {})
		}()
		await(t, l.Node+" is present", func() bool {
			res, err := l.get(t, l.keys.here())
			return err == nil && len(res.Kvs) == 1
		})
	}
	leave = func() {
		if cancel != nil {
			cancel()
			<-gone
			cancel = nil
		}
	}
	t.Cleanup(leave)
	return come, leave
}

// loseCrane has crane hold n trees, the first with a slot, publish its members, and go.
func loseCrane(t *testing.T, kite *Ledger, n int) (crane *Ledger, come func()) {
	t.Helper()
	crane = kite.again(t, func(o *Options) { o.Node = "crane" })
	come, leave := comeAndGo(t, crane)
	come()
	var members []fleet.Member
	for i := range n {
		d := draft(fmt.Sprintf("/src/%03d", i))
		d.Tree.File = fleet.FileID(fmt.Sprintf("8:%d", i))
		if i == 0 {
			d.Role = "architect"
		}
		e := reserve(t, crane, d)
		bind(t, crane, e)
		members = append(members, fleet.Member{ID: fmt.Sprintf("M%03d", i), Tree: e.Tree, Reservation: e.ID})
	}
	if err := crane.Publish(t.Context(), members); err != nil {
		t.Fatal(err)
	}
	leave()
	return crane, come
}

func TestALostHostsHoldsGoTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	kite := open(t, oneNode(t).Endpoints())
	const n = 40 // more keys than one transaction takes one by one
	crane, come := loseCrane(t, kite, n)
	loss, err := kite.Lost(t.Context(), window, "crane")
	if err != nil || len(loss.Members) != n || len(loss.Held) != n {
		t.Fatalf("lost: %d members, %d trees, %v, want %d each", len(loss.Members), len(loss.Held), err, n)
	}

	come()
	if err := kite.ReleaseLost(t.Context(), window, loss); codeOf(err) != fleet.CodeNodePresent {
		t.Errorf("release of a host that came back: %v, want %s", err, fleet.CodeNodePresent)
	}
	if _, err := kite.Lost(t.Context(), window, "crane"); codeOf(err) != fleet.CodeNodePresent {
		t.Errorf("lost, of a host that is present: %v, want %s", err, fleet.CodeNodePresent)
	}
	if now := kite.count(t, crane.keys.holds()); now != n {
		t.Fatalf("it holds %d, want all %d", now, n)
	}

	kite = open(t, kite.Endpoints)
	held := reserve(t, kite, draft("/src/api"))
	crane, _ = loseCrane(t, kite, n)
	if loss, err = kite.Lost(t.Context(), window, "crane"); err != nil {
		t.Fatal(err)
	}
	vacate(t, crane, loss.Held[1].ID)
	if err := kite.ReleaseLost(t.Context(), window, loss); err != nil {
		t.Errorf("release of what is less by now: %v", err)
	}
	for _, prefix := range []string{crane.keys.holds(), crane.keys.members("crane"), crane.keys.treesHere(), crane.keys.dirsHere(), crane.keys.allSlots()} {
		if n := kite.count(t, prefix); n != 0 {
			t.Errorf("%d keys are left below %s", n, prefix)
		}
	}
	if err := kite.ReleaseLost(t.Context(), window, loss); err != nil {
		t.Errorf("release once more: %v", err)
	}
	if _, err := kite.Lost(t.Context(), window, "crane"); codeOf(err) != fleet.CodeNotFound {
		t.Errorf("lost, of a host that nobody knows: %v, want %s", err, fleet.CodeNotFound)
	}
	if h, err := kite.find(t.Context(), held.ID); h == nil || err != nil {
		t.Errorf("what this host holds is %+v, %v, want it untouched", h, err)
	}
}

// TestWhatALostHostHoldsByNowIsNotDroppedByAnEarlierLook has its daemon hold one tree more before it is present again.
func TestWhatALostHostHoldsByNowIsNotDroppedByAnEarlierLook(t *testing.T) {
	kite := open(t, oneNode(t).Endpoints())
	crane, _ := loseCrane(t, kite, 2)
	loss, err := kite.Lost(t.Context(), window, "crane")
	if err != nil {
		t.Fatal(err)
	}
	more := ledger.Claim{ID: "more", Member: "M", Trees: []fleet.Tree{{Path: "/src/more"}}, Role: fleet.RoleDev, Profile: "shell"}
	if retaken, err := crane.Retake(t.Context(), []ledger.Claim{more}); err != nil || len(retaken) != 1 || retaken[0].Err != nil {
		t.Fatalf("retaken %+v, %v, want what its member holds", retaken, err)
	}
	if err := kite.ReleaseLost(t.Context(), window, loss); codeOf(err) != fleet.CodeNodePresent || !strings.Contains(err.Error(), "nothing was dropped") {
		t.Errorf("release of what is more by now: %v, want %s, and that nothing was dropped", err, fleet.CodeNodePresent)
	}
	if n := kite.count(t, crane.keys.holds()); n != 3 {
		t.Errorf("it holds %d, want all 3", n)
	}
}
