package cli_test

import (
	"regexp"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
)

func TestConsolesOfTwoHostsShowOneFleetAndStaleDataWhileEtcdIsAway(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite, crane := newHost(t, etcd, "kite"), newHost(t, etcd, "crane")
	api, web := kite.repo("api"), crane.repo("web")
	sent, code := kite.dispatch(api, "--role", "architect", "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch on kite: exit %d, %+v", code, sent)
	}
	there, here := kite.open(160, 40), crane.open(160, 40)
	away := "ETCD NOT HEARD · for .* what other hosts show is of then"

	kite.step("another host's member is shown", func(t *testing.T) {
		crane.t = t
		here.untilShown("the tree of the other host", `api +kite .*occupied`)
		here.untilShown("the state of etcd", `etcd led by \S+ \d`)
		if out, code := crane.dispatch(web, "--profile", "worker", "--wait"); code != 0 {
			t.Fatalf("dispatch on crane: exit %d, %+v", code, out)
		}
		there.untilShown("a dispatch of the other host", `web +crane .*occupied`)
		here.keys("2")
		here.untilShown("the member of the other host", `api +kite +worker`)
		here.keys("3")
		here.untilShown("who has the slot", `architect-1 +bound .*api +kite`)
		here.keys("8")
		here.untilShown("the hosts", `kite +present +(keeps +)?1 +1 +1 `)
		here.shows("● crane")
		here.keys("1")
	})
	kite.step("a dispatch goes to the other host, and what it came to is told", func(t *testing.T) {
		crane.t = t
		here.keys("s")
		here.shows("▌Tree")
		here.keys("kite:" + kite.repo("far") + "\r")
		here.shows("▌Task")
		here.keys("\r") // with the first of the profiles, which dies
		here.untilShown("the launch that failed", `far: the dispatch came to nothing: its launch on node kite has ended`)
	})
	kite.step("while etcd is away what was known stays, and is said to be old", func(t *testing.T) {
		crane.t = t
		etcd.Kill(0)
		here.untilShown("that etcd is away", away)
		there.untilShown("that etcd is away", away)
		here.untilShown("the tree of the other host, as it was", `api +kite .*occupied`)
		kite.must(nil, "stop", sent.Member)
		there.untilGone("a member that ended here", sent.Member)
		here.untilShown("the tree of the other host, as it was", `api +kite .*occupied`)
		here.shows("etcd not heard")
	})
	kite.step("once it is back each host shows the same", func(t *testing.T) {
		crane.t = t
		etcd.Run(0)
		for _, c := range []*terminal{here, there} {
			c.untilGone("that etcd is away", "ETCD NOT HEARD")
			c.untilShown("the state of etcd", `etcd led by \S+ \d`)
		}
		here.until("what happened meanwhile", func() bool { return !regexp.MustCompile(`api +kite`).MatchString(here.text()) })
		if out, code := kite.dispatch(api, "--profile", "worker", "--wait"); code != 0 || out.Outcome != fleet.Accepted {
			t.Fatalf("dispatch on kite: exit %d, %+v", code, out)
		}
		here.untilShown("what happens from then on, with its member", `api +kite .*occupied +unknown`)
	})
	kite.step("a lost host's members stay", func(t *testing.T) {
		crane.t = t
		there.quits()
		kite.must(nil, "down")
		here.untilShown("that the host is lost", `HOST LOST · kite · 1 member and 1 tree stay taken`)
		here.untilShown("its tree", `◇ .*api +kite .*occupied +lost`)
		kite.must(nil, "up")
		here.untilGone("that the host is lost", "HOST LOST")
	})
	here.quits()
	here.untouched()
}
