package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"fleetdeck/fleet"
)

func TestElection(t *testing.T) {
	etcd := oneNode(t)
	for name, test := range map[string]func(t *testing.T, kite, crane *Ledger){
		"one candidate is the keeper, and the next one once it ends":             oneKeeper,
		"a keeper whose term is over orders, reserves and remembers nothing":     unseatedKeeper,
		"an order that its sender does not stand by any more reserves nothing":   lateOrder,
		"what is wanted is named by its host, and once, as its own host wants":   wantedOnce,
		"what became of a reservation is asked once nothing of it stands":        fateAsked,
		"a reset is not written over by a keeper that read before it":            resetKept,
		"who turns away while it stands for election is no candidate any longer": turnedAway,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kite := open(t, etcd.Endpoints())
			test(t, kite, kite.again(t, func(o *Options) { o.Node = "crane" }))
		})
	}
}

// A daemon that goes down while etcd is away waits for its candidate.
func TestACandidateIsCalledOffThoughEtcdDoesNotAnswer(t *testing.T) {
	t.Parallel()
	etcd := oneNode(t)
	kite := open(t, etcd.Endpoints())
	crane := kite.again(t, func(o *Options) { o.Node = "crane" })
	campaign(t, kite)
	ctx, callOff := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := crane.Campaign(ctx, Candidate{Node: "crane"})
		over <- err
	}()
	await(t, "crane stands for election", func() bool { return kite.count(t, kite.keys.keeper()) == 2 })
	etcd.Kill(0)
	callOff()
	select {
	case err := <-over:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("campaign: %v, want it called off", err)
		}
	case <-time.After(patient):
		t.Errorf("it is waited for etcd")
	}
}

func campaign(t *testing.T, l *Ledger, staff ...Staff) *Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), window)
	defer cancel()
	term, err := l.Campaign(ctx, Candidate{Node: l.Node, Staff: staff})
	if err != nil {
		t.Fatalf("campaign of %s: %v", l.Node, err)
	}
	return term
}

// stand has l stand for election, and gives its term once it is elected.
func stand(t *testing.T, l *Ledger, staff ...Staff) <-chan *Term {
	t.Helper()
	before := l.count(t, l.keys.keeper())
	terms := make(chan *Term, 1)
	go func() {
		if term, err := l.Campaign(t.Context(), Candidate{Node: l.Node, Staff: staff}); err == nil {
			terms <- term
		}
	}()
	await(t, l.Node+" stands for election", func() bool { return l.count(t, l.keys.keeper()) == before+1 })
	return terms
}

func elected(t *testing.T, l *Ledger) string {
	t.Helper()
	c, err := l.Elected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c == nil {
		return ""
	}
	return c.Node
}

func oneKeeper(t *testing.T, kite, crane *Ledger) {
	if got := elected(t, kite); got != "" {
		t.Errorf("before anybody stands the keeper is %q, want none", got)
	}
	first := campaign(t, kite)
	second := stand(t, crane)
	if got, told := elected(t, crane), crane.Info(t.Context()).Keeper; got != "kite" || told != "kite" {
		t.Errorf("the keeper is %q and %q, want kite", got, told)
	}
	select {
	case <-second:
		t.Fatal("crane is elected while kite's term stands")
	default:
	}
	first.End(t.Context())
	next := <-second
	if got := elected(t, kite); got != "crane" || next.Rev <= first.Rev {
		t.Errorf("after kite's term the keeper is %q in term %d, want crane's later than %d", got, next.Rev, first.Rev)
	}
	next.End(t.Context())
}

func unseatedKeeper(t *testing.T, kite, crane *Ledger) {
	carried := make(chan Order, 1)
	serve(t, kite, func(_ context.Context, o Order) (fleet.Outcome, error) {
		carried <- o
		return fleet.Outcome{Outcome: fleet.Accepted, Tree: o.Order.Tree}, nil
	}, unheard)
	term := campaign(t, crane)
	o := order("/src/api")
	o.Fences = []Fence{term.Fence}
	if _, err := send(t, crane, o, window); err != nil {
		t.Fatalf("send in its term: %v", err)
	}
	if got := (<-carried).Fences; len(got) != 2 || got[0] != term.Fence {
		t.Errorf("the order came with the fences %v, want the term's and its own", got)
	}
	if err := term.Remember(t.Context(), "kite:/src/api", []byte("{}")); err != nil {
		t.Fatalf("remember in its term: %v", err)
	}
	// Its lease ends, as that of a keeper that is paused, between the look and the transaction.
	between := func(ctx context.Context) (fleet.Roster, error) {
		crane.revoke(ctx, term.lease)
		return fleet.Roster{}, nil
	}
	if _, err := kite.Under(term.Fence).Reserve(t.Context(), window, draft("/src/api"), between); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("reserve while its term ends: %v, want %s", err, fleet.CodeReservationStale)
	}
	if _, err := send(t, crane, o, window); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("send after its term: %v, want %s", err, fleet.CodeReservationStale)
	}
	if _, err := kite.Under(term.Fence).Reserve(t.Context(), window, draft("/src/api"), nobody); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("reserve after its term: %v, want %s", err, fleet.CodeReservationStale)
	}
	if err := term.Remember(t.Context(), "kite:/src/api", []byte("{}")); !errors.Is(err, errMemory) {
		t.Errorf("remember after its term: %v, want %v", err, errMemory)
	}
	if n := kite.count(t, kite.keys.orders()) + kite.count(t, kite.keys.holds()); n != 0 || len(carried) != 0 {
		t.Errorf("%d orders and holds stand, %d were carried out, want none", n, len(carried))
	}
	term.End(t.Context())
}

func lateOrder(t *testing.T, kite, crane *Ledger) {
	begun, goOn, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	serve(t, kite, func(ctx context.Context, o Order) (fleet.Outcome, error) {
		close(begun)
		<-goOn
		_, err := kite.Under(o.Fences...).Reserve(context.WithoutCancel(ctx), window, draft("/src/api"), nobody)
		result <- err
		return fleet.Outcome{}, err
	}, unheard)
	go func() {
		<-begun
		key := crane.keys.order("kite", "R")
		if _, err := crane.etcd.Delete(t.Context(), key); err != nil { // as its lease does
			t.Error(err)
		}
		close(goOn)
	}()
	o := order("/src/api")
	o.Order.ID = "R"
	send(t, crane, o, window)
	if err := <-result; codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("reserve for an order that is gone: %v, want %s", err, fleet.CodeReservationStale)
	}
	reserve(t, kite, draft("/src/api"))
}

func wantedOnce(t *testing.T, kite, crane *Ledger) {
	term := campaign(t, crane, Staff{Tree: "/src/web", Task: "crane's"}, Staff{Tree: "kite:/src/api", Task: "crane's"}, Staff{Tree: "kite:/src/lib", Task: "crane's"})
	stand(t, kite, Staff{Tree: "/src/api", Task: "kite's"})
	wanted, err := crane.Wanted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range wanted {
		got = append(got, w.Tree+" "+w.Task)
	}
	if want := []string{"crane:/src/web crane's", "kite:/src/api kite's", "kite:/src/lib crane's"}; !slices.Equal(got, want) {
		t.Errorf("wanted: %q, want %q", got, want)
	}
	if wanted[0].By != (Fence{term.Key, term.Rev, wanted[0].By.Of}) {
		t.Errorf("the fence of who asks is %v, want that of crane's candidate", wanted[0].By)
	}
	term.End(t.Context())
}

func fateAsked(t *testing.T, kite, crane *Ledger) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan struct{})
	go func() {
		defer close(served)
		kite.Serve(ctx, Service{Fate: func(_ context.Context, id string) (json.RawMessage, error) {
			if id == "gone" {
				return json.RawMessage(`{"member":{}}`), nil
			}
			return nil, fleet.Refuse(fleet.CodeNotFound, "no such reservation")
		}}, func(err error) { t.Errorf("serve: %v", err) })
	}()
	t.Cleanup(func() { cancel(); <-served })
	held := reserve(t, kite, draft("/src/api"))
	if _, err := crane.Fate(t.Context(), "kite", held.ID); !errors.Is(err, ErrStands) {
		t.Errorf("while it is held: %v, want %v", err, ErrStands)
	}
	if _, _, err := crane.post(t.Context(), window, "kite", Order{Order: fleet.Order{ID: "ordered"}, Claim: "claimed"}); err != nil {
		t.Fatal(err)
	}
	if _, err := crane.Fate(t.Context(), "kite", "ordered"); !errors.Is(err, ErrStands) {
		t.Errorf("while its order stands: %v, want %v", err, ErrStands)
	}
	if got, err := crane.Fate(t.Context(), "kite", "gone"); err != nil || string(got) != `{"member":{}}` {
		t.Errorf("of one that its daemon knows: %s, %v", got, err)
	}
	if _, err := crane.Fate(t.Context(), "kite", "never"); codeOf(err) != fleet.CodeNotFound {
		t.Errorf("of one that its daemon does not know: %v, want %s", err, fleet.CodeNotFound)
	}
	if _, err := kite.Fate(t.Context(), "crane", "never"); codeOf(err) != fleet.CodeDaemonUnreachable {
		t.Errorf("of a host that is away: %v, want %s", err, fleet.CodeDaemonUnreachable)
	}
}

func resetKept(t *testing.T, kite, _ *Ledger) {
	term := campaign(t, kite)
	if err := term.Remember(t.Context(), "kite:/src/api", []byte("broken")); err != nil {
		t.Fatal(err)
	}
	if found, err := kite.Amend(t.Context(), "kite:/src/api", func([]byte) ([]byte, error) { return []byte("anew"), nil }); err != nil || !found {
		t.Fatalf("amend: %v, %v", found, err)
	}
	if err := term.Remember(t.Context(), "kite:/src/api", []byte("broken")); !errors.Is(err, errMemory) {
		t.Errorf("remember what was read before the reset: %v, want %v", err, errMemory)
	}
	if got, err := term.Recall(t.Context()); err != nil || string(got["kite:/src/api"]) != "anew" {
		t.Errorf("recalled %s, %v, want the reset", got, err)
	}
	if err := term.Remember(t.Context(), "kite:/src/api", []byte("open")); err != nil {
		t.Errorf("remember after it was read: %v", err)
	}
	if found, err := kite.Amend(t.Context(), "kite:/src/none", nil); err != nil || found {
		t.Errorf("amend what is not remembered: %v, %v", found, err)
	}
	term.End(t.Context())
}

func turnedAway(t *testing.T, kite, crane *Ledger) {
	term := campaign(t, kite)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := crane.Campaign(ctx, Candidate{Node: "crane"}); err == nil {
		t.Fatal("crane is elected while kite's term stands")
	}
	if n := kite.count(t, kite.keys.keeper()); n != 1 {
		t.Errorf("%d candidates stand, want kite alone", n)
	}
	term.End(t.Context())
}
