package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/ledger/ledgertest"
)

func TestTheClusterIsALedger(t *testing.T) {
	t.Parallel()
	etcd := oneNode(t)
	ledgertest.Run(t, func(t *testing.T) (ledger.Ledger, string) {
		l := open(t, etcd.Endpoints())
		return l, strings.Join(l.Endpoints, ",") + " " + l.Fleet
	})
}

func TestOneNode(t *testing.T) {
	etcd := oneNode(t)
	for name, test := range map[string]func(*testing.T, *Ledger){
		"a slot is held once, however many hosts ask":               slotsAreHeldOnce,
		"tree and slot come and go together":                        treeAndSlotTogether,
		"a slot is kept by its member, and given back with its end": slotOfAMember,
		"what an ended member still holds is waited for":            endedMember,
		"a member's tree is taken whatever a roster says":           memberWithoutRoster,
		"a host with another slot table is refused, and told":       otherTable,
		"nobody is sent to a host whose daemon is not there":        noDaemon,
		"what changed since the look decides":                       changedSinceTheLook,
		"one node has one daemon":                                   oneDaemon,
		"fences only grow":                                          fencesGrow,
		"a launch whose reservation was released is not bound":      releasedLaunch,
		"a settle that meets a bind leaves the member its tree":     settleAgainstBind,
		"what a revoked lease would write never comes":              revokedNeverComes,
		"a watch goes on behind a compaction":                       compacted,
		"what a member holds is held and bound":                     heldAndBound,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, etcd.Endpoints()))
		})
	}
}

func slotsAreHeldOnce(t *testing.T, l *Ledger) {
	var racing sync.WaitGroup
	var mu sync.Mutex // guards got
	var got []string
	for i := range 8 {
		host := l.again(t)
		racing.Go(func() {
			e, err := host.Reserve(t.Context(), window, architect("/src/tree"+string(rune('a'+i))), nobody)
			switch {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				got = append(got, e.Slot)
			case codeOf(err) != fleet.CodeSlotUnavailable:
				t.Errorf("reserve: %v", err)
			}
		})
	}
	racing.Wait()
	slices.Sort(got)
	if want := []string{"architect-1", "architect-2"}; !slices.Equal(got, want) {
		t.Errorf("slots held: %v, want %v", got, want)
	}
}

func treeAndSlotTogether(t *testing.T, l *Ledger) {
	reserve(t, l, draft("/src/api"))
	if _, err := l.Reserve(t.Context(), window, architect("/src/api"), nobody); codeOf(err) != fleet.CodeTreeReserved {
		t.Errorf("reserve a taken tree: %v, want %s", err, fleet.CodeTreeReserved)
	}
	d := architect("/src/web")
	d.Grace = 2 * time.Second
	reserve(t, l, d)
	last := reserve(t, l, architect("/src/doc")) // it took no slot in vain
	if _, err := l.Reserve(t.Context(), window, architect("/src/new"), nobody); codeOf(err) != fleet.CodeSlotUnavailable {
		t.Errorf("reserve a third: %v, want %s", err, fleet.CodeSlotUnavailable)
	}
	var next fleet.Entry
	await(t, "the grace is over, and its slot free", func() bool {
		var err error
		next, err = l.Reserve(t.Context(), window, architect("/src/new"), nobody)
		return err == nil
	})
	if next.Slot == last.Slot {
		t.Errorf("%s was given away while it was held", last.Slot)
	}
	reserve(t, l, draft("/src/web"))
	d = architect("/src/x")
	d.Profile = "claude"
	if _, err := l.Reserve(t.Context(), window, d, nobody); codeOf(err) != fleet.CodeSlotUnconfigured {
		t.Errorf("reserve on a profile without slots: %v, want %s", err, fleet.CodeSlotUnconfigured)
	}
}

func slotOfAMember(t *testing.T, l *Ledger) {
	one := reserve(t, l, architect("/src/one"))
	bind(t, l, one)
	if err := l.Settle(t.Context(), window, one.ID); err != nil {
		t.Fatal(err)
	}
	two := reserve(t, l, architect("/src/two"))
	if two.Slot == one.Slot {
		t.Errorf("both have %s", one.Slot)
	}
	if err := l.Vacate(t.Context(), window, one.ID); err != nil {
		t.Fatal(err)
	}
	if three := reserve(t, l, architect("/src/one")); three.Slot != one.Slot {
		t.Errorf("the slot that became free is %s, and %s was given", one.Slot, three.Slot)
	}
}

func memberWithoutRoster(t *testing.T, l *Ledger) {
	e := reserve(t, l, draft("/src/api"))
	bind(t, l, e)
	if _, err := l.Reserve(t.Context(), window, draft("/src/api"), nobody); codeOf(err) != fleet.CodeTreeOccupied {
		t.Errorf("reserve: %v, want %s", err, fleet.CodeTreeOccupied)
	}
	if err := l.Admit(t.Context(), window, "/src/api", e.ID, func(fleet.Entry) error { return errors.New("admitted") }); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("admit a member again: %v, want %s", err, fleet.CodeReservationStale)
	}
}

func otherTable(t *testing.T, l *Ledger) {
	other := l.again(t, func(o *Options) { o.Slots = twoArchitects[:1] })
	_, err := other.Reserve(t.Context(), window, draft("/src/api"), nobody)
	if codeOf(err) != fleet.CodeSlotsDiffer || !strings.Contains(err.Error(), l.table()) || !strings.Contains(err.Error(), other.table()) {
		t.Errorf("reserve: %v, want %s and both tables", err, fleet.CodeSlotsDiffer)
	}
	if _, err := other.appear(t.Context(), Presence{Daemon: "one"}); codeOf(err) != fleet.CodeSlotsDiffer {
		t.Errorf("appear: %v, want %s", err, fleet.CodeSlotsDiffer)
	}
	// The order of the table is nobody's concern.
	same := l.again(t, func(o *Options) { o.Slots = []fleet.Slot{twoArchitects[1], twoArchitects[0]} })
	reserve(t, same, architect("/src/api"))
}

func noDaemon(t *testing.T, l *Ledger) {
	other := l.again(t, func(o *Options) { o.Node = "crane" })
	within := 100 * time.Millisecond // in which a busy machine may get no answer at all
	await(t, "it is refused for want of its daemon", func() bool {
		within *= 2
		e, err := other.Reserve(t.Context(), within, draft("/src/api"), nobody)
		if err == nil {
			t.Fatalf("reserved %+v on a host whose daemon is not there", e)
		}
		return codeOf(err) == fleet.CodeDaemonUnreachable
	})
	attend(t, other, "two")
	reserve(t, other, draft("/src/api"))
	reserve(t, l, draft("/src/api")) // the same path on another host is another tree
}

// What the transaction finds is what counts, not what was seen before it.
func changedSinceTheLook(t *testing.T, l *Ledger) {
	c, err := l.client()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change clientv3.Op
		want   fleet.Code
	}{
		{"the slot table", clientv3.OpPut(l.keys.slots(), "[]"), fleet.CodeSlotsDiffer},
		{"the table again, and the node", clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(l.keys.slots(), l.table()), clientv3.OpDelete(l.keys.here())}, nil), fleet.CodeDaemonUnreachable},
	} {
		w, err := l.want(draft("/src/api"))
		if err != nil {
			t.Fatal(err)
		}
		seen, err := w.look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do(t.Context(), tt.change); err != nil {
			t.Fatal(err)
		}
		if tt.want == fleet.CodeDaemonUnreachable { // seen while its table was the other one
			if seen, err = w.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			seen.Responses[1].GetResponseRange().Count = 1
		}
		var e fleet.Entry
		for within := 250 * time.Millisecond; within < patient; within *= 2 { // a busy machine may need more
			ctx, cancel := context.WithTimeout(t.Context(), within)
			e, err = l.take(ctx, w, seen)
			cancel()
			if codeOf(err) != fleet.CodeClusterUnreachable {
				break
			}
		}
		if codeOf(err) != tt.want {
			t.Errorf("%s changed: %+v, %v, want %s", tt.name, e, err, tt.want)
		}
	}
}

func oneDaemon(t *testing.T, l *Ledger) {
	if err := l.again(t).Join(t.Context(), Presence{Daemon: "two"}); !errors.Is(err, errTwice) {
		t.Errorf("join as another daemon: %v, want %v", err, errTwice)
	}
	if err := l.again(t).Join(t.Context(), Presence{Daemon: "one"}); err != nil {
		t.Errorf("join again: %v", err)
	}
}

func fencesGrow(t *testing.T, l *Ledger) {
	last := int64(0)
	for range 3 {
		e := reserve(t, l, draft("/src/api"))
		fence := l.fence(t, e.ID)
		if fence <= last {
			t.Errorf("fence %d after %d", fence, last)
		}
		last = fence
		bind(t, l, e)
		if now := l.fence(t, e.ID); now != fence {
			t.Errorf("the fence became %d, and was %d", now, fence)
		}
		if err := l.Vacate(t.Context(), window, e.ID); err != nil {
			t.Fatal(err)
		}
	}
}

func releasedLaunch(t *testing.T, l *Ledger) {
	e := reserve(t, l, draft("/src/api"))
	if err := l.Admit(t.Context(), window, e.Tree, e.ID, func(fleet.Entry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := l.again(t).Release(t.Context(), window, e.Tree, e.ID); !ok || err != nil {
		t.Fatalf("release: %t, %v", ok, err)
	}
	winner := reserve(t, l, draft("/src/api"))
	if err := l.Bind(t.Context(), e.ID, "M"+e.ID); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("bind: %v, want %s", err, fleet.CodeReservationStale)
	}
	bind(t, l, winner)
}

// Both look first and change then: whoever is second must see that.
func settleAgainstBind(t *testing.T, l *Ledger) {
	for range 10 {
		e := reserve(t, l, draft("/src/api"))
		var both sync.WaitGroup
		var bound, settled error
		both.Go(func() { bound = l.Bind(t.Context(), e.ID, "M"+e.ID) })
		both.Go(func() { settled = l.again(t).Settle(t.Context(), window, e.ID) })
		both.Wait()
		h, err := l.find(t.Context(), e.ID)
		if err != nil || settled != nil || (bound == nil) != (h != nil && h.State == member) {
			t.Fatalf("bind: %v, settle: %v; there stands %+v, %v", bound, settled, h, err)
		}
		if err := l.Vacate(t.Context(), window, e.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// The request that was given up is sent again here, after its author was told no.
func revokedNeverComes(t *testing.T, l *Ledger) {
	w, err := l.want(draft("/src/api"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.client()
	if err != nil {
		t.Fatal(err)
	}
	lease, err := c.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	table, err := l.get(t, l.keys.slots())
	if err != nil {
		t.Fatal(err)
	}
	conds, then, err := w.change(ready{table: table.Kvs[0].ModRevision}, &w.hold, lease.ID)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := l.wasHeld(t.Context(), &w.hold, lease.ID); held || err != nil {
		t.Fatalf("was held: %t, %v, want neither", held, err)
	}
	if res, err := l.txn(t.Context(), conds, then, nil); !noLease(err) {
		t.Errorf("the late request: %+v, %v, want none", res, err)
	}
	reserve(t, l, draft("/src/api"))
}

func compacted(t *testing.T, l *Ledger) {
	e := reserve(t, l, draft("/src/api"))
	prefix := l.keys.holds()
	from, err := l.list(t.Context(), prefix, nothing)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Settle(t.Context(), window, e.ID); err != nil {
		t.Fatal(err)
	}
	now, err := l.list(t.Context(), prefix, nothing)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if next := l.follow(t.Context(), below(prefix), from, func([]*clientv3.Event) {}); next != 0 {
		t.Errorf("a watch from a revision that is gone goes on from %d, want 0: list again", next)
	}
}

func heldAndBound(t *testing.T, l *Ledger) {
	one, two := reserve(t, l, draft("/src/one")), reserve(t, l, draft("/src/two"))
	bind(t, l, one)
	held, err := l.Held(t.Context())
	if bound, stands := held[two.ID]; err != nil || len(held) != 2 || !held[one.ID] || bound || !stands {
		t.Errorf("held are %v, %v, want %s bound and %s not", held, err, one.ID, two.ID)
	}
	left, err := l.get(t, l.keys.hold(one.ID))
	if err != nil || len(left.Kvs) != 1 || left.Kvs[0].Lease != int64(clientv3.NoLease) {
		t.Errorf("the member's hold: %+v, %v, want one without a lease", left, err)
	}
}

func TestAClusterThatIsAwayRefusesWithinTheWindowAndNamesItsEndpoints(t *testing.T) {
	t.Parallel()
	etcd := oneNode(t)
	l := open(t, etcd.Endpoints())
	etcd.Kill(0)
	asked := false
	_, err := l.Reserve(t.Context(), 500*time.Millisecond, draft("/src/api"), func(context.Context) (fleet.Roster, error) { asked = true; return fleet.Roster{}, nil })
	if codeOf(err) != fleet.CodeClusterUnreachable || !strings.Contains(err.Error(), l.Endpoints[0]) || asked {
		t.Errorf("reserve: %v, roster asked %t, want %s that names %s", err, asked, fleet.CodeClusterUnreachable, l.Endpoints[0])
	}
	if _, err := l.Read(); codeOf(err) != fleet.CodeClusterUnreachable {
		t.Errorf("read: %v, want %s, never an empty fleet", err, fleet.CodeClusterUnreachable)
	}
	patient, cancel := context.WithTimeout(t.Context(), 5*time.Second) // as its sender may be for the answer
	defer cancel()
	out, err := l.Send(patient, 500*time.Millisecond, "crane", order("/src/api"))
	if codeOf(err) != fleet.CodeClusterUnreachable || out.Code != fleet.CodeClusterUnreachable || patient.Err() != nil {
		t.Errorf("send: %+v, %v (%v), want %s within the window", out, err, patient.Err(), fleet.CodeClusterUnreachable)
	}
	etcd.Run(0)
	reserve(t, l, draft("/src/api"))
}

// Its daemon gives it back a moment after it tells of the end.
func endedMember(t *testing.T, l *Ledger) {
	mine := reserve(t, l, architect("/src/api"))
	bind(t, l, mine)
	ended := fleet.Roster{Members: []fleet.Member{{ID: "M" + mine.ID, Tree: "/src/api", Reservation: mine.ID, State: fleet.StateExited}}}
	seen := func(context.Context) (fleet.Roster, error) { return ended, nil } // asked once etcd was
	for _, d := range []ledger.Draft{architect("/src/api"), draft("/src/api")} {
		if _, err := l.Reserve(t.Context(), 300*time.Millisecond, d, seen); codeOf(err) != fleet.CodeTreeOccupied {
			t.Errorf("while it is held: %v, want %s", err, fleet.CodeTreeOccupied)
		}
	}
	other := reserve(t, l, architect("/src/other"))
	if _, err := l.Reserve(t.Context(), 300*time.Millisecond, architect("/src/web"), seen); codeOf(err) != fleet.CodeSlotUnavailable {
		t.Errorf("while its slot is held: %v, want %s", err, fleet.CodeSlotUnavailable)
	}
	givesBack := func(context.Context) (fleet.Roster, error) {
		go l.Vacate(context.WithoutCancel(t.Context()), window, mine.ID)
		return ended, nil
	}
	e, err := l.Reserve(t.Context(), window, architect("/src/web"), givesBack)
	if err != nil || e.Slot != mine.Slot || e.Slot == other.Slot {
		t.Fatalf("once its slot is given back: %+v, %v", e, err)
	}
	bind(t, l, e)
	ended.Members[0].Reservation, mine = e.ID, e
	if e, err := l.Reserve(t.Context(), window, draft("/src/web"), givesBack); err != nil {
		t.Errorf("once its tree is given back: %+v, %v", e, err)
	}
}
