package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/ledger/ledgertest"
)

const (
	window  = time.Minute
	patient = time.Minute
)

// twoArchitects is the slot table of the tests.
var twoArchitects = []fleet.Slot{
	{Name: "architect-1", Role: "architect", Profile: "shell"}, {Name: "architect-2", Role: "architect", Profile: "shell"},
}

func TestMain(m *testing.M) {
	ledgertest.Main(func(name string) (ledger.Ledger, error) {
		endpoints, fleetName, _ := strings.Cut(name, " ")
		return New(options(strings.Split(endpoints, ","), fleetName)), nil
	})
	etcdrun.Parallel(8)
	os.Exit(m.Run())
}

func options(endpoints []string, fleetName string) Options {
	return Options{Endpoints: endpoints, Fleet: fleetName, Node: "kite", Slots: twoArchitects, Now: process.Now}
}

var fleets atomic.Int64

// open gives the empty ledger of a new fleet, with its daemon present.
func open(t *testing.T, endpoints []string, change ...func(*Options)) *Ledger {
	t.Helper()
	o := options(endpoints, fmt.Sprintf("fleet-%d", fleets.Add(1)))
	for _, c := range change {
		c(&o)
	}
	l := New(o)
	t.Cleanup(func() { l.Close() })
	attend(t, l, "one")
	return l
}

// attend keeps the daemon of l present as long as the test runs.
func attend(t *testing.T, l *Ledger, daemon string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		l.Attend(ctx, Presence{Daemon: daemon}, func(err error) { t.Logf("attend: %v", err) })
	}()
	t.Cleanup(func() { cancel(); <-gone })
	await(t, "the node is present", func() bool {
		res, err := l.get(t, l.keys.here())
		return err == nil && len(res.Kvs) == 1
	})
}

func (l *Ledger) get(t *testing.T, key string) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(t.Context(), window)
	defer cancel()
	c, err := l.client()
	if err != nil {
		return nil, err
	}
	return c.Get(ctx, key)
}

// again is another host's ledger of the same fleet, with its own connection.
func (l *Ledger) again(t *testing.T, change ...func(*Options)) *Ledger {
	o := l.Options
	for _, c := range change {
		c(&o)
	}
	other := New(o)
	t.Cleanup(func() { other.Close() })
	return other
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patient)
		}
	}
}

func draft(tree string) ledger.Draft {
	return ledger.Draft{Tree: fleet.Tree{Path: tree}, Role: fleet.RoleDev, Profile: "shell", Grace: 90 * time.Second}
}

func architect(tree string) ledger.Draft {
	d := draft(tree)
	d.Role = "architect"
	return d
}

func nobody(context.Context) (fleet.Roster, error) { return fleet.Roster{}, nil }

func codeOf(err error) fleet.Code {
	if r := fleet.RefusalOf(err); r != nil {
		return r.Code
	}
	return ""
}

func reserve(t *testing.T, l *Ledger, d ledger.Draft) fleet.Entry {
	t.Helper()
	e, err := l.Reserve(t.Context(), window, d, nobody)
	if err != nil {
		t.Fatalf("reserve %s: %v", d.Tree.Path, err)
	}
	return e
}

// fence is the creation of the hold id.
func (l *Ledger) fence(t *testing.T, id string) int64 {
	t.Helper()
	h, err := l.find(t.Context(), id)
	if err != nil || h == nil {
		t.Fatalf("find %s: %v, %v", id, h, err)
	}
	return h.fence
}

func bind(t *testing.T, l *Ledger, e fleet.Entry) {
	t.Helper()
	if err := l.Admit(t.Context(), window, e.Tree, e.ID, func(fleet.Entry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := l.Bind(t.Context(), e.ID, "M"+e.ID); err != nil {
		t.Fatal(err)
	}
}

func oneNode(t *testing.T) *etcdrun.Cluster { return etcdrun.Start(t, 1) }

func nothing([]*mvccpb.KeyValue) {}

// count says how many keys stand below prefix.
func (l *Ledger) count(t *testing.T, prefix string) (n int) {
	t.Helper()
	if _, err := l.list(t.Context(), prefix, func(kvs []*mvccpb.KeyValue) { n = len(kvs) }); err != nil {
		t.Fatal(err)
	}
	return n
}
