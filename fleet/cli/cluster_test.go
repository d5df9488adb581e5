package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
)

// newHost is a rig that is a node of a fleet of many hosts, with its own state directory and daemon. The fleet has one architect. What
// the configuration says more of the cluster, or in tables of its own, is more.
func newHost(t *testing.T, etcd *etcdrun.Cluster, node string, more ...string) *rig {
	t.Helper()
	// They share a machine, where each would take the others' agents for foreign.
	r := newRig(t, strings.Replace(agents, `lock_wait = "10s"`, "lock_wait = \"3s\"\nforeign = false", 1)+fmt.Sprintf(`
[[slots]]
name = "architect-1"
role = "architect"
profile = "worker"
[cluster]
endpoints = [%q]
fleet = "web"
node = %q
%s
`, etcd.Endpoints()[0], node, strings.Join(more, "\n")))
	r.must(nil, "up")
	return r
}

// on are the live members that r shows of node.
func on(r *rig, node string) (alive []fleet.Member) {
	r.t.Helper()
	var all []fleet.Member
	r.must(&all, "members")
	for _, m := range all {
		if m.Alive() && m.Node == node {
			alive = append(alive, m)
		}
	}
	return alive
}

func TestHostsShareTheirSlotsAndKeepTheirMembersThroughEtcdsAbsence(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite, crane := newHost(t, etcd, "kite"), newHost(t, etcd, "crane")
	api, web := kite.repo("api"), crane.repo("web")
	architect := []string{"--role", "architect", "--profile", "worker", "--wait"}

	sent, code := kite.dispatch(api, architect...)
	if code != 0 || sent.Slot != "architect-1" {
		t.Fatalf("dispatch on kite: exit %d, %+v, want architect-1", code, sent)
	}
	refused := func(r *rig, tree string, wantExit int, want fleet.Code, args ...string) fleet.Outcome {
		t.Helper()
		out, code := r.dispatch(tree, args...)
		if code != wantExit || out.Code != want {
			t.Errorf("dispatch into %s: exit %d, %+v, want exit %d with %s", tree, code, out, wantExit, want)
		}
		return out
	}
	refused(crane, web, 3, fleet.CodeSlotUnavailable, architect...)
	refused(kite, api, 3, fleet.CodeTreeOccupied, "--profile", "worker")

	there, code := crane.dispatch("kite:"+kite.repo("far"), "--profile", "worker", "--wait")
	if code != 0 || there.Tree != "kite:"+kite.repo("far") || len(on(kite, "kite")) != 2 || len(on(crane, "crane")) != 0 {
		t.Errorf("dispatch to the other host: exit %d, %+v, want a member of kite", code, there)
	}
	crane.await("crane shows kite's members", func() bool {
		stdout, _, code := crane.fleetdeck("members")
		return code == 0 && strings.Contains(stdout, "kite:"+api) && strings.Contains(stdout, there.Member)
	})
	refused(crane, "kite:"+api, 3, fleet.CodeTreeOccupied, "--profile", "worker")
	refused(crane, "heron:"+api, 6, fleet.CodeDaemonUnreachable, "--profile", "worker")
	kite.must(nil, "stop", there.Member)

	kite.kill()
	kite.must(nil, "up")
	if m := on(kite, "kite"); len(m) != 1 || m[0].ID != sent.Member || m[0].Slot != "architect-1" {
		t.Errorf("after the daemon was killed kite has %+v, want %s", m, sent.Member)
	}
	refused(crane, web, 3, fleet.CodeSlotUnavailable, architect...)

	refused(crane, web, 3, fleet.CodeLaunchFailed, "--profile", "dies", "--wait")
	crane.awaitOccupancy(web, fleet.Free)
	crane.await("the launch that failed has given its tree back", func() bool {
		out, code := crane.dispatch(web, "--profile", "worker", "--wait")
		return code == 0 && out.Outcome == fleet.Accepted
	})

	etcd.Kill(0)
	out := refused(crane, crane.repo("new"), 6, fleet.CodeClusterUnreachable, "--profile", "worker")
	if !strings.Contains(out.Message, etcd.Endpoints()[0]) {
		t.Errorf("refused with %q, want the end points", out.Message)
	}
	if _, stderr, code := kite.fleetdeck("trees"); code != 6 {
		t.Errorf("trees while etcd is away: exit %d, %s, want 6", code, stderr)
	}
	if m := on(kite, "kite"); len(m) != 1 {
		t.Errorf("while etcd is away kite has %+v, want its member", m)
	}
	kite.must(nil, "stop", sent.Member)
	etcd.Run(0)
	crane.await("the slot of the member that ended meanwhile is free", func() bool {
		out, code := crane.dispatch(crane.repo("other"), architect...)
		return code == 0 && out.Slot == "architect-1"
	})

	if _, err := os.Stat(kite.file()); !os.IsNotExist(err) {
		t.Errorf("%s: %v, want that nothing was written there", kite.file(), err)
	}
	for _, args := range [][]string{{"reserve", "crane:" + web}, {"release", "crane:" + web}} {
		if _, stderr, code := kite.fleetdeck(args...); code != 2 || !strings.Contains(stderr, "node crane") {
			t.Errorf("%v: exit %d, %s, want exit 2 that names the node", args, code, stderr)
		}
	}
	for _, args := range [][]string{{"lock", "--", "true"}, {"repair"}} {
		if _, stderr, code := kite.fleetdeck(args...); code != 2 || !strings.Contains(stderr, "etcd") {
			t.Errorf("%v: exit %d, %s, want exit 2 that says why", args, code, stderr)
		}
	}
}

// A refusal of another host ends the command as one of this host does, and says whose path it speaks of.
func TestARefusalOfAnotherHostEndsTheCommandAsOneOfThisHostDoes(t *testing.T) {
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite, crane := newHost(t, etcd, "kite"), newHost(t, etcd, "crane")
	plain := filepath.Join(crane.dir, "plain")
	if err := os.Mkdir(plain, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"/nowhere/at/all", "--profile", "worker"}, {plain, "--profile", "worker"}, {crane.repo("api"), "--profile", "nobody"},
		{crane.repo("api"), "--profile", "worker", "--role", "nothing"}, {crane.repo("web"), "--profile", "dies", "--wait"},
	} {
		_, own, want := crane.fleetdeck(append([]string{"dispatch"}, args...)...)
		there := append([]string{"dispatch", "crane:" + args[0]}, args[1:]...)
		_, stderr, code := kite.fleetdeck(there...)
		if code != want || want == 0 || !strings.Contains(stderr, "node crane") {
			t.Errorf("%v: exit %d, %s, want %d with the node named: %s", there, code, stderr, want, own)
		}
	}
}

func TestFurtherTreesOfAnotherHostAreNamedAsItsTreeIs(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite, crane := newHost(t, etcd, "kite"), newHost(t, etcd, "crane")
	api, web, own := crane.repo("api"), crane.repo("web"), kite.repo("own")
	for _, c := range []struct{ tree, also, says string }{
		{"crane:" + api, "kite:" + own, "one host"},
		{own, "crane:" + web, "one host"},
		{"crane:" + api, "web", "absolute"},
	} {
		if _, stderr, code := kite.fleetdeck("dispatch", c.tree, "--also", c.also, "--profile", "worker"); code != 2 || !strings.Contains(stderr, c.says) {
			t.Errorf("dispatch %s --also %s: exit %d, %s, want 2 with %q", c.tree, c.also, code, stderr, c.says)
		}
	}
	out, code := kite.dispatch("crane:"+api, "--also", "crane:"+web, "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, out)
	}
	if m := on(crane, "crane"); len(m) != 1 || len(m[0].Also) != 1 || m[0].Also[0].Path != web {
		t.Errorf("crane has %+v, want one member with %s too", m, web)
	}
	own2 := kite.repo("own2")
	if out, code := kite.dispatch(own, "--also", "kite:"+own2, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch with this node's own name: exit %d, %+v", code, out)
	}
}

func TestDownWithAllMembersLeavesNothingHeldInTheCluster(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite := newHost(t, etcd, "kite")
	for range 3 {
		for tree, role := range map[string]string{"api": "architect", "web": "dev", "db": "dev"} {
			if out, code := kite.dispatch(kite.repo(tree), "--role", role, "--profile", "worker", "--wait"); code != 0 {
				t.Fatalf("dispatch: exit %d, %+v", code, out)
			}
		}
		kite.await("the cluster knows its members", func() bool { return kite.clusterStatus("kite").Members == 3 })
		kite.must(nil, "down", "--stop-members")
		if got, want := kite.clusterStatus("kite"), (nodeState{Node: "kite"}); got != want {
			t.Errorf("after down with all members the cluster has %+v, want nothing of kite", got)
		}
		kite.must(nil, "up")
	}
}

func TestTwoDaemonsCannotBeOneNode(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite := newHost(t, etcd, "kite")
	kite.must(nil, "reserve", kite.repo("api")) // it has reached the cluster
	other := newRig(t, agents)
	config, err := os.ReadFile(kite.config)
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(other.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other.config, config, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"up"}, {"cluster", "init"}} {
		_, stderr, code := other.fleetdeck(args...)
		if code != 2 || !strings.Contains(stderr, "another daemon goes by this node's name") || !strings.Contains(stderr, "a name of its own") {
			t.Errorf("%v: exit %d, %s, want a refusal that says why", args, code, stderr)
		}
	}
	if stdout, _, _ := other.fleetdeck("doctor"); !strings.Contains(stdout, "another daemon goes by this node's name") {
		t.Errorf("doctor says %s", stdout)
	}
	kite.must(nil, "cluster", "init")
	if err := os.WriteFile(other.config, own, 0o600); err != nil {
		t.Fatal(err)
	}
}
