package cli_test

import (
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
)

// What explain foresees is what dispatch answers, whichever host has what is in the way.
func TestExplainForeseesWhatTheClusterAnswers(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	shared := t.TempDir()
	space := "[cluster.spaces]\nnfs = \"" + shared + "\"\n"
	kite, crane := newHost(t, etcd, "kite", space), newHost(t, etcd, "crane", space)
	api, ours := kite.repo("api"), kite.repoAt(shared+"/ours")
	says := func(r *rig, args ...string) (e explained, text string) {
		t.Helper()
		r.must(&e, append([]string{"explain"}, args...)...)
		text, stderr, code := r.fleetdeck(append([]string{"explain"}, args...)...)
		if code != 0 || stderr != "" {
			t.Errorf("explain %v: exit %d, %s", args, code, stderr)
		}
		out, code := r.dispatch(args[0], append(args[1:], "--wait")...)
		if e.Dispatch.Outcome != string(out.Outcome) || e.Dispatch.Code != out.Code || e.Dispatch.ExitCode != code {
			t.Errorf("explain %v foresees %+v, and dispatch answers %d, %+v", args, e.Dispatch, code, out)
		}
		for _, word := range []string{"the file", "reservation file", "lock"} {
			if strings.Contains(text, word) {
				t.Errorf("explain %v speaks of a %s in a cluster: %s", args, word, text)
			}
		}
		return e, text
	}
	wants := func(text string, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(text, want) {
				t.Errorf("it does not say %q: %s", want, text)
			}
		}
	}
	architect := []string{"--role", "architect", "--profile", "worker"}

	_, text := says(crane, append([]string{ours}, architect...)...)
	wants(text, "crane:"+ours, "In etcd: no reservation", "It is free", "1 of 1 slots free", "would be accepted now")
	e, text := says(kite, append([]string{api}, architect...)...)
	if e.Dispatch.Code != fleet.CodeSlotUnavailable || e.Occupancy != fleet.Free {
		t.Errorf("while crane has the slot: %+v", e)
	}
	wants(text, "0 of 1 slots free", "architect-1 bound", "in crane:"+ours)
	e, text = says(kite, ours, "--profile", "worker")
	if e.Dispatch.Code != fleet.CodeTreeOccupied || e.Occupancy != fleet.Taken {
		t.Errorf("while crane has the tree: %+v", e)
	}
	wants(text, "by another host", "on node crane", "→ look for it")

	etcd.Kill(0)
	e, text = says(kite, api, "--profile", "worker")
	if e.Dispatch.Code != fleet.CodeClusterUnreachable {
		t.Errorf("while etcd is away: %+v", e)
	}
	wants(text, "Nobody is known to be in it", "Nobody can say what other hosts hold", "connection refused", "etcdctl")
	etcd.Run(0) // all goes down faster
}

func TestAHostWithAnotherSlotTableIsTold(t *testing.T) {
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite := newHost(t, etcd, "kite")
	kite.setConfig(agents + twoSlots + clusterTable(etcd, "kite"))
	for _, args := range [][]string{{"slots"}, {"cluster", "status"}} {
		_, stderr, code := kite.fleetdeck(args...)
		if code != 0 || !strings.Contains(stderr, "this host is sent nobody") || !strings.Contains(stderr, "architect-2") {
			t.Errorf("%v: exit %d, %s, want it told that the tables differ", args, code, stderr)
		}
	}
}

func TestDoctorTellsWhatAHostOfAClusterLacks(t *testing.T) {
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite := newHost(t, etcd, "kite", "[cluster.spaces]\nnfs = \"/nowhere/nfs\"\n")
	says := func(wants ...string) {
		t.Helper()
		stdout, stderr, _ := kite.fleetdeck("doctor")
		for _, want := range wants {
			if !strings.Contains(stdout, want) {
				t.Errorf("doctor does not say %q: %s%s", want, stdout, stderr)
			}
		}
	}
	says("ok    cluster", "warn  space nfs: no directory /nowhere/nfs")
	kite.setConfig(agents + twoSlots + clusterTable(etcd, "kite"))
	says("fail  cluster: this host's [[slots]] are", "architect-2")
	etcd.Kill(0)
	says("fail  cluster: etcd does not answer", "connection refused")
	etcd.Run(0)
}
