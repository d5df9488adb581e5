package book_test

import (
	"maps"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
)

// TestAFileHoldsReservationsAndNoMembers: what a member has is its daemon's to know, and an end gives back what still stands.
func TestAFileHoldsReservationsAndNoMembers(t *testing.T) {
	b, _ := newBook(t)
	for _, id := range []string{"one", "two"} {
		d := draft("/src/" + id)
		d.ID = id
		if _, err := b.Reserve(t.Context(), window, d, nobody); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Bind(t.Context(), "one", "M1"); err != nil {
		t.Errorf("bind: %v", err)
	}
	held := func(want map[string]bool) {
		t.Helper()
		if got, err := b.Held(t.Context()); err != nil || !maps.Equal(got, want) {
			t.Errorf("held are %v, %v, want %v", got, err, want)
		}
	}
	held(map[string]bool{"one": false, "two": false})
	claim := ledger.Claim{ID: "lost", Member: "M2", Trees: []fleet.Tree{{Path: "/src/two"}}, Role: fleet.RoleDev, Profile: "p"}
	if retaken, err := b.Retake(t.Context(), []ledger.Claim{claim}); err != nil || len(retaken) != 0 {
		t.Errorf("retaken %+v, %v, want that nothing was lost", retaken, err)
	}
	for range 2 { // what is given back may be given back again
		if err := b.Vacate(t.Context(), window, "one"); err != nil {
			t.Errorf("vacate: %v", err)
		}
	}
	held(map[string]bool{"two": false})
}
