// Package ledgertest is what must hold of every ledger: the tests of admission and of its faults that do not ask where reservations
// stand. Each ledger's own tests call [Run].
package ledgertest

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
)

const (
	// window is long: a busy machine must not fail a test.
	window = time.Minute
	// patience is how long to wait for what happens by itself.
	patience = time.Minute
)

// Run tests a ledger. Open gives an empty one, and the name under which another process opens it.
func Run(t *testing.T, open func(t *testing.T) (l ledger.Ledger, name string)) {
	for _, tt := range []struct {
		name string
		test func(*testing.T, ledger.Ledger)
	}{
		{"one tree is reserved once", oneTreeOnce},
		{"several trees are reserved together or not at all", allOrNone},
		{"a directory under another path is the same tree", sameDirectory},
		{"who cannot be asked leaves no reservation", noRoster},
		{"a member is in the way", memberInTheWay},
		{"a grace that ran out frees the tree, and its id can do no more", graceRunsOut},
		{"only the reservation that stands is admitted", fence},
		{"a paused dispatcher's launch is not admitted", pausedPastGrace},
		{"a late settle leaves the winner alone", lateSettle},
		{"a release by hand compares the id", releaseByID},
		{"a prune leaves a dispatch under way alone", prune},
		{"a bound tree is given back by nothing but its end", boundStays},
		{"a reservation that is renewed begins anew under its id", renewed},
		{"a watcher hears of each change", watched},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, _ := open(t)
			tt.test(t, l)
		})
	}
	t.Run("of many processes one gets each tree, and its reservation outlives it", func(t *testing.T) {
		l, name := open(t)
		processes(t, l, name)
	})
	t.Run("a dispatcher that is killed keeps its tree until its grace is over", func(t *testing.T) {
		l, name := open(t)
		killed(t, l, name)
	})
}

func draft(tree string) ledger.Draft {
	return ledger.Draft{Tree: fleet.Tree{Path: tree}, Role: fleet.RoleDev, Profile: "shell", Grace: 90 * time.Second,
		Dispatcher: fleet.Dispatcher{Pid: os.Getpid(), Program: "test"}}
}

func short(tree string) ledger.Draft {
	d := draft(tree)
	d.Grace = 2 * time.Second
	return d
}

func nobody(context.Context) (fleet.Roster, error) { return fleet.Roster{}, nil }

func codeOf(err error) fleet.Code {
	if r := fleet.RefusalOf(err); r != nil {
		return r.Code
	}
	return ""
}

func reserve(t *testing.T, l ledger.Ledger, d ledger.Draft) fleet.Entry {
	t.Helper()
	e, err := l.Reserve(t.Context(), window, d, nobody)
	if err != nil {
		t.Fatalf("reserve %s: %v", d.Tree.Path, err)
	}
	return e
}

func wantRefused(t *testing.T, l ledger.Ledger, d ledger.Draft, view ledger.View, want fleet.Code) {
	t.Helper()
	if e, err := l.Reserve(t.Context(), window, d, view); codeOf(err) != want {
		t.Errorf("reserve %s: %+v, %v, want %s", d.Tree.Path, e, err, want)
	}
}

// wantStanding makes sure that exactly the reservations ids stand, one for each tree that they have.
func wantStanding(t *testing.T, l ledger.Ledger, ids ...string) {
	t.Helper()
	entries, err := l.Read()
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]int{}
	for _, id := range ids {
		left[id]++
	}
	for _, e := range entries {
		left[e.ID]--
	}
	for id, n := range left {
		if n != 0 {
			t.Errorf("there stand %+v, want %v (%s: %+d)", entries, ids, id, -n)
			return
		}
	}
}

// free waits until tree can be reserved again, and gives the new reservation.
func free(t *testing.T, l ledger.Ledger, tree string) fleet.Entry {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		e, err := l.Reserve(t.Context(), window, draft(tree), nobody)
		if err == nil {
			return e
		}
		if codeOf(err) != fleet.CodeTreeReserved || time.Now().After(deadline) {
			t.Fatalf("reserve %s again: %v", tree, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func admit(t *testing.T, l ledger.Ledger, tree, id string, also ...fleet.Tree) (admitted fleet.Entry, err error) {
	t.Helper()
	calls := 0
	err = l.Admit(t.Context(), window, tree, id, func(e fleet.Entry) error { admitted, calls = e, calls+1; return nil }, also...)
	if (err == nil) != (calls == 1) {
		t.Errorf("admit %s: called %d times with error %v", id, calls, err)
	}
	return admitted, err
}

func oneTreeOnce(t *testing.T, l ledger.Ledger) {
	e := reserve(t, l, draft("/src/api"))
	wantRefused(t, l, draft("/src/api"), nobody, fleet.CodeTreeReserved)
	other := reserve(t, l, draft("/src/web"))
	wantStanding(t, l, e.ID, other.ID)
}

func allOrNone(t *testing.T, l ledger.Ledger) {
	d := draft("/src/api")
	d.Also = []fleet.Tree{{Path: "/src/web"}, {Path: "/src/doc"}}
	e := reserve(t, l, d)
	wantStanding(t, l, e.ID, e.ID, e.ID)
	d = draft("/src/new")
	d.Also = []fleet.Tree{{Path: "/src/doc"}}
	wantRefused(t, l, d, nobody, fleet.CodeTreeReserved)
	d.Also = []fleet.Tree{d.Tree}
	wantRefused(t, l, d, nobody, fleet.CodeBadRequest)
	if _, err := admit(t, l, "/src/api", e.ID, fleet.Tree{Path: "/src/web"}, fleet.Tree{Path: "/src/doc"}); err != nil {
		t.Errorf("admit all of them: %v", err)
	}
	if _, err := admit(t, l, "/src/api", e.ID, fleet.Tree{Path: "/src/other"}); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("admit with a tree that was not reserved: %v, want %s", err, fleet.CodeReservationStale)
	}
	if err := l.Settle(t.Context(), window, e.ID); err != nil {
		t.Fatal(err)
	}
	wantStanding(t, l)
}

func sameDirectory(t *testing.T, l ledger.Ledger) {
	d := draft("/src/api")
	d.Tree.File = "8:42"
	reserve(t, l, d)
	d.Tree.Path = "/mnt/api"
	wantRefused(t, l, d, nobody, fleet.CodeTreeReserved)
}

func noRoster(t *testing.T, l ledger.Ledger) {
	away := errors.New("nobody answers")
	if _, err := l.Reserve(t.Context(), window, draft("/src/api"), func(context.Context) (fleet.Roster, error) { return fleet.Roster{}, away }); !errors.Is(err, away) {
		t.Errorf("reserve: %v, want %v", err, away)
	}
	wantStanding(t, l)
}

func memberInTheWay(t *testing.T, l ledger.Ledger) {
	wantRefused(t, l, draft("/src/api"), listed("R", "/src/api"), fleet.CodeTreeOccupied)
	wantStanding(t, l)
}

// listed is a daemon that lists the worker of reservation id in tree.
func listed(id, tree string) ledger.View {
	return func(context.Context) (fleet.Roster, error) {
		return fleet.Roster{Members: []fleet.Member{{ID: "M", Tree: tree, Reservation: id, State: fleet.StateIdle}}}, nil
	}
}

func graceRunsOut(t *testing.T, l ledger.Ledger) {
	loser := reserve(t, l, short("/src/api"))
	winner := free(t, l, "/src/api")
	if !loser.Expired(process.Now()) {
		t.Errorf("the tree was given away %s before the grace of its reservation was over", loser.Remaining(process.Now()))
	}
	if _, err := admit(t, l, "/src/api", loser.ID); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("admit the loser: %v, want %s", err, fleet.CodeReservationStale)
	}
	for name, change := range map[string]func(context.Context, time.Duration, string) error{"settle": l.Settle, "vacate": l.Vacate} {
		if err := change(t.Context(), window, loser.ID); err != nil {
			t.Errorf("%s the loser: %v", name, err)
		}
	}
	wantStanding(t, l, winner.ID)
}

func fence(t *testing.T, l ledger.Ledger) {
	d := draft("/src/api")
	d.Tree.File = "8:42"
	e := reserve(t, l, d)
	for name, bad := range map[string]struct{ tree, id string }{
		"another id":   {"/src/api", "another"},
		"another tree": {"/src/web", e.ID},
	} {
		if _, err := admit(t, l, bad.tree, bad.id); codeOf(err) != fleet.CodeReservationStale {
			t.Errorf("admit %s: %v, want %s", name, err, fleet.CodeReservationStale)
		}
	}
	admitted, err := admit(t, l, "/src/api", e.ID)
	if err != nil {
		t.Fatal(err)
	}
	now := process.Now()
	if admitted.ID != e.ID || admitted.File != d.Tree.File || admitted.Remaining(now) > e.Remaining(now) || admitted.Expired(now) {
		t.Errorf("admitted as %+v, of %+v: want the same, with a deadline that is no later", admitted, e)
	}
	if _, err := admit(t, l, "/src/api", e.ID); err != nil {
		t.Errorf("admit once more, its answer lost: %v", err)
	}
	no := errors.New("no")
	if err := l.Admit(t.Context(), window, "/src/api", e.ID, func(fleet.Entry) error { return no }); !errors.Is(err, no) {
		t.Errorf("what the daemon refuses: %v, want %v", err, no)
	}
	if err := l.Settle(t.Context(), window, e.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := admit(t, l, "/src/api", e.ID); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("admit what was settled: %v, want %s", err, fleet.CodeReservationStale)
	}
}

func pausedPastGrace(t *testing.T, l ledger.Ledger) {
	e := reserve(t, l, short("/src/api"))
	for deadline := time.Now().Add(patience); !e.Expired(process.Now()); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("its grace does not run out")
		}
	}
	// Whether anybody took the entry out yet is not the question.
	if _, err := admit(t, l, "/src/api", e.ID); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("admit after the grace: %v, want %s", err, fleet.CodeReservationStale)
	}
}

func lateSettle(t *testing.T, l ledger.Ledger) {
	loser := reserve(t, l, draft("/src/api"))
	if err := l.Settle(t.Context(), window, loser.ID); err != nil {
		t.Fatal(err)
	}
	winner := reserve(t, l, draft("/src/api"))
	for range 2 {
		if err := l.Settle(t.Context(), window, loser.ID); err != nil {
			t.Errorf("settle again: %v", err)
		}
	}
	wantStanding(t, l, winner.ID)
}

func releaseByID(t *testing.T, l ledger.Ledger) {
	e := reserve(t, l, draft("/src/api"))
	if stands, ok, err := l.Release(t.Context(), window, "/src/api", "another"); ok || err != nil || stands.ID != e.ID {
		t.Errorf("release by another id: %+v, %t, %v, want %s to stand", stands, ok, err, e.ID)
	}
	if dropped, ok, err := l.Release(t.Context(), window, "/src/api", ""); !ok || err != nil || dropped.ID != e.ID {
		t.Errorf("release: %+v, %t, %v, want %s", dropped, ok, err, e.ID)
	}
	if _, ok, err := l.Release(t.Context(), window, "/src/api", ""); ok || err != nil {
		t.Errorf("release once more: %t, %v, want nothing to drop", ok, err)
	}
	wantStanding(t, l)
}

func prune(t *testing.T, l ledger.Ledger) {
	e := reserve(t, l, draft("/src/api"))
	report, err := l.Prune(t.Context(), window, fleet.Roster{})
	if err != nil || len(report.Pruned) != 0 || report.Kept != 1 {
		t.Errorf("prune: %+v, %v, want one kept", report, err)
	}
	wantStanding(t, l, e.ID)
}

func boundStays(t *testing.T, l ledger.Ledger) {
	d := short("/src/api")
	d.Tree.File = "8:42"
	e := reserve(t, l, d)
	if _, err := admit(t, l, "/src/api", e.ID); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Bind(t.Context(), e.ID, "M"+e.ID); err != nil {
			t.Fatal(err)
		}
	}
	there := listed(e.ID, "/src/api")
	if err := l.Settle(t.Context(), window, e.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Release(t.Context(), window, "/src/api", ""); err != nil {
		t.Fatal(err)
	}
	roster, _ := there(t.Context())
	for deadline := time.Now().Add(patience); !e.Expired(process.Now()); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("its grace does not run out")
		}
	}
	if _, err := l.Prune(t.Context(), window, roster); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, l, draft("/src/api"), there, fleet.CodeTreeOccupied)
	wantStanding(t, l)
	for range 2 {
		if err := l.Vacate(t.Context(), window, e.ID); err != nil {
			t.Fatal(err)
		}
	}
	reserve(t, l, d)
}

func renewed(t *testing.T, l ledger.Ledger) {
	first := reserve(t, l, draft("/src/api"))
	d := draft("/src/api")
	d.ID, d.Renew, d.Tree.File, d.Grace = first.ID, true, "8:42", time.Hour
	second := reserve(t, l, d)
	if second.ID != first.ID || second.Remaining(process.Now()) < 50*time.Minute {
		t.Errorf("renewed as %+v, want %s for an hour", second, first.ID)
	}
	wantStanding(t, l, first.ID)
	d = draft("/src/web")
	d.ID, d.Renew = "fresh", true
	if e := reserve(t, l, d); e.ID != "fresh" {
		t.Errorf("renewed what did not stand as %s, want fresh", e.ID)
	}
}

func watched(t *testing.T, l ledger.Ledger) {
	ctx, cancel := context.WithCancel(t.Context())
	news := l.Watch(ctx)
	var seen []fleet.Entry
	hear := func(what string, ok func() bool) {
		t.Helper()
		timeout := time.After(patience)
		for !ok() {
			select {
			case _, open := <-news:
				if !open {
					t.Fatalf("%s: the watch ended", what)
				}
				var err error
				if seen, err = l.Read(); err != nil {
					t.Fatal(err)
				}
			case <-timeout:
				t.Fatalf("%s: nobody says so; seen last: %+v", what, seen)
			}
		}
	}
	e := reserve(t, l, draft("/src/api"))
	hear("a reservation", func() bool { return len(seen) == 1 })
	if err := l.Settle(t.Context(), window, e.ID); err != nil {
		t.Fatal(err)
	}
	hear("its end", func() bool { return len(seen) == 0 })
	cancel()
	for range news {
	}
}
