package cluster

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

type carrier = func(context.Context, Order) (fleet.Outcome, error)

// serve has l carry out orders until the test ends.
func serve(t *testing.T, l *Ledger, carry carrier, recall ...carrier) {
	t.Helper()
	s := Service{Carry: carry}
	if len(recall) > 0 {
		s.Recall = recall[0]
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var serving sync.WaitGroup
	serving.Go(func() {
		l.Serve(ctx, s, func(err error) { t.Errorf("serve: %v", err) })
	})
	t.Cleanup(func() { cancel(); serving.Wait() })
}

// unheard is for a test in which nothing is to be recalled.
func unheard(_ context.Context, o Order) (fleet.Outcome, error) {
	return fleet.Outcome{}, fmt.Errorf("order %s was recalled", o.Order.ID)
}

func order(tree string) Order { return Order{Order: fleet.Order{Tree: tree, Profile: "shell"}} }

func send(t *testing.T, l *Ledger, o Order, within time.Duration) (fleet.Outcome, error) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return l.Send(ctx, window, "kite", o)
}

func TestOrders(t *testing.T) {
	etcd := oneNode(t)
	for name, test := range map[string]func(t *testing.T, kite, crane *Ledger){
		"an order is carried out once, also where it waited for who does": orderOnce,
		"a refusal comes back as it was given":                            orderRefused,
		"an order that nobody takes is taken back":                        orderTakenBack,
		"an order that was begun and not answered is unknown":             orderUnknown,
		"an order whose daemon died over it is recalled by the next one":  orderRecalled,
		"what was made for an order that nobody waits for is recalled":    madeRecalled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kite := open(t, etcd.Endpoints())
			test(t, kite, kite.again(t, func(o *Options) { o.Node = "crane" }))
		})
	}
}

func orderOnce(t *testing.T, kite, crane *Ledger) {
	var carried atomic.Int64
	recall := func(_ context.Context, o Order) (fleet.Outcome, error) {
		return fleet.Outcome{Outcome: fleet.Accepted, Tree: o.Order.Tree, Reservation: o.Order.ID, Member: "M"}, nil
	}
	carry := func(ctx context.Context, o Order) (fleet.Outcome, error) {
		carried.Add(1)
		return recall(ctx, o)
	}
	got := make(chan fleet.Outcome, 1)
	go func() {
		out, err := send(t, crane, order("/src/api"), window)
		if err != nil {
			t.Errorf("send: %v", err)
		}
		got <- out
	}()
	await(t, "the order is written", func() bool {
		return kite.count(t, kite.keys.orders()) == 1
	})
	serve(t, kite, carry, recall)
	serve(t, kite.again(t), carry, recall) // a daemon that does not know yet that it was followed by another
	out := <-got
	if out.Outcome != fleet.Accepted || out.Member != "M" || out.Tree != "kite:/src/api" || out.Reservation == "" || carried.Load() != 1 {
		t.Errorf("outcome %+v, carried out %d times, want M once", out, carried.Load())
	}
	if n := kite.count(t, kite.keys.orders()); n != 0 {
		t.Errorf("%d orders are left behind", n)
	}
}

func orderRefused(t *testing.T, kite, crane *Ledger) {
	serve(t, kite, func(_ context.Context, o Order) (fleet.Outcome, error) {
		err := fleet.Refuse(fleet.CodeTreeOccupied, "somebody is there").WithHint("look")
		return fleet.Outcome{Outcome: fleet.Refused, Code: err.Code, Tree: o.Order.Tree}, err
	}, unheard)
	out, err := send(t, crane, order("/src/api"), window)
	if r := fleet.RefusalOf(err); r == nil || r.Code != fleet.CodeTreeOccupied || r.Hint != "look" || out.Code != r.Code {
		t.Errorf("outcome %+v, %v, want the refusal with its hint", out, err)
	}
	if _, err := crane.Send(t.Context(), window, "heron", order("/src/api")); codeOf(err) != fleet.CodeDaemonUnreachable {
		t.Errorf("send to a node that is not there: %v, want %s", err, fleet.CodeDaemonUnreachable)
	}
}

func orderTakenBack(t *testing.T, kite, crane *Ledger) {
	out, err := send(t, crane, order("/src/api"), 500*time.Millisecond)
	if codeOf(err) != fleet.CodeDaemonUnreachable || out.Outcome != fleet.Refused {
		t.Errorf("outcome %+v, %v, want it refused", out, err)
	}
	if n := kite.count(t, kite.keys.orders()); n != 0 {
		t.Errorf("%d orders are left to be carried out", n)
	}
}

func orderUnknown(t *testing.T, kite, crane *Ledger) {
	begun := make(chan struct{})
	serve(t, kite, func(ctx context.Context, _ Order) (fleet.Outcome, error) {
		close(begun)
		<-ctx.Done()
		return fleet.Outcome{}, ctx.Err()
	}, unheard)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-begun; cancel() }()
	out, err := crane.Send(ctx, window, "kite", order("/src/api"))
	if codeOf(err) != fleet.CodeOutcomeUnknown || out.Outcome != fleet.Unknown || out.Reservation == "" {
		t.Errorf("outcome %+v, %v, want it unknown, with its reservation", out, err)
	}
}

func orderRecalled(t *testing.T, kite, crane *Ledger) {
	died, dead := context.WithCancel(t.Context())
	begun := make(chan struct{})
	go kite.again(t).Serve(died, Service{Carry: func(context.Context, Order) (fleet.Outcome, error) {
		close(begun)
		select {} // as a process that was killed: it never answers
	}, Recall: unheard}, func(error) {})
	go func() {
		<-begun
		dead()
		serve(t, kite, unheard, func(_ context.Context, o Order) (fleet.Outcome, error) {
			return fleet.Outcome{Outcome: fleet.Accepted, Tree: o.Order.Tree, Reservation: o.Order.ID, Member: "M"}, nil
		})
	}()
	out, err := send(t, crane, order("/src/api"), window)
	if err != nil || out.Member != "M" || out.Tree != "kite:/src/api" {
		t.Errorf("outcome %+v, %v, want the member that came of it", out, err)
	}
}

func madeRecalled(t *testing.T, kite, crane *Ledger) {
	made := func(id string) fleet.MadeWorktree {
		return fleet.MadeWorktree{Main: "/src/" + id, Branch: id, NewBranch: true, Start: "abc", Parents: []string{"/src/" + id + ".worktrees"}}
	}
	note := func(l *Ledger, id string) {
		t.Helper()
		m := made(id)
		o := fleet.Order{ID: id, Tree: "/src/" + id, Branch: id}
		if err := l.Under().(fenced).NoteMade(t.Context(), window, o, fleet.Tree{Path: "/src/" + id + ".worktrees/" + id, File: "8:1"}, &m); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"left", "waited", "gone"} {
		note(kite, id)
	}
	note(crane, "elsewhere")
	if tree, m, err := kite.Made(t.Context(), window, "left"); err != nil || m == nil || m.Start != "abc" || len(m.Parents) != 1 || tree.File != "8:1" {
		t.Errorf("made is %+v, %+v, %v, want all that was noted", tree, m, err)
	}
	if err := kite.ForgetMade(t.Context(), window, "gone"); err != nil {
		t.Fatal(err)
	}
	if _, m, err := kite.Made(t.Context(), window, "gone"); err != nil || m != nil {
		t.Errorf("what is forgotten is %+v, %v", m, err)
	}
	// One of them is an order still, which is claimed by the daemon that died: it is answered, and so recalled once.
	kite.write(t, clientv3.OpPut(kite.keys.order("kite", "waited"), `{"order":{"ID":"waited","Tree":"/src/waited"},"claim":"dead"}`))
	var mu sync.Mutex // guards recalled
	recalled := map[string]int{}
	serve(t, kite, unheard, func(_ context.Context, o Order) (fleet.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		recalled[o.Order.ID]++
		return fleet.Outcome{Outcome: fleet.Accepted, Tree: o.Order.Tree}, nil
	})
	await(t, "both are recalled", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return recalled["left"] > 0 && recalled["waited"] > 0
	})
	await(t, "the order is answered", func() bool { return kite.count(t, kite.keys.answer("kite", "waited")) == 1 })
	mu.Lock()
	defer mu.Unlock()
	if want := map[string]int{"left": 1, "waited": 1}; !maps.Equal(recalled, want) {
		t.Errorf("recalled are %v, want %v", recalled, want)
	}
}

// TestAnEtcdBegunAnewIsFollowed: its revisions begin anew too, and a watch that waited for those of before would hear nothing.
func TestAnEtcdBegunAnewIsFollowed(t *testing.T) {
	t.Parallel()
	etcd := oneNode(t)
	kite := open(t, etcd.Endpoints())
	crane := kite.again(t, func(o *Options) { o.Node = "crane" })
	serve(t, kite, func(_ context.Context, o Order) (fleet.Outcome, error) {
		return fleet.Outcome{Outcome: fleet.Accepted, Tree: o.Order.Tree, Member: "M"}, nil
	}, unheard)
	for range 20 { // so that it does not come as far again by itself
		if _, err := send(t, crane, order("/src/api"), window); err != nil {
			t.Fatal(err)
		}
	}
	etcd.Wipe(0)
	etcd.Run(0)
	await(t, "kite is present again", func() bool {
		res, err := kite.get(t, kite.keys.here())
		return err == nil && len(res.Kvs) == 1
	})
	if out, err := send(t, crane, order("/src/api"), window); err != nil || out.Member != "M" {
		t.Errorf("outcome %+v, %v, want it carried out", out, err)
	}
}
