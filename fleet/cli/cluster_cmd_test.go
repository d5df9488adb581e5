package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
)

// clusterTable is what makes a configuration that of a node.
func clusterTable(etcd *etcdrun.Cluster, node string) string {
	return fmt.Sprintf("[cluster]\nendpoints = [%q]\nfleet = \"web\"\nnode = %q\n", etcd.Endpoints()[0], node)
}

const twoSlots = `
[[slots]]
name = "architect-1"
role = "architect"
profile = "worker"
[[slots]]
name = "architect-2"
role = "architect"
profile = "worker"
`

// setConfig gives the rig another configuration.
func (r *rig) setConfig(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.config, []byte(strings.ReplaceAll(text, "DIR", r.dir)), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// pids are the processes of the living members of this host, which is kite where it has a name, by their ids.
func (r *rig) pids() map[string]int {
	r.t.Helper()
	pids := map[string]int{}
	for _, m := range append(on(r, ""), on(r, "kite")...) {
		pids[m.ID] = m.Pid
	}
	return pids
}

type nodeState struct {
	Node, State                  string
	Members, Trees, Reservations int
}

// clusterStatus is what the cluster knows of node.
func (r *rig) clusterStatus(node string) nodeState {
	r.t.Helper()
	var s struct{ Nodes []nodeState }
	r.must(&s, "cluster", "status")
	for _, n := range s.Nodes {
		if n.Node == node {
			return n
		}
	}
	return nodeState{Node: node}
}

func TestARunningFleetMovesIntoTheClusterAndBackWithoutEndingAMember(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	const n = 20
	base := agents + twoSlots
	kite := newRig(t, base)
	kite.must(nil, "up")
	for i := range n {
		args := []string{"--profile", "worker", "--wait"}
		if i < 2 {
			args = append(args, "--role", "architect")
		}
		if out, code := kite.dispatch(kite.repo(fmt.Sprint(i)), args...); code != 0 {
			t.Fatalf("dispatch: exit %d, %+v", code, out)
		}
	}
	slow, code := kite.dispatch(kite.repo("slow"), "--profile", "slow")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, slow)
	}
	kite.must(nil, "reserve", kite.repo("held"), "--grace", "10m")
	before := kite.pids()
	unchanged := func(when string, r *rig) {
		t.Helper()
		if now := r.pids(); len(now) != len(before) {
			t.Fatalf("%s %d members live, want %d", when, len(now), len(before))
		} else {
			for id, pid := range before {
				if now[id] != pid {
					t.Errorf("%s member %s is pid %d, want %d", when, id, now[id], pid)
				}
			}
		}
	}
	// A host that takes no part has one of the two slots: nothing may be changed.
	kite.setConfig(base + clusterTable(etcd, "kite"))
	crane := newRig(t, base+clusterTable(etcd, "crane"))
	crane.must(nil, "up")
	taken, code := crane.dispatch(crane.repo("web"), "--role", "architect", "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch on crane: exit %d, %+v", code, taken)
	}
	if _, stderr, code := kite.fleetdeck("cluster", "import"); code != 3 || !strings.Contains(stderr, "architect-1") || !strings.Contains(stderr, "crane") {
		t.Errorf("import over a slot that is taken: exit %d, %s, want 3 with who has it", code, stderr)
	}
	if data, _ := kite.fileState(); !strings.Contains(data, `"fleetdeck.reservations/1"`) || kite.daemonPid() == 0 {
		t.Errorf("after a refused import the file is %s, want it as it was, and the daemon up", data)
	}
	unchanged("after a refused import", kite)
	crane.must(nil, "stop", taken.Member)
	crane.must(nil, "down")

	// Somebody dispatches by the old file all the time: never beside somebody.
	old := newOldHand(kite, base)
	kite.must(nil, "cluster", "import")
	old.stop()
	kite.await("the cluster knows of kite, its trees, a launch and a reservation", func() bool {
		s := kite.clusterStatus("kite")
		return s.State == "present" && s.Members == n && s.Trees == n && s.Reservations == 2
	})
	unchanged("after the import", kite)
	kite.must(nil, "cluster", "import") // what is done is done again
	unchanged("after a second import", kite)

	// The file serves nobody any more.
	if out, code := old.dispatch("1"); code != 3 || out.Code != fleet.CodeMoved || !strings.Contains(out.Hint, "[cluster]") {
		t.Errorf("dispatch by the old file: exit %d, %+v, want it refused as moved", code, out)
	}
	kite.must(nil, "down")
	if _, stderr, code := old.fleetdeck("up"); code != 3 || !strings.Contains(stderr, "in etcd at") {
		t.Errorf("a daemon by the old file: exit %d, %s, want it refused", code, stderr)
	}
	kite.must(nil, "up")
	if out, code := kite.dispatch(kite.repo("1"), "--profile", "worker"); code != 3 || out.Code != fleet.CodeTreeOccupied {
		t.Errorf("dispatch to a member's tree: exit %d, %+v, want it occupied", code, out)
	}
	if err := os.WriteFile(kite.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kite.await("the launch that was under way is listed", func() bool { return len(kite.pids()) == n+1 })
	before = kite.pids()

	crane.must(nil, "up")
	kite.await("crane is there", func() bool { return kite.clusterStatus("crane").State == "present" })
	if _, stderr, code := kite.fleetdeck("cluster", "export"); code != 3 || !strings.Contains(stderr, "crane") {
		t.Errorf("export with a slot while others are there: exit %d, %s, want 3", code, stderr)
	}
	unchanged("after a refused export", kite)
	crane.must(nil, "down")
	kite.must(nil, "cluster", "export")
	if s := crane.clusterStatus("kite"); s.Trees != 0 || s.Reservations != 0 || s.State == "present" {
		t.Errorf("after the export the cluster knows of kite %+v, want nothing", s)
	}
	if _, stderr, code := kite.fleetdeck("up"); code != 3 || !strings.Contains(stderr, "cluster import") {
		t.Errorf("a daemon on the cluster after the export: exit %d, %s, want it refused", code, stderr)
	}
	kite.setConfig(base)
	kite.must(nil, "up")
	unchanged("after the export", kite)
	if rows := kite.reservations(); len(rows) != 1 || rows[0].Tree != kite.repo("held") {
		t.Errorf("reservations %+v, want the one that stood", rows)
	}
	if starts := kite.starts(); len(starts) != n+1 {
		t.Errorf("%d agents were started, want %d", len(starts), n+1)
	}
}

// oldHand is somebody who dispatches on the rig's host by a configuration without a cluster.
type oldHand struct {
	*rig
	quit chan struct{}
	done chan struct{}
}

func newOldHand(r *rig, config string) *oldHand {
	other := *r
	other.config = r.dir + "/old.toml"
	o := &oldHand{&other, make(chan struct{}), make(chan struct{})}
	o.setConfig(config)
	go func() {
		defer close(o.done)
		for i := 0; ; i++ {
			select {
			case <-o.quit:
				return
			default:
			}
			cmd := o.command("dispatch", "--json", r.dir+"/src/"+fmt.Sprint(i%20), "--profile", "worker")
			if cmd.Run() == nil {
				r.t.Errorf("a dispatch into tree %d was accepted", i%20)
			}
		}
	}()
	return o
}

func (o *oldHand) stop() { close(o.quit); <-o.done }

func (o *oldHand) dispatch(tree string) (fleet.Outcome, int) {
	return o.rig.dispatch(o.dir+"/src/"+tree, "--profile", "worker")
}

func TestALostHostIsReleasedByNameAndItsMembersEndWhereTheirPlaceIsTaken(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite, crane := newHost(t, etcd, "kite"), newHost(t, etcd, "crane")
	api, web := kite.repo("api"), crane.repo("web")
	architect, code := kite.dispatch(api, "--role", "architect", "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, architect)
	}
	plain, code := kite.dispatch(kite.repo("plain"), "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, plain)
	}
	release := func(want int, says string, args ...string) {
		t.Helper()
		if stdout, stderr, code := crane.fleetdeck(append([]string{"release"}, args...)...); code != want || !strings.Contains(stdout+stderr, says) {
			t.Errorf("release %v: exit %d, %s%s, want %d with %q", args, code, stdout, stderr, want, says)
		}
	}
	crane.await("crane sees kite's members", func() bool { return crane.clusterStatus("kite").Members == 2 })
	release(3, "present", "--lost", "kite", "--yes")
	release(7, "heron", "--lost", "heron", "--yes")
	var slots []struct{ State, Node, Member string }
	if crane.must(&slots, "slots"); len(slots) != 1 || slots[0].Node != "kite" || slots[0].Member != architect.Member || slots[0].State != fleet.SlotBound {
		t.Errorf("slots on crane: %+v, want kite's architect", slots)
	}
	if stdout, _, _ := crane.fleetdeck("trees", "--all"); !strings.Contains(stdout, "kite:"+api) {
		t.Errorf("trees --all on crane: %s, want kite's", stdout)
	}

	pids := kite.pids()
	kite.must(nil, "down") // its members go on
	crane.await("kite is lost", func() bool { return crane.clusterStatus("kite").State == "lost" })
	release(2, "--yes", "--lost", "kite")
	release(2, "", "--yes", web)
	release(0, "member "+plain.Member, "--lost", "kite", "--dry-run")
	if s := crane.clusterStatus("kite"); s.Trees != 2 {
		t.Errorf("after a dry run kite holds %+v, want both trees", s)
	}
	release(0, api, "--lost", "kite", "--yes")
	beside, code := crane.dispatch(web, "--role", "architect", "--profile", "worker", "--wait")
	if code != 0 || beside.Slot != "architect-1" {
		t.Fatalf("dispatch to the slot that was released: exit %d, %+v", code, beside)
	}

	kite.must(nil, "up")
	kite.await("the architect whose slot was given away has ended", func() bool { return len(kite.pids()) == 1 })
	if m := on(kite, "kite"); len(m) != 1 || m[0].ID != plain.Member || m[0].Pid != pids[plain.Member] || processAlive(pids[architect.Member]) {
		t.Errorf("kite has %+v, want %s alone, as it was", m, plain.Member)
	}
	kite.await("its other tree is held again", func() bool { return crane.clusterStatus("kite").Trees == 1 })
	var said []string
	stdout, _, _ := kite.fleetdeck("events")
	for _, line := range strings.Split(stdout, "\n") {
		if strings.Contains(line, "hold_lost") || strings.Contains(line, "hold_retaken") {
			said = append(said, line)
		}
	}
	if len(said) != 2 || !strings.Contains(strings.Join(said, "\n"), "crane:"+web) {
		t.Errorf("events %q, want one for each member, and who has the slot", said)
	}
	if m := on(crane, "crane"); len(m) != 1 || m[0].ID != beside.Member {
		t.Errorf("crane has %+v, want its architect", m)
	}
}

// TestAnOrderWhoseDaemonIsKilledIsAnsweredByTheNext kills the daemon that carries out another host's order while the agent boots.
func TestAnOrderWhoseDaemonIsKilledIsAnsweredByTheNext(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite, crane := newHost(t, etcd, "kite"), newHost(t, etcd, "crane")
	tree := kite.repo("api")
	type answer struct {
		fleet.Outcome
		code int
	}
	answered := make(chan answer, 1)
	go func() {
		out, code := crane.dispatch("kite:"+tree, "--profile", "slow", "--wait")
		answered <- answer{out, code}
	}()
	kite.await("the agent boots", func() bool { return len(kite.starts()) == 1 })
	kite.kill()
	kite.must(nil, "up")
	if err := os.WriteFile(kite.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := <-answered
	if m := on(kite, "kite"); got.code != 0 || len(m) != 1 || got.Member != m[0].ID || got.Tree != "kite:"+tree || len(kite.starts()) != 1 {
		t.Errorf("exit %d, %+v, with members %+v: want the one member that came of it", got.code, got.Outcome, m)
	}
}

// TestEtcdWithoutItsDataIsToldAgainWhatIsHeld deletes everything below the fleet, as a cluster does that was begun anew.
func TestEtcdWithoutItsDataIsToldAgainWhatIsHeld(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite := newHost(t, etcd, "kite")
	sent, code := kite.dispatch(kite.repo("api"), "--role", "architect", "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, sent)
	}
	pids := kite.pids()
	etcd.Wipe(0)
	etcd.Run(0)
	kite.await("its tree and its member are known again", func() bool {
		s := kite.clusterStatus("kite")
		return s.State == "present" && s.Trees == 1 && s.Members == 1
	})
	if now := kite.pids(); len(now) != 1 || now[sent.Member] != pids[sent.Member] {
		t.Errorf("members %v, want %v", now, pids)
	}
	if out, code := kite.dispatch(kite.repo("other"), "--role", "architect", "--profile", "worker"); code != 3 || out.Code != fleet.CodeSlotUnavailable {
		t.Errorf("dispatch to its slot: exit %d, %+v, want it taken", code, out)
	}
}
