package cluster

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
)

// following is what a follower was told last.
type following struct {
	mu    sync.Mutex // guards both below
	nodes []fleet.Node
	info  fleet.ClusterInfo
}

func (f *following) tell(nodes []fleet.Node, info fleet.ClusterInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes, f.info = nodes, info
}

func (f *following) told() ([]fleet.Node, fleet.ClusterInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes, f.info
}

// follow follows the fleet of l as long as the test runs.
func follow(t *testing.T, l *Ledger) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	f, ended := &following{}, make(chan struct{})
	go func() {
		defer close(ended)
		l.Follow(ctx, f.tell)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return f
}

// tells waits until f was told what l reads from etcd.
func (f *following) tells(t *testing.T, what string, l *Ledger) {
	t.Helper()
	var diff string
	defer func() {
		if t.Failed() {
			t.Log(diff)
		}
	}()
	await(t, what, func() bool {
		want, err := l.Nodes(t.Context())
		nodes, _ := f.told()
		diff = cmp.Diff(want, nodes)
		return err == nil && diff == ""
	})
}

// someChanges has another host come with members and holds, and some of all that go again.
func someChanges(t *testing.T, kite *Ledger, step string) {
	t.Helper()
	crane := kite.again(t, func(o *Options) { o.Node = "crane" })
	gone := reserve(t, kite, draft("/src/gone-"+step))
	held := reserve(t, kite, architect("/src/"+step))
	bind(t, kite, held)
	for _, members := range [][]fleet.Member{
		{{ID: "M1-" + step, Tree: "/src/web"}, {ID: "M2-" + step, Tree: "/src/docs"}}, {{ID: "M2-" + step, Tree: "/src/docs", State: fleet.StateWaiting}},
	} {
		if err := crane.Publish(t.Context(), members); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := kite.Release(t.Context(), window, gone.Tree, gone.ID); err != nil || !ok {
		t.Fatalf("release: %t, %v", ok, err)
	}
	if err := kite.Vacate(t.Context(), window, held.ID); err != nil {
		t.Fatal(err)
	}
	reserve(t, kite, architect("/src/last-"+step))
	kite.vacateSlots(t)
}

// vacateSlots gives back all that was reserved for an architect, so that the next can be.
func (l *Ledger) vacateSlots(t *testing.T) {
	t.Helper()
	entries, err := l.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Role != "architect" {
			continue
		}
		if _, ok, err := l.Release(t.Context(), window, e.Tree, e.ID); err != nil || !ok {
			t.Fatalf("release: %t, %v", ok, err)
		}
	}
}

func TestAFollowerMissesNothing(t *testing.T) {
	t.Parallel()
	etcd := oneNode(t)
	for _, c := range []struct {
		name   string
		before func(w *wire)
		after  func(t *testing.T, l *Ledger, w *wire)
	}{
		{"while it listens", func(*wire) {}, func(*testing.T, *Ledger, *wire) {}},
		{"while it was cut off", (*wire).loseAnswers, func(_ *testing.T, _ *Ledger, w *wire) { w.heal() }},
		{"that etcd has compacted meanwhile", (*wire).loseAnswers, func(t *testing.T, l *Ledger, w *wire) {
			res, err := l.get(t, l.keys.here())
			if err != nil {
				t.Fatal(err)
			}
			c, err := l.client()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Compact(t.Context(), res.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
				t.Fatal(err)
			}
			w.heal()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := open(t, etcd.Endpoints())
			w := newWire(t, etcd.Endpoints()[0])
			f := follow(t, l.again(t, func(o *Options) { o.Endpoints = []string{w.endpoint()} }))
			someChanges(t, l, "one")
			f.tells(t, "what there was", l)
			c.before(w)
			someChanges(t, l, "two")
			c.after(t, l, w)
			f.tells(t, "what happened", l)
		})
	}
}

func TestWhatAFollowerWasToldStaysWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	l := open(t, etcd.Endpoints())
	someChanges(t, l, "one")
	f := follow(t, l.again(t))
	f.tells(t, "what there was", l)
	await(t, "the server has answered", func() bool { _, info := f.told(); return len(info.Endpoints) == 1 && info.Endpoints[0].Leader })
	before, _ := f.told()

	etcd.Kill(0)
	await(t, "it is told that etcd is not heard", func() bool { _, info := f.told(); return info.Error != "" })
	nodes, info := f.told()
	if diff := cmp.Diff(before, nodes); diff != "" {
		t.Errorf("while etcd is away (-before +now):\n%s", diff)
	}
	if info.HeardAt.IsZero() || time.Since(info.HeardAt) < 0 || info.Node != "kite" {
		t.Errorf("while etcd is away: %+v, want when it was heard last", info)
	}
	etcd.Run(0)
	await(t, "it is told that etcd is back", func() bool { _, info := f.told(); return info.Error == "" })
	await(t, "the daemon is present again", func() bool { n, err := l.Nodes(t.Context()); return err == nil && len(n) == 2 && !n[1].Lost })
	someChanges(t, l, "two")
	f.tells(t, "what happened after that", l)
}

func TestADamagedKeyHidesNoOther(t *testing.T) {
	t.Parallel()
	l := open(t, oneNode(t).Endpoints())
	f := follow(t, l.again(t))
	someChanges(t, l, "one")
	f.tells(t, "what there was", l)
	want, err := l.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.client()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{l.keys.members("crane") + "M3", l.keys.allHolds() + "crane/x", l.keys.root() + "keeper/crane", l.keys.members("heron") + "M4"} {
		if _, err := c.Put(t.Context(), key, "{"); err != nil {
			t.Fatal(err)
		}
	}
	reserve(t, l, draft("/src/after"))
	await(t, "what came after it", func() bool {
		nodes, _ := f.told()
		return len(nodes) == len(want) && len(nodes[1].Held) == len(want[1].Held)+1 && cmp.Equal(nodes[0], want[0])
	})
}
