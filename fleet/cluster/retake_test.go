package cluster

import (
	"context"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
)

// write makes changes in etcd as nobody but an operator, or a back-up, would.
func (l *Ledger) write(t *testing.T, ops ...clientv3.Op) {
	t.Helper()
	if _, err := l.txn(t.Context(), nil, ops, nil); err != nil {
		t.Fatal(err)
	}
}

// aMember binds a reservation of tree as an architect, and gives what its daemon knows of it.
func aMember(t *testing.T, l *Ledger, tree string) ledger.Claim {
	t.Helper()
	d := architect(tree)
	d.Tree.File = "8:" + fleet.FileID(strings.TrimPrefix(tree, "/"))
	e := reserve(t, l, d)
	bind(t, l, e)
	return ledger.Claim{ID: e.ID, Trees: []fleet.Tree{d.Tree}, Role: "architect", Profile: "shell", Slot: e.Slot}
}

func TestWhatAMemberHoldsIsRetakenWholeOrNotAtAll(t *testing.T) {
	etcd := oneNode(t)
	for _, tt := range []struct {
		name   string
		lose   func(t *testing.T, kite, crane *Ledger, c ledger.Claim)
		silent bool // nothing is to be retaken
		want   fleet.Code
	}{
		{"nothing is lost", func(*testing.T, *Ledger, *Ledger, ledger.Claim) {}, true, ""},
		{"all of the fleet is lost", func(t *testing.T, kite, _ *Ledger, _ ledger.Claim) {
			kite.write(t, clientv3.OpDelete(kite.keys.root(), clientv3.WithPrefix()))
		}, false, ""},
		{"what stands is from before it was bound", func(t *testing.T, kite, _ *Ledger, c ledger.Claim) {
			h, err := kite.find(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			client, err := kite.client()
			if err != nil {
				t.Fatal(err)
			}
			lease, err := client.Grant(t.Context(), minLease)
			if err != nil {
				t.Fatal(err)
			}
			h.State = launching
			puts, err := kite.keys.puts(h, lease.ID)
			if err != nil {
				t.Fatal(err)
			}
			kite.write(t, puts...)
		}, false, ""},
		{"its slot's key is lost by itself", func(t *testing.T, kite, _ *Ledger, c ledger.Claim) {
			kite.write(t, clientv3.OpDelete(kite.keys.slot(c.Role, c.Profile, c.Slot)))
		}, false, ""},
		{"its tree's key is lost by itself", func(t *testing.T, kite, _ *Ledger, c ledger.Claim) {
			kite.write(t, clientv3.OpDelete(kite.keys.tree(c.Trees[0].Path)))
		}, false, ""},
		{"its slot is another host's by now", func(t *testing.T, kite, crane *Ledger, c ledger.Claim) {
			vacate(t, kite, c.ID)
			aMember(t, crane, "/src/there")
		}, false, fleet.CodeSlotUnavailable},
		{"its tree is another's by now", func(t *testing.T, kite, _ *Ledger, c ledger.Claim) {
			vacate(t, kite, c.ID)
			reserve(t, kite, draft(c.Trees[0].Path))
		}, false, fleet.CodeTreeOccupied},
		{"its directory is another's by now, under another path", func(t *testing.T, kite, _ *Ledger, c ledger.Claim) {
			vacate(t, kite, c.ID)
			d := draft("/mnt/api")
			d.Tree.File = c.Trees[0].File
			reserve(t, kite, d)
		}, false, fleet.CodeTreeOccupied},
		{"its slot is in the table no more", func(t *testing.T, kite, _ *Ledger, c ledger.Claim) {
			vacate(t, kite, c.ID)
			kite.write(t, clientv3.OpPut(kite.keys.slots(), "[]"))
		}, false, fleet.CodeSlotUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kite := open(t, etcd.Endpoints())
			crane := kite.again(t, func(o *Options) { o.Node = "crane" })
			attend(t, crane, "two")
			c := aMember(t, kite, "/src/api")
			tt.lose(t, kite, crane, c)
			retaken, err := kite.Retake(t.Context(), []ledger.Claim{c})
			switch {
			case err != nil:
				t.Fatal(err)
			case tt.silent:
				if len(retaken) != 0 {
					t.Errorf("retaken %+v, want nothing", retaken)
				}
			case len(retaken) != 1 || retaken[0].ID != c.ID || codeOf(retaken[0].Err) != tt.want:
				t.Fatalf("retaken %+v, want %s with %q", retaken, c.ID, tt.want)
			}
			h, err := kite.find(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want != "" {
				if h != nil {
					t.Errorf("it holds %+v, want nothing of it", h)
				}
				return
			}
			if h == nil || h.State != member || h.lease != 0 {
				t.Fatalf("it holds %+v, want a member's hold without a lease", h)
			}
			for _, name := range kite.keys.names(h) {
				if res, err := kite.get(t, name); err != nil || len(res.Kvs) != 1 || res.Kvs[0].Lease != 0 {
					t.Errorf("%s: %+v, %v, want it to stand without a lease", name, res, err)
				}
			}
		})
	}
}

// Who deletes keys in etcd by hand gives away what they say, and no more: the member loses its slot to who has it by then, and takes
// nothing along.
func TestASlotWhoseKeyWasDeletedIsAnothersAndStaysThat(t *testing.T) {
	t.Parallel()
	kite := open(t, oneNode(t).Endpoints())
	crane := kite.again(t, func(o *Options) { o.Node = "crane" })
	attend(t, crane, "two")
	c := aMember(t, kite, "/src/api")
	kite.write(t, clientv3.OpDelete(kite.keys.slot(c.Role, c.Profile, c.Slot)))
	other := aMember(t, crane, "/src/there")
	if other.Slot != c.Slot {
		t.Fatalf("the slot is %s, want that which was given away, %s", other.Slot, c.Slot)
	}
	retaken, err := kite.Retake(t.Context(), []ledger.Claim{c})
	if err != nil || len(retaken) != 1 || codeOf(retaken[0].Err) != fleet.CodeSlotUnavailable {
		t.Fatalf("retaken %+v, %v, want that its slot is another's", retaken, err)
	}
	vacate(t, kite, c.ID)
	if retaken, err := crane.Retake(t.Context(), []ledger.Claim{other}); err != nil || len(retaken) != 0 {
		t.Errorf("the other's: retaken %+v, %v, want that all of it stands", retaken, err)
	}
	reserve(t, kite, draft("/src/api"))
}

func TestATreeWhoseHoldWasDeletedIsFreeAgain(t *testing.T) {
	t.Parallel()
	kite := open(t, oneNode(t).Endpoints())
	gone, stays := aMember(t, kite, "/src/api"), aMember(t, kite, "/src/web")
	kite.write(t, clientv3.OpDelete(kite.keys.hold(gone.ID)))
	if _, err := kite.Reserve(t.Context(), window, draft("/src/api"), nobody); codeOf(err) != fleet.CodeTreeOccupied {
		t.Fatalf("reserve: %v, want that what is left of it is in the way", err)
	}
	if retaken, err := kite.Retake(t.Context(), []ledger.Claim{stays}); err != nil || len(retaken) != 0 {
		t.Fatalf("retaken %+v, %v, want nothing", retaken, err)
	}
	d := draft("/src/api")
	d.Tree.File = gone.Trees[0].File
	reserve(t, kite, d)
}

func TestAHostWhoseKeyWasDeletedComesBack(t *testing.T) {
	t.Parallel()
	kite := open(t, oneNode(t).Endpoints())
	kite.write(t, clientv3.OpDelete(kite.keys.here()))
	await(t, "it is present again", func() bool {
		nodes, err := kite.Nodes(t.Context())
		return err == nil && len(nodes) == 1 && !nodes[0].Lost
	})
}

func vacate(t *testing.T, l *Ledger, id string) {
	t.Helper()
	if err := l.Vacate(t.Context(), window, id); err != nil {
		t.Fatal(err)
	}
}

func TestWhileEtcdIsAwayNothingIsSaidOfAClaim(t *testing.T) {
	t.Parallel()
	etcd := oneNode(t)
	l := open(t, etcd.Endpoints())
	c := aMember(t, l, "/src/api")
	vacate(t, l, c.ID)
	l.write(t, clientv3.OpPut(l.keys.slots(), "damaged")) // so that it says what is held, and not whether this can be
	if retaken, err := l.Retake(t.Context(), []ledger.Claim{c}); codeOf(err) != fleet.CodeSlotsDiffer || len(retaken) != 0 {
		t.Errorf("retaken %+v, %v, want %s and nothing else", retaken, err, fleet.CodeSlotsDiffer)
	}
	etcd.Kill(0)
	if retaken, err := l.Retake(t.Context(), []ledger.Claim{c}); err == nil || len(retaken) != 0 {
		t.Errorf("retaken %+v, %v, want an error and nothing else", retaken, err)
	}
	etcd.Run(0)
}

// TestAReservationDroppedWhileItIsAdmittedIsNotStarted drops it at the moment between the daemon's look and its record: who dropped it
// asks the daemon then, finds nothing, and says that nothing was started.
func TestAReservationDroppedWhileItIsAdmittedIsNotStarted(t *testing.T) {
	l := open(t, oneNode(t).Endpoints())
	e := reserve(t, l, draft("/src/api"))
	err := l.Admit(t.Context(), window, e.Tree, e.ID, func(fleet.Entry) error {
		return l.Settle(context.WithoutCancel(t.Context()), window, e.ID)
	})
	if codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("admit: %v, want %s", err, fleet.CodeReservationStale)
	}
}
