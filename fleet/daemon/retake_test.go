package daemon

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/ledger"
)

// fickle is a ledger that loses what it holds, or a reservation while it is admitted.
type fickle struct {
	ledger.Ledger
	mu      sync.Mutex // guards all below
	dropped bool       // Admit finds the reservation gone once the daemon has it on record
	retaken func(claims []ledger.Claim) ([]ledger.Retaken, error)
	asked   int // with claims
	calls   int
	vacated []string
	slow    time.Duration // how long it takes to give back
	undead  string        // a reservation that Held says a member has, until it is vacated
}

func (f *fickle) Held(ctx context.Context) (map[string]bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	bound, err := f.Ledger.Held(ctx)
	if f.undead != "" && err == nil {
		bound[f.undead] = true
	}
	return bound, err
}

func (f *fickle) Admit(ctx context.Context, window time.Duration, tree, id string, admit func(fleet.Entry) error, also ...fleet.Tree) error {
	f.mu.Lock()
	dropped := f.dropped
	f.mu.Unlock()
	err := f.Ledger.Admit(ctx, window, tree, id, admit, also...)
	if err == nil && dropped {
		err = fleet.Refuse(fleet.CodeReservationStale, "it was dropped meanwhile")
	}
	return err
}

func (f *fickle) Retake(_ context.Context, claims []ledger.Claim) ([]ledger.Retaken, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls++; len(claims) == 0 {
		return nil, nil
	}
	f.asked++
	return f.retaken(claims)
}

func (f *fickle) Vacate(ctx context.Context, window time.Duration, id string) error {
	f.mu.Lock()
	slow := f.slow
	f.mu.Unlock()
	time.Sleep(slow)
	f.mu.Lock()
	f.vacated = append(f.vacated, id)
	if f.undead == id {
		f.undead = ""
	}
	f.mu.Unlock()
	return f.Ledger.Vacate(ctx, window, id)
}

// sees reports whether ok holds of f as it is.
func (f *fickle) sees(ok func() bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return ok()
}

func startFickle(t *testing.T, change ...func(*Options)) (*running, *fickle) {
	t.Helper()
	r := newDaemon(t)
	f := &fickle{Ledger: r.ledger(), retaken: func([]ledger.Claim) ([]ledger.Retaken, error) { return nil, nil }}
	r.up(same, append(change, func(o *Options) { o.Ledger, o.RetakeEvery = f, 10*time.Millisecond })...)
	return r, f
}

// told is how many events of a kind there were.
func (r *running) told(kind string) (n int) {
	r.t.Helper()
	if err := r.client.Events(r.t.Context(), 0, false, func(e fleet.Event) {
		if e.Kind == kind {
			n++
		}
	}); err != nil {
		r.t.Fatal(err)
	}
	return n
}

func TestALaunchWhoseReservationIsDroppedWhileItIsAdmittedIsNeverStarted(t *testing.T) {
	r, f := startFickle(t)
	f.mu.Lock()
	f.dropped = true
	f.mu.Unlock()
	_, err := r.dispatch("one")
	if refusal := fleet.RefusalOf(err); refusal == nil || refusal.Code != fleet.CodeReservationStale {
		t.Errorf("dispatch: %v, want %s", err, fleet.CodeReservationStale)
	}
	dirs, err := os.ReadDir(r.state.Path + "/members")
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(dirs) != 0 {
		t.Errorf("members have directories %v, %v, want that none was begun", dirs, err)
	}
	f.mu.Lock()
	f.dropped = false
	f.mu.Unlock()
	if _, err := r.dispatch("two"); err != nil {
		t.Errorf("dispatch to its slot: %v, want it free again", err)
	}
}

func TestAMemberIsEndedOnlyWhereSomebodyElseHasItsPlace(t *testing.T) {
	r, f := startFickle(t)
	out, err := r.dispatch("one")
	if err != nil {
		t.Fatal(err)
	}
	alive := func() bool {
		roster, err := r.client.Roster(t.Context())
		return err == nil && len(roster.Members) == 1 && roster.Members[0].Alive()
	}
	answer := func(says func([]ledger.Claim) ([]ledger.Retaken, error)) {
		t.Helper()
		f.mu.Lock()
		f.retaken = says
		before := f.asked
		f.mu.Unlock()
		r.await("the ledger was asked twice more", func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.asked > before+1 || !alive()
		})
	}
	answer(func([]ledger.Claim) ([]ledger.Retaken, error) { return nil, errors.New("etcd is away") })
	if !alive() || r.told("hold_lost") != 0 || r.told("hold_retaken") != 0 {
		t.Error("the member was ended while nobody knew anything of it")
	}
	answer(func(c []ledger.Claim) ([]ledger.Retaken, error) {
		if c[0].ID != out.Reservation || c[0].Slot != "architect-1" || c[0].Trees[0].Path != out.Tree || c[0].Trees[0].File == "" {
			t.Errorf("claim %+v, want all that the member holds", c[0])
		}
		return []ledger.Retaken{{ID: c[0].ID}}, nil
	})
	if !alive() || r.told("hold_lost") != 0 || r.told("hold_retaken") == 0 {
		t.Error("the member was ended though it was held again, or nobody was told")
	}
	answer(func(c []ledger.Claim) ([]ledger.Retaken, error) {
		return []ledger.Retaken{{ID: c[0].ID, Err: errors.New("crane has it")}}, nil
	})
	r.await("the member has ended", func() bool { return !alive() })
	if n := r.told("hold_lost"); n != 1 {
		t.Errorf("its end was told %d times, want once", n)
	}
}

// TestALaunchIsNotClaimed looks while it boots: its reservation is its claim, until it is bound.
func TestALaunchIsNotClaimed(t *testing.T) {
	h, booting, goOn := &hooked{}, make(chan struct{}), make(chan struct{})
	h.confirm = func(ctx context.Context, term launch.Terminal) error {
		close(booting)
		<-goOn
		return term.Confirm(ctx)
	}
	r, f := startFickle(t, h.through)
	listed := make(chan error, 1)
	go func() {
		_, err := r.dispatch("one")
		listed <- err
	}()
	<-booting
	before := 0
	f.sees(func() bool { before = f.calls; return true })
	r.await("the ledger was asked twice more", func() bool { return f.sees(func() bool { return f.calls > before+1 }) })
	if f.sees(func() bool { return f.asked != 0 }) {
		t.Error("a launch was claimed as a member")
	}
	close(goOn)
	if err := <-listed; err != nil {
		t.Errorf("dispatch: %v", err)
	}
	r.await("the member is claimed", func() bool { return f.sees(func() bool { return f.asked > 0 }) })
}

// TestWhatIsRetakenForNobodyIsGivenBack has the ledger hold again what no member here holds any more: its agent ended while it was asked.
func TestWhatIsRetakenForNobodyIsGivenBack(t *testing.T) {
	r, f := startFickle(t)
	if _, err := r.dispatch("one"); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.retaken = func([]ledger.Claim) ([]ledger.Retaken, error) { return []ledger.Retaken{{ID: "ended"}}, nil }
	f.mu.Unlock()
	r.await("it is given back", func() bool {
		return f.sees(func() bool { return slices.Contains(f.vacated, "ended") })
	})
}

// An etcd that was put back from an older copy holds again what a member had that has ended since.
func TestWhatIsHeldAgainForAMemberThatEndedIsGivenBack(t *testing.T) {
	r, f := startFickle(t)
	out, err := r.dispatch("one")
	if err != nil {
		t.Fatal(err)
	}
	undead := func(id string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.undead = id
	}
	gone := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.undead == ""
	}
	if err := r.client.Stop(t.Context(), out.Member); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		undead(out.Reservation)
		r.await("it is given back", gone)
	}
}

// Who was told that a member has ended, or a launch failed, dispatches again at once.
func TestWhoIsToldOfAnEndFindsItsPlaceGivenBack(t *testing.T) {
	r, f := startFickle(t)
	f.mu.Lock()
	f.slow = 200 * time.Millisecond
	f.mu.Unlock()
	givenBack := func(id string) {
		t.Helper()
		if !f.sees(func() bool { return slices.Contains(f.vacated, id) }) {
			t.Errorf("reservation %s was not given back by then", id)
		}
	}
	out, err := r.dispatch("one")
	if err == nil {
		err = r.client.Stop(t.Context(), out.Member)
	}
	if err != nil {
		t.Fatal(err)
	}
	givenBack(out.Reservation)
	out, err = r.dispatchAs("two", fleet.RoleDev, "dies")
	if refusal := fleet.RefusalOf(err); refusal == nil || refusal.Code != fleet.CodeLaunchFailed {
		t.Fatalf("dispatch of what dies: %v, want %s", err, fleet.CodeLaunchFailed)
	}
	givenBack(out.Reservation)
}
