package cluster

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
)

// aHost is what a host of its own holds: n members, the first an architect, a launch and a reservation of two trees.
func aHost(n int) (moving []Moving) {
	soon := fleet.DeadlineAfter(process.Now(), time.Minute)
	for i := range n {
		m := Moving{Member: true, Claim: ledger.Claim{ID: fmt.Sprintf("M%03d", i), Role: fleet.RoleDev, Profile: "shell",
			Trees: []fleet.Tree{{Path: fmt.Sprintf("/src/%03d", i), File: fleet.FileID(fmt.Sprintf("8:%d", i))}}}}
		if i == 0 {
			m.Role, m.Slot = "architect", "architect-2"
		}
		moving = append(moving, m)
	}
	return append(moving,
		Moving{Launching: true, Deadline: soon, Claim: ledger.Claim{ID: "L", Role: fleet.RoleDev, Profile: "shell", Trees: []fleet.Tree{{Path: "/src/launch"}}}},
		Moving{Deadline: soon, Claim: ledger.Claim{ID: "R", Role: "architect", Profile: "shell", Trees: []fleet.Tree{{Path: "/src/one"}, {Path: "/src/two"}}}})
}

func nobodyKnows(string) bool { return false }

func TestAnImportHoldsEverythingOrNothing(t *testing.T) {
	etcd := oneNode(t)
	const n = 60 // more keys than one transaction takes
	for _, tt := range []struct {
		name string
		way  func(t *testing.T, crane *Ledger)
		want fleet.Code
	}{
		{"nothing is in the way", func(*testing.T, *Ledger) {}, ""},
		{"a slot is another host's", func(t *testing.T, crane *Ledger) {
			aMember(t, crane, "/src/a")
			aMember(t, crane, "/src/b")
		}, fleet.CodeSlotUnavailable},
		{"only the slot of a member is another host's", func(t *testing.T, crane *Ledger) {
			first := aMember(t, crane, "/src/a")
			aMember(t, crane, "/src/b")
			vacate(t, crane, first.ID)
		}, fleet.CodeSlotUnavailable},
		{"no slot is left for a reservation", func(t *testing.T, crane *Ledger) { aMember(t, crane, "/src/a") }, fleet.CodeSlotUnavailable},
		{"the last tree is held by somebody else", func(t *testing.T, crane *Ledger) {
			kite := crane.again(t, func(o *Options) { o.Node = "kite" })
			attend(t, kite, "other")
			reserve(t, kite, draft("/src/two"))
		}, fleet.CodeNodePresent},
		{"the slot table is another", func(t *testing.T, crane *Ledger) {
			fewer := crane.again(t, func(o *Options) { o.Slots = nil })
			if _, err := fewer.Init(t.Context(), window, true, func(Checked) {}); err != nil {
				t.Fatal(err)
			}
		}, fleet.CodeSlotsDiffer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			crane := open(t, etcd.Endpoints(), func(o *Options) { o.Node = "crane" })
			kite := crane.again(t, func(o *Options) { o.Node = "kite" })
			tt.way(t, crane)
			before := crane.count(t, crane.keys.root())
			moving := aHost(n)
			if err := kite.Import(t.Context(), window, moving, nobodyKnows, true); codeOf(err) != tt.want {
				t.Errorf("dry import: %v, want %q", err, tt.want)
			}
			if now := crane.count(t, crane.keys.root()); now != before {
				t.Errorf("a dry import left %d keys, there were %d", now, before)
			}
			for range 2 { // cut off behind its last step it is asked for again
				if err := kite.Import(t.Context(), window, moving, nobodyKnows, false); codeOf(err) != tt.want {
					t.Fatalf("import: %v, want %q", err, tt.want)
				}
			}
			if tt.want != "" {
				if now := crane.count(t, crane.keys.root()); now != before {
					t.Errorf("a refused import left %d keys, there were %d", now, before)
				}
				return
			}
			wantMoved(t, kite, moving)
			if _, _, err := kite.Leaving(t.Context(), window, false); codeOf(err) != fleet.CodeNodePresent {
				t.Errorf("leave a fleet of others with a slot: %v, want %s", err, fleet.CodeNodePresent)
			}
			if _, entries, err := kite.Leaving(t.Context(), window, true); err != nil || len(entries) != 3 {
				t.Errorf("finish to leave: %+v, %v, want the launch, and the reservation of two trees", entries, err)
			}
			vacate(t, kite, "M000")
			vacate(t, kite, "R")
			loss, entries, err := kite.Leaving(t.Context(), window, false)
			if err != nil || len(entries) != 1 || entries[0].ID != "L" {
				t.Fatalf("leaving: %+v, %v, want the launch", entries, err)
			}
			if err := kite.Leave(t.Context(), window, loss); err != nil {
				t.Fatal(err)
			}
			if now := crane.count(t, crane.keys.root()); now != before {
				t.Errorf("after it has left %d keys stand, want %d", now, before)
			}
		})
	}
}

// wantMoved makes sure that kite holds exactly moving.
func wantMoved(t *testing.T, kite *Ledger, moving []Moving) {
	t.Helper()
	bound, err := kite.Held(t.Context())
	if err != nil || len(bound) != len(moving) {
		t.Fatalf("%d are held, %v, want %d", len(bound), err, len(moving))
	}
	for _, m := range moving {
		h, err := kite.find(t.Context(), m.ID)
		if err != nil || h == nil || (h.State == member) != m.Member || (h.lease == 0) != m.Member {
			t.Fatalf("%s is held as %+v, %v", m.ID, h, err)
		}
		if m.ID == "R" && (h.Slot != "architect-1" || len(h.Trees) != 2) {
			t.Errorf("the reservation is held as %+v, want two trees and the slot that is left", h)
		}
	}
}

// TestAnImportThatBreaksOffTakesBackWhatItDid breaks it off behind the first of its transactions.
func TestAnImportThatBreaksOffTakesBackWhatItDid(t *testing.T) {
	crane := open(t, oneNode(t).Endpoints(), func(o *Options) { o.Node = "crane" })
	kite := crane.again(t, func(o *Options) { o.Node = "kite" })
	moving := aHost(60)
	holds, err := kite.moved(t.Context(), moving)
	if err != nil {
		t.Fatal(err)
	}
	chunks := kite.chunks(holds)
	if len(chunks) < 2 {
		t.Fatalf("%d transactions, want several", len(chunks))
	}
	before := crane.count(t, crane.keys.root())
	if err := kite.retake(t.Context(), chunks[0]...); err != nil {
		t.Fatal(err)
	}
	if err := kite.undo(t.Context(), window, chunks, map[string]bool{}, errLost); !errors.Is(err, errLost) {
		t.Errorf("undo: %v, want why it was asked for", err)
	}
	if now := crane.count(t, crane.keys.root()); now != before {
		t.Errorf("%d keys stand, there were %d", now, before)
	}
}
