package cli_test

import (
	"maps"
	"strings"
	"testing"

	"fleetdeck/fleet/cluster/etcdrun"
)

// exits waits until the program in the terminal has ended, and gives its exit code.
func (t *terminal) exits() int {
	t.r.t.Helper()
	t.whole()
	t.cmd.Wait()
	return t.cmd.ProcessState.ExitCode()
}

// TestAHostThatComesBackWhileItsNameIsTypedKeepsEverything has an operator think for a while about a release.
func TestAHostThatComesBackWhileItsNameIsTypedKeepsEverything(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite, crane := newHost(t, etcd, "kite"), newHost(t, etcd, "crane")
	for tree, args := range map[string][]string{"api": {"--role", "architect"}, "web": nil} {
		if out, code := kite.dispatch(kite.repo(tree), append(args, "--profile", "worker", "--wait")...); code != 0 {
			t.Fatalf("dispatch: exit %d, %+v", code, out)
		}
	}
	kite.must(nil, "reserve", kite.repo("doc"), "--grace", "10m")
	pids := kite.pids()
	lose := func() {
		t.Helper()
		kite.must(nil, "down")
		crane.await("kite is lost", func() bool { return crane.clusterStatus("kite").State == "lost" })
	}
	keeps := func(when string) {
		t.Helper()
		if s := crane.clusterStatus("kite"); s.Trees != 2 || s.Reservations != 1 || s.Members != 2 {
			t.Errorf("%s kite holds %+v, want two members' trees and a reservation", when, s)
		}
	}
	ask := func() *terminal {
		t.Helper()
		c := crane.open(120, 30, "release", "--lost", "kite")
		c.shows("kite:" + kite.repo("api"))
		c.shows("Type the node's name")
		return c
	}

	lose()
	c := ask()
	c.keys("crane\n")
	if code := c.exits(); code != 2 || !strings.Contains(c.text(), "nothing was released") {
		t.Errorf("another name: exit %d, want 2 that says that nothing was released:\n%s", code, c.text())
	}
	keeps("after another name was typed")

	c = ask()
	kite.must(nil, "up")
	crane.await("kite is back", func() bool { return crane.clusterStatus("kite").State == "present" })
	c.keys("kite\n")
	if code := c.exits(); code != 3 || !strings.Contains(c.text(), "node kite has come back") || !strings.Contains(c.text(), "keeps what its members hold") {
		t.Errorf("its name, with kite back: exit %d, want 3 that says why:\n%s", code, c.text())
	}
	keeps("after the release of a host that came back")
	if now := kite.pids(); !maps.Equal(now, pids) {
		t.Errorf("kite's members are %v, want %v", now, pids)
	}
	if said, _, _ := kite.fleetdeck("events"); strings.Contains(said, "hold_lost") || strings.Contains(said, "hold_retaken") {
		t.Errorf("kite's events are %s, want none of a hold that was lost", said)
	}
}
