package daemon

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"fleetdeck/fleet"
)

// giver is a ledger's word on what is held: whether it is given, and what it was asked.
type giver struct {
	mu     sync.Mutex // guards all below
	silent bool
	fence  func(context.Context) error // what the daemon does before a limit is put to what is held
	words  int
	by     map[string]int // how often it was asked, by reservation
}

func (g *giver) renew(ctx context.Context, id string, fence func(context.Context) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fence = fence
	g.by[id]++
	if g.silent {
		return errors.New("etcd does not answer")
	}
	err := fence(ctx)
	if err == nil {
		g.words++
	}
	return err
}

// given is how often it gave its word.
func (g *giver) given() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.words
}

// asked is how often it was asked, by reservation.
func (g *giver) asked() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.by)
}

func (g *giver) fallSilent() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.silent = true
}

func startFenced(t *testing.T, span time.Duration) (*running, *giver) {
	t.Helper()
	r, g := newDaemon(t), &giver{by: map[string]int{}}
	r.up(func(p pool) pool { return p }, func(o *Options) { o.Fencing = Fencing{Span: span, Renew: g.renew} })
	return r, g
}

// isFenced asks a member's terminal.
func (r *running) isFenced(member string) bool {
	r.t.Helper()
	term, err := r.terminal(member)
	if err != nil {
		r.t.Fatal(err)
	}
	status, err := term.Status(r.t.Context())
	return err == nil && status.Fenced
}

func TestAMemberWithASlotLivesByTheLedgersWordAndNoLonger(t *testing.T) {
	const span = 2 * time.Second
	r, g := startFenced(t, span)
	out, err := r.dispatch("one")
	if err != nil {
		t.Fatal(err)
	}
	r.await("it was given word for longer than the fence is", func() bool { return g.given() > 2*parts })
	roster, err := r.client.Roster(t.Context())
	if err != nil || len(roster.Members) != 1 || !roster.Members[0].Alive() || !r.isFenced(out.Member) {
		t.Fatalf("roster %+v, %v, want its member alive, and fenced", roster, err)
	}
	g.fallSilent()
	r.await("the member has ended", func() bool {
		roster, err := r.client.Roster(t.Context())
		return err == nil && len(roster.Members) == 1 && !roster.Members[0].Alive()
	})
	if !strings.Contains(r.log.String(), "fenced: member "+out.Member) {
		t.Errorf("the log says %s, want why it was ended", r.log)
	}
	if _, err := r.dispatch("two"); err != nil {
		t.Errorf("dispatch to its slot: %v, want it free again", err)
	}
}

// TestWhatIsFencedIsNotFencedAnewWithoutTheLedgersWord asks for it while the ledger is silent.
func TestWhatIsFencedIsNotFencedAnewWithoutTheLedgersWord(t *testing.T) {
	const span = 3 * time.Second
	r, g := startFenced(t, span)
	if _, err := r.dispatch("one"); err != nil {
		t.Fatal(err)
	}
	r.await("it is fenced", func() bool { return g.given() > 0 })
	g.fallSilent()
	r.await("the member has ended, whatever the daemon does before a limit", func() bool {
		g.mu.Lock()
		fence := g.fence
		g.mu.Unlock()
		if err := fence(t.Context()); err != nil {
			t.Logf("fence: %v", err)
		}
		roster, err := r.client.Roster(t.Context())
		return err == nil && len(roster.Members) == 1 && !roster.Members[0].Alive()
	})
}

func TestNobodyIsFencedUnlessThatIsAskedFor(t *testing.T) {
	r, g := startFenced(t, 0)
	out, err := r.dispatch("one")
	if err != nil {
		t.Fatal(err)
	}
	if g.given() != 0 || r.isFenced(out.Member) {
		t.Errorf("the ledger was asked %d times, and the member is fenced: %t", g.given(), r.isFenced(out.Member))
	}
}

// TestAMemberWithoutASlotIsNotFenced has a fenced one beside it: what it holds is of this host alone, and nobody else gets it.
func TestAMemberWithoutASlotIsNotFenced(t *testing.T) {
	r, g := startFenced(t, 3*time.Second)
	dev, err := r.dispatchAs("one", fleet.RoleDev, "worker")
	if err != nil {
		t.Fatal(err)
	}
	architect, err := r.dispatch("two")
	if err != nil {
		t.Fatal(err)
	}
	r.await("the other one was given word twice", func() bool { return g.given() > 1 && r.isFenced(architect.Member) })
	if r.isFenced(dev.Member) {
		t.Error("a member without a slot is fenced")
	}
	if asked := g.asked(); asked[dev.Reservation] != 0 || asked[architect.Reservation] == 0 {
		t.Errorf("the ledger was asked for %v, want %s alone", asked, architect.Reservation)
	}
}
