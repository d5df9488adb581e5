package netlab_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cli"
	"fleetdeck/fleet/cluster/etcdrun"
	"fleetdeck/fleet/cluster/netlab"
)

// TestMain lets the test binary be the program on each host.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(cli.Main(os.Args[1:], cli.Build{Version: "test"}))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	etcdrun.Parallel(4)
	os.Exit(m.Run())
}

// patience bounds every wait for a condition. No test passes or fails by how fast a machine is.
const patience = time.Minute

// fleetOf is a fleet of real hosts: each has its own daemon, and three etcd nodes keep what they share.
type fleetOf struct {
	t     *testing.T
	lab   *netlab.Lab
	etcd  *etcdrun.Cluster
	eye   *clientv3.Client // which no fault of the network blinds
	hosts []*host
}

type host struct {
	*netlab.Host
	t *testing.T
}

const config = `
grace = "5s"
lock_wait = "3s"
[profiles.worker]
command = ["sh", "-c", "echo $FLEETDECK_MEMBER >> %[1]s/starts; exec sleep 600"]
[profiles.never]
command = ["sh", "-c", "echo $FLEETDECK_MEMBER >> %[1]s/starts; exec sleep 600"]
ready = "pattern:never"
[cluster]
endpoints = [%[2]s]
fleet = "web"
node = %[3]q
`

func newFleet(t *testing.T, names ...string) *fleetOf {
	t.Helper()
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
	f := &fleetOf{t: t, lab: netlab.New(t, append(names, "n0", "n1", "n2")...)}
	var places []etcdrun.Place
	for _, n := range f.lab.Hosts[len(names):] {
		places = append(places, etcdrun.Place{Address: n.Address, Enter: n.Net()})
	}
	f.etcd = etcdrun.StartAt(t, etcdrun.Options{}, places...)
	var err error
	if f.eye, err = clientv3.New(clientv3.Config{Endpoints: f.etcd.Sockets(), Logger: zap.NewNop(), DialTimeout: patience}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.eye.Close() })
	var endpoints []string
	for _, e := range f.etcd.Endpoints() {
		endpoints = append(endpoints, fmt.Sprintf("%q", e))
	}
	for i, name := range names {
		h := &host{f.lab.Hosts[i], t}
		text := fmt.Sprintf(config, f.lab.Dir, strings.Join(endpoints, ", "), name)
		if err := os.WriteFile(filepath.Join(h.Disk, "fleetdeck.toml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		f.hosts = append(f.hosts, h)
		h.must(nil, "up")
		t.Cleanup(func() {
			if log, err := os.ReadFile(filepath.Join(h.Disk, "state", "daemon.log")); err == nil && t.Failed() {
				t.Logf("daemon.log of %s:\n%s", name, log)
			}
		})
	}
	return f
}

// fleetdeck runs the program on h.
func (h *host) fleetdeck(args ...string) (stdout, stderr string, code int) {
	h.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	// It leaves the console's and the user's settings to the host.
	argv := append([]string{exe, args[0], "--state", "state", "--config", "fleetdeck.toml"}, args[1:]...)
	cmd := h.Command(context.Background(), argv...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		h.t.Fatalf("run %v: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (h *host) must(v any, args ...string) {
	h.t.Helper()
	if v != nil {
		args = append(args[:1:1], append([]string{"--json"}, args[1:]...)...)
	}
	stdout, stderr, code := h.fleetdeck(args...)
	if code != 0 {
		h.t.Fatalf("fleetdeck %v on %s: exit %d: %s%s", args, h.Name, code, stdout, stderr)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(stdout), v); err != nil {
			h.t.Fatalf("fleetdeck %v: %v in %q", args, err, stdout)
		}
	}
}

func (h *host) dispatch(tree string, args ...string) (out fleet.Outcome, code int) {
	h.t.Helper()
	stdout, stderr, code := h.fleetdeck(append([]string{"dispatch", "--json", tree, "--no-git"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		h.t.Logf("dispatch %s %v: exit %d, no outcome: %s", tree, args, code, stderr)
	}
	return out, code
}

// tree makes a directory on h's disk, and gives its path there.
func (f *fleetOf) tree(h *host, name string) string {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Join(h.Disk, "src", name), 0o755); err != nil {
		f.t.Fatal(err)
	}
	return filepath.Join(f.lab.Dir, "src", name)
}

// row is a member as a host shows it.
type row struct {
	Node, ID, Tree string
	State          fleet.State
}

func (h *host) members() (rows []row) {
	h.t.Helper()
	h.must(&rows, "members")
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.ID, b.ID)) })
	return rows
}

func (h *host) starts() int {
	data, err := os.ReadFile(filepath.Join(h.Disk, "starts"))
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// held are the states of what stands in a node's trees, by reservation.
func (f *fleetOf) held(node string) map[string]string {
	f.t.Helper()
	res, err := f.eye.Get(f.t.Context(), "/fleetdeck/v1/web/hold/"+node+"/", clientv3.WithPrefix())
	if err != nil {
		f.t.Fatal(err)
	}
	states := map[string]string{}
	for _, kv := range res.Kvs {
		var h struct{ ID, State string }
		if err := json.Unmarshal(kv.Value, &h); err != nil {
			f.t.Fatal(err)
		}
		states[h.ID] = h.State
	}
	return states
}

func (f *fleetOf) await(what string, ok func() bool) {
	f.t.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			f.t.Fatalf("%s: not within %s", what, patience)
		}
	}
}
