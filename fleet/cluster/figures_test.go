package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/cluster/etcdrun"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
)

var (
	figuresFlag = flag.Bool("figures", false, "measure the figures of docs/cluster-limits.md")
	hostsFlag   = flag.Int("hosts", 500, "how many hosts TestFigures/limits writes")
	treesFlag   = flag.Int("trees", 10000, "how many trees with a member each TestFigures/limits writes")
)

// TestFigures measures. Nothing in it passes or fails by how fast a machine is.
func TestFigures(t *testing.T) {
	if !*figuresFlag {
		t.Skip("long: it runs with -figures")
	}
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("load %s", load)
	t.Run("admission", admissionFigures)
	t.Run("takeover", takeoverFigures)
	t.Run("limits", limitFigures)
}

// synced are n nodes that write through to the disk, as real ones do.
func synced(t *testing.T, n int) *etcdrun.Cluster {
	return etcdrun.StartAt(t, etcdrun.Options{Fsync: true}, make([]etcdrun.Place, n)...)
}

// spread are the middle and the 99th of a hundred.
func spread(took []time.Duration) string {
	slices.Sort(took)
	return fmt.Sprintf("p50 %s, p99 %s of %d", took[len(took)/2].Round(10*time.Microsecond), took[len(took)*99/100].Round(10*time.Microsecond), len(took))
}

// admissionFigures are of a reservation and its settling on the file and on clusters, in turns, so that each has the same neighbours.
func admissionFigures(t *testing.T) {
	file, err := book.Open(t.TempDir(), process.Now)
	if err != nil {
		t.Fatal(err)
	}
	one, three := synced(t, 1), synced(t, 3)
	on := map[string]ledger.Ledger{"file": file, "1 node": open(t, one.Endpoints()), "3 nodes": open(t, three.Endpoints())}
	names := []string{"file", "1 node", "3 nodes"}
	took, seen := map[string][]time.Duration{}, map[string][]time.Duration{}
	for i := range 200 {
		for _, name := range names {
			began := time.Now()
			e, err := on[name].Reserve(t.Context(), window, draft(fmt.Sprintf("/src/tree%d", i)), nobody)
			took[name] = append(took[name], time.Since(began))
			if err == nil {
				err = on[name].Settle(t.Context(), window, e.ID)
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	for _, name := range names {
		ctx, stop := context.WithCancel(t.Context())
		tokens := on[name].Watch(ctx)
		settle := time.After(time.Second) // the pause until a new watch is at rest; it counts for nothing
		for rest := true; rest; {
			select {
			case <-tokens:
			case <-settle:
				rest = false
			}
		}
		for i := range 100 {
			e, err := on[name].Reserve(ctx, window, draft(fmt.Sprintf("/src/seen%d", i)), nobody)
			if err != nil {
				t.Fatal(err)
			}
			<-tokens
			began := time.Now()
			if err := on[name].Settle(ctx, window, e.ID); err != nil {
				t.Fatal(err)
			}
			<-tokens
			seen[name] = append(seen[name], time.Since(began))
		}
		stop()
	}
	for _, name := range names {
		t.Logf("%-8s reserve: %s; ratio of the middle to the file %.1f", name, spread(took[name]), ratio(took[name], took["file"]))
		t.Logf("%-8s from a settle's call to the watch's token: %s", name, spread(seen[name]))
	}
	for _, name := range names[1:] {
		t.Logf("%-8s reservations, settled at once, of 64 at a time: %.0f a second", name, rate(t, on[name]))
	}
	t.Logf("%-8s reservations, settled at once, of 64 at a time: %.0f a second", "file", rate(t, file))
}

func ratio(a, b []time.Duration) float64 { return float64(a[len(a)/2]) / float64(b[len(b)/2]) }

// rate is how many reservations a second 64 callers make and settle, each in a tree of its own.
func rate(t *testing.T, l ledger.Ledger) float64 {
	var made atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for i := range 64 {
		all.Go(func() {
			for time.Since(began) < 5*time.Second {
				e, err := l.Reserve(t.Context(), window, draft(fmt.Sprintf("/src/rate%d", i)), nobody)
				if err == nil {
					err = l.Settle(t.Context(), window, e.ID)
				}
				if err != nil {
					t.Error(err)
					return
				}
				made.Add(1)
			}
		})
	}
	all.Wait()
	return float64(made.Load()) / time.Since(began).Seconds()
}

// takeoverFigures are of the time from the leader's death to the next reservation that is held.
func takeoverFigures(t *testing.T) {
	etcd := synced(t, 3)
	l := open(t, etcd.Endpoints())
	var took []time.Duration
	for round := range 10 {
		leader := ""
		for leader == "" {
			for _, e := range l.Info(t.Context()).Endpoints {
				if e.Leader {
					leader = e.URL
				}
			}
		}
		i := slices.Index(etcd.Endpoints(), leader)
		etcd.Kill(i)
		began := time.Now()
		e := reserve(t, l, draft(fmt.Sprintf("/src/tree%d", round)))
		took = append(took, time.Since(began))
		if err := l.Settle(t.Context(), window, e.ID); err != nil {
			t.Fatal(err)
		}
		etcd.Run(i)
	}
	t.Logf("from the leader's death to the next reservation: %s", spread(took))
}

// limitFigures are of a fleet as large as -hosts and -trees say, written by the ledger itself.
func limitFigures(t *testing.T) {
	etcd := etcdrun.Start(t, 1)
	l := open(t, etcd.Endpoints())
	c, err := l.client()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var writing sync.WaitGroup
	turns := make(chan struct{}, 32)
	for i := range *hostsFlag {
		writing.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if err := populate(t, l, fmt.Sprintf("host%04d", i), *treesFlag / *hostsFlag); err != nil {
				t.Error(err)
			}
		})
	}
	if writing.Wait(); t.Failed() {
		t.FailNow()
	}
	n := float64(*treesFlag)
	t.Logf("%d trees on %d hosts written in %s: reserved, bound and published, %.0f members a second", *treesFlag, *hostsFlag, time.Since(began).Round(time.Second), n/time.Since(began).Seconds())
	res, err := c.Get(t.Context(), l.keys.root(), clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	bytes := 0
	for _, kv := range res.Kvs {
		bytes += len(kv.Key) + len(kv.Value)
	}
	size := func(when string) {
		s, err := c.Status(t.Context(), etcd.Endpoints()[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: database %.1f MB, %.1f MB of it in use", when, float64(s.DbSize)/1e6, float64(s.DbSizeInUse)/1e6)
	}
	t.Logf("%d keys, %.1f MB of keys and values, %.0f bytes a tree", res.Count, float64(bytes)/1e6, float64(bytes)/n)
	size("with its history")
	if _, err := c.Compact(t.Context(), res.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	size("compacted")

	measure := func(what string, do func() error) {
		var took []time.Duration
		for range 10 {
			began := time.Now()
			if err := do(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			took = append(took, time.Since(began))
		}
		t.Logf("%s: %s", what, spread(took))
	}
	host := l.again(t, func(o *Options) { o.Node = "host0007" })
	measure("all hosts with their members and trees (Nodes)", func() error {
		nodes, err := l.Nodes(t.Context())
		if err == nil && len(nodes) < *hostsFlag {
			err = fmt.Errorf("%d hosts", len(nodes))
		}
		return err
	})
	measure("one host's reservations (Read)", func() error { _, err := host.Read(); return err })
	i := 0
	measure("one more reservation", func() error {
		i++
		_, err := l.Reserve(t.Context(), window, draft(fmt.Sprintf("/src/more%d", i)), nobody)
		return err
	})
	watchers(t, l)
}

// populate makes a host with so many members, each in a tree of its own.
func populate(t *testing.T, l *Ledger, node string, trees int) error {
	o := l.Options
	o.Node = node
	h := New(o)
	defer h.Close()
	c, err := h.client()
	if err != nil {
		return err
	}
	if _, err := c.Put(t.Context(), h.keys.here(), `{"daemon":"d","host":"`+node+`","boot":"0b5a3f0e-1111-2222-3333-444444444444","version":"v1.0.0"}`); err != nil {
		return err
	}
	var members []fleet.Member
	for i := range trees {
		tree := fleet.Tree{Path: fmt.Sprintf("/home/kim/src/project-%d/worktrees/feature-%d", i/4, i), File: fleet.FileID(fmt.Sprintf("64768:%d", 1000000+i))}
		e, err := h.Reserve(t.Context(), window, ledger.Draft{Tree: tree, Role: fleet.RoleDev, Profile: "shell", Grace: 10 * time.Minute,
			Dispatcher: fleet.Dispatcher{Pid: 4242, Host: node, Program: "fleetdeck dispatch"}}, nobody)
		if err == nil {
			err = h.Bind(t.Context(), e.ID, strings.ToLower(e.ID[len(e.ID)-8:]))
		}
		if err != nil {
			return err
		}
		members = append(members, fleet.Member{
			ID: strings.ToLower(e.ID[len(e.ID)-8:]), Tree: tree.Path, Role: fleet.RoleDev, RequestedRole: fleet.RoleDev, Profile: "shell", Reservation: e.ID,
			State: fleet.StateWorking, StateMessage: "running the tests of the parser", Pid: 4000 + i, StartedAt: e.ReservedAt, ListedAt: e.ReservedAt,
			CharterSHA256: strings.Repeat("ab", 32),
		})
	}
	return h.Publish(t.Context(), members)
}

// watchers has as many hosts as there are watch one prefix, and measures from a change to the last of them.
func watchers(t *testing.T, l *Ledger) {
	prefix := l.keys.root() + "fan/"
	ctx, stop := context.WithCancel(t.Context())
	var watching, ready sync.WaitGroup
	defer watching.Wait()
	defer stop()
	heard := make(chan struct{}, *hostsFlag)
	for range *hostsFlag {
		host := l.again(t)
		ready.Add(1)
		watching.Go(func() {
			host.mirror(ctx, prefix, func([]*mvccpb.KeyValue) { ready.Done() }, func([]*clientv3.Event) { heard <- struct{}{} }, func() {})
		})
	}
	ready.Wait()
	var took []time.Duration
	for i := range 21 {
		began := time.Now()
		if _, err := l.txn(ctx, nil, []clientv3.Op{clientv3.OpPut(prefix+"x", fmt.Sprint(i))}, nil); err != nil {
			t.Fatal(err)
		}
		for range *hostsFlag {
			<-heard
		}
		if i > 0 { // at the first some may have been listing still
			took = append(took, time.Since(began))
		}
	}
	t.Logf("from a change to the last of %d watchers, each with its own connection: %s", *hostsFlag, spread(took))
}
