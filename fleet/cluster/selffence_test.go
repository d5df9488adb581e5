package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
)

func unfenced(context.Context) error { return errors.New("it is fenced already") }

// leaseOf is the lease of all keys of the hold id, or an error of the test.
func (l *Ledger) leaseOf(t *testing.T, id string) clientv3.LeaseID {
	t.Helper()
	h, err := l.find(t.Context(), id)
	if err != nil || h == nil {
		t.Fatalf("find %s: %+v, %v", id, h, err)
	}
	for _, name := range l.keys.names(h) {
		if res, err := l.get(t, name); err != nil || len(res.Kvs) != 1 || clientv3.LeaseID(res.Kvs[0].Lease) != h.lease {
			t.Errorf("%s: %+v, %v, want it on lease %d", name, res, err, h.lease)
		}
	}
	return h.lease
}

// TestWhatAFencedMemberHoldsIsGivenAwayOnlyAfterTheLeaseThatWasRenewedLast lets a lease end.
func TestWhatAFencedMemberHoldsIsGivenAwayOnlyAfterTheLeaseThatWasRenewedLast(t *testing.T) {
	t.Parallel()
	kite := open(t, oneNode(t).Endpoints())
	crane := kite.again(t, func(o *Options) { o.Node = "crane" })
	attend(t, crane, "two")
	c, other := aMember(t, kite, "/src/api"), aMember(t, kite, "/src/web")
	fenced := 0
	fence := func(context.Context) error {
		if fenced++; kite.leaseOf(t, c.ID) != clientv3.NoLease {
			t.Error("it was on a lease before it was fenced")
		}
		return nil
	}
	if err := kite.Renew(t.Context(), c.ID, fence); err != nil || fenced != 1 {
		t.Fatalf("renew: %v, fenced %d times, want once", err, fenced)
	}
	lease := kite.leaseOf(t, c.ID)
	if lease == clientv3.NoLease {
		t.Fatal("it is on no lease")
	}
	await(t, "some of the lease is over", func() bool {
		left, err := kite.remaining(t, lease)
		return err == nil && left < fleet.FenceLease-time.Second
	})
	renewed := time.Now()
	if err := kite.Renew(t.Context(), c.ID, unfenced); err != nil || kite.leaseOf(t, c.ID) != lease {
		t.Fatalf("renew again: %v", err)
	}
	if _, err := crane.Reserve(t.Context(), window, architect("/src/there"), nobody); codeOf(err) != fleet.CodeSlotUnavailable {
		t.Errorf("reserve: %v, want both slots taken", err)
	}
	await(t, "the slot is free", func() bool {
		_, err := crane.Reserve(t.Context(), window, architect("/src/there"), nobody)
		return err == nil
	})
	if since := time.Since(renewed); since < fleet.FenceLease {
		t.Errorf("the slot was given away after %s, want %s or more", since, fleet.FenceLease)
	}
	if err := kite.Renew(t.Context(), c.ID, unfenced); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("renew what is gone: %v, want %s", err, fleet.CodeReservationStale)
	}
	if kite.leaseOf(t, other.ID) != clientv3.NoLease {
		t.Error("a member that nobody fenced is on a lease")
	}
	retaken, err := kite.Retake(t.Context(), []ledger.Claim{c})
	if err != nil || len(retaken) != 1 || codeOf(retaken[0].Err) != fleet.CodeSlotUnavailable {
		t.Errorf("retaken %+v, %v, want that its slot is another's", retaken, err)
	}
}

func (l *Ledger) remaining(t *testing.T, lease clientv3.LeaseID) (time.Duration, error) {
	t.Helper()
	left, err := l.left(t.Context(), &hold{lease: lease})
	return left.least, err
}

func TestWhatCannotBeFencedIsPutOnNoLease(t *testing.T) {
	l := open(t, oneNode(t).Endpoints())
	c := aMember(t, l, "/src/api")
	no := errors.New("its holder is of an older version")
	if err := l.Renew(t.Context(), c.ID, func(context.Context) error { return no }); !errors.Is(err, no) {
		t.Errorf("renew: %v, want %v", err, no)
	}
	// It changes between the look and the lease: nothing of another's is put on it.
	err := l.Renew(t.Context(), c.ID, func(ctx context.Context) error {
		return l.Vacate(ctx, window, c.ID)
	})
	if err == nil {
		t.Error("what was vacated meanwhile was renewed")
	}
	if h, err := l.find(t.Context(), c.ID); h != nil || err != nil {
		t.Errorf("it holds %+v, %v, want nothing", h, err)
	}
	e := reserve(t, l, architect("/src/web"))
	if err := l.Renew(t.Context(), e.ID, unfenced); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("renew a reservation: %v, want %s", err, fleet.CodeReservationStale)
	}
}

// TestAFencedMembersHoldIsGivenBackWhole vacates it: no key of it waits for its lease.
func TestAFencedMembersHoldIsGivenBackWhole(t *testing.T) {
	l := open(t, oneNode(t).Endpoints())
	c := aMember(t, l, "/src/api")
	if err := l.Renew(t.Context(), c.ID, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	vacate(t, l, c.ID)
	if e := reserve(t, l, architect("/src/api")); e.Slot != c.Slot {
		t.Errorf("reserved %+v, want its slot", e)
	}
}

func TestAHostWithAFencedMemberDoesNotLeaveTheCluster(t *testing.T) {
	l := open(t, oneNode(t).Endpoints())
	c := aMember(t, l, "/src/api")
	if _, _, err := l.Leaving(t.Context(), window, false); err != nil {
		t.Errorf("leaving with a member that is not fenced: %v", err)
	}
	if err := l.Renew(t.Context(), c.ID, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Leaving(t.Context(), window, false); codeOf(err) != fleet.CodeBadRequest {
		t.Errorf("leaving with a fenced member: %v, want %s", err, fleet.CodeBadRequest)
	}
}
