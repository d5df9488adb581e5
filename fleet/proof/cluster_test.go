package proof_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"fleetdeck/fleet/cluster"
	"fleetdeck/fleet/cluster/etcdrun"
	"fleetdeck/fleet/cluster/netlab"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/proof"
)

// TestEveryAnswerOfTheClusterHasAnOrder is the short form of TestLongOfTheCluster.
func TestEveryAnswerOfTheClusterHasAnOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
	newHosts(t, seedOf(t), 24).run(t, 600)
}

// TestLongOfTheCluster makes as many operations as -cluster says, by 64 dispatchers.
func TestLongOfTheCluster(t *testing.T) {
	if *clusterFlag == 0 {
		t.Skip("long: it runs with -cluster 100000")
	}
	newHosts(t, seedOf(t), 64).run(t, *clusterFlag)
}

// hosts is a driver of histories of three hosts and three etcd nodes, each with a network of its own. Each window is a fleet of its
// own, so that what a process that was killed asked for can come late in no other.
type hosts struct {
	t     *testing.T
	rand  *rand.Rand
	lab   *netlab.Lab // three hosts, then three nodes
	etcd  *etcdrun.Cluster
	eye   *clientv3.Client // which no fault of the network blinds
	clock map[string]time.Duration

	dispatchers []*actor
	on          map[*actor]int  // which host it is on
	killed      map[*actor]bool // by a fault
	clients     int

	total  int
	kinds  map[string]int
	faults map[string]int
}

func newHosts(t *testing.T, seed uint64, dispatchers int) *hosts {
	t.Helper()
	h := &hosts{
		t: t, rand: rand.New(rand.NewPCG(seed, 0)), lab: netlab.New(t, append(slices.Clone(hostNames), "n0", "n1", "n2")...),
		on: map[*actor]int{}, killed: map[*actor]bool{}, kinds: map[string]int{}, faults: map[string]int{},
		clock: map[string]time.Duration{hostNames[0]: 0, hostNames[1]: 7 * time.Minute, hostNames[2]: -11 * time.Minute},
	}
	var places []etcdrun.Place
	for _, n := range h.lab.Hosts[3:] {
		places = append(places, etcdrun.Place{Address: n.Address, Enter: n.Net()})
	}
	h.etcd = etcdrun.StartAt(t, etcdrun.Options{}, places...)
	var err error
	if h.eye, err = clientv3.New(clientv3.Config{Endpoints: h.etcd.Sockets(), Logger: zap.NewNop(), DialTimeout: patience}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.eye.Close() })
	t.Cleanup(func() {
		for _, d := range h.dispatchers {
			d.end()
		}
	})
	for i := range dispatchers {
		d, err := h.hire(i % len(hostNames))
		if err != nil {
			t.Fatal(err)
		}
		h.dispatchers = append(h.dispatchers, d)
	}
	for _, d := range h.dispatchers {
		if alive, err := d.await(patience); !alive || err != nil {
			t.Fatalf("a dispatcher does not come up: %v", err)
		}
	}
	return h
}

// hire starts a dispatcher on a host. It says when it is ready.
func (h *hosts) hire(host int) (*actor, error) {
	h.clients++
	at := h.lab.Hosts[host]
	d, err := beginIn(at.Net(), h.clients, "proof-dispatcher", strings.Join(h.etcd.Endpoints(), ","), at.Name, h.clock[at.Name].String(),
		strconv.FormatUint(h.rand.Uint64(), 10), fmt.Sprintf("d%d", h.clients))
	if err == nil {
		h.on[d] = host
	}
	return d, err
}

// attend keeps all hosts of a fleet present, whatever happens to their network: nobody is refused for their absence.
func (h *hosts) attend(name string) (leave func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var attending sync.WaitGroup
	leave = func() { cancel(); attending.Wait() }
	for _, host := range hostNames {
		l := cluster.New(cluster.Options{Endpoints: h.etcd.Sockets(), Fleet: name, Node: host, Slots: clusterPool, Now: process.Now})
		attending.Go(func() {
			defer l.Close()
			l.Attend(ctx, cluster.Presence{Daemon: host}, func(error) {})
		})
	}
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		res, err := h.eye.Get(asking, "/fleetdeck/v1/"+name+"/node/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		cancel()
		if err == nil && res.Count == int64(len(hostNames)) {
			return leave, nil
		}
		if time.Now().After(until) {
			leave()
			return nil, fmt.Errorf("the hosts of %s do not come up: %v", name, err)
		}
	}
}

// window lets all dispatchers make n operations each in a new fleet, through faults, and checks what they did.
func (h *hosts) window(name string, n int) error {
	leave, err := h.attend(name)
	if err != nil {
		return err
	}
	defer leave()
	for _, d := range h.dispatchers {
		d.ask(n, name)
	}
	done := make(chan struct{})
	var harming sync.WaitGroup
	harming.Go(func() { h.harm(done) })
	for _, d := range h.dispatchers {
		if _, aerr := d.await(3 * patience); aerr != nil {
			err = aerr
		}
	}
	close(done)
	harming.Wait()
	if err != nil {
		return err
	}
	all := slices.Clone(h.dispatchers)
	for i, d := range h.dispatchers {
		if !h.killed[d] {
			continue
		}
		<-d.ended
		if h.dispatchers[i], err = h.hire(h.on[d]); err != nil {
			return err
		}
		if alive, err := h.dispatchers[i].await(patience); !alive || err != nil {
			return errors.Join(errors.New("a dispatcher does not come up"), err)
		}
	}
	var ops []proof.Op
	var stays []proof.Stay
	for _, d := range all {
		o, s := d.take()
		ops, stays = append(ops, o...), append(stays, s...)
	}
	h.total += len(ops)
	for _, op := range ops {
		h.kinds[string(op.Kind)+" "+string(op.Result)+" "+string(op.Code)]++
	}
	log, err := readLog(h.eye, name)
	if err != nil {
		return err
	}
	return log.check(ops, stays)
}

// run goes on until so many operations were made and checked, and nothing but members is left.
func (h *hosts) run(t *testing.T, ops int) {
	t.Helper()
	began := time.Now()
	var fleets []string
	for h.total < ops {
		name := fmt.Sprintf("w%d", len(fleets))
		fleets = append(fleets, name)
		if err := h.window(name, 15); err != nil {
			draw(t, err)
			t.Fatalf("window %d, after %d operations: %v", len(fleets), h.total, err)
		}
	}
	for _, name := range fleets {
		for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			left, err := leased(h.eye, name)
			if err == nil && len(left) == 0 {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("left behind in fleet %s: %v, %v", name, left, err)
			}
		}
	}
	t.Logf("%d operations of %d processes in %d windows, %.0f a second: every one explained", h.total, h.clients, len(fleets), float64(h.total)/time.Since(began).Seconds())
	for _, kind := range sortedKeys(h.kinds) {
		t.Logf("%8d %s", h.kinds[kind], kind)
	}
	for _, what := range sortedKeys(h.faults) {
		t.Logf("%8d times %s", h.faults[what], what)
	}
}
