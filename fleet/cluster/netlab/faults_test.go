package netlab_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

func TestAHostThatDiesKeepsItsMembersTreesAndNothingElse(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "kite", "crane")
	kite, crane := f.hosts[0], f.hosts[1]
	api, web, doc := f.tree(kite, "api"), f.tree(kite, "web"), f.tree(kite, "doc")
	member, code := kite.dispatch(api, "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, member)
	}
	kite.must(nil, "reserve", web, "--no-git", "--profile", "worker")
	launch, code := kite.dispatch(doc, "--profile", "never")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, launch)
	}
	f.await("the launch has its process", func() bool { return kite.starts() == 2 })
	if held := f.held("kite"); len(held) != 3 || held[member.Reservation] != "member" || held[launch.Reservation] != "launching" {
		t.Fatalf("held are %v, want a member, a launch and a reservation", held)
	}

	kite.Kill()
	f.await("reservation and launch end by their leases", func() bool {
		held := f.held("kite")
		return len(held) == 1 && held[member.Reservation] == "member"
	})
	f.await("the host is lost", func() bool {
		return slices.Contains(crane.members(), row{"kite", member.Member, api, "lost"})
	})
	if out, code := crane.dispatch("kite:"+api, "--profile", "worker"); code != 6 || out.Code != fleet.CodeDaemonUnreachable {
		t.Errorf("dispatch to the lost host: exit %d, %+v, want 6 with %s", code, out, fleet.CodeDaemonUnreachable)
	}
	if held := f.held("kite"); held[member.Reservation] != "member" {
		t.Errorf("held are %v, want the member's", held)
	}

	kite.Boot()
	kite.must(nil, "up")
	listed := func(r row) bool { return r.ID == member.Member && r.Tree == api && r.Node == "kite" }
	if rows := kite.members(); !slices.ContainsFunc(rows, listed) {
		t.Errorf("after the boot kite has %v, want %s", rows, member.Member)
	}
	// The boot has ended it, which only its own host can tell.
	f.await("what ended is given back", func() bool { return len(f.held("kite")) == 0 })
	f.await("and said elsewhere", func() bool {
		return !slices.ContainsFunc(crane.members(), func(r row) bool { return listed(r) && r.State != fleet.StateExited })
	})
	again, code := crane.dispatch("kite:"+api, "--profile", "worker", "--wait")
	if code != 0 {
		t.Errorf("dispatch into what was given back: exit %d, %+v", code, again)
	}
	if n := kite.starts(); n != 3 {
		t.Errorf("%d agents were started, want 3: none came late", n)
	}
}

func TestMembersOutliveTheirDaemonWithTheSameIDs(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "kite", "crane")
	kite, crane := f.hosts[0], f.hosts[1]
	api := f.tree(kite, "api")
	member, code := kite.dispatch(api, "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, member)
	}
	var status struct{ Daemon struct{ Pid int } }
	kite.must(&status, "status")
	say(t, kite.Host, "kill -9 "+strconv.Itoa(status.Daemon.Pid))
	if out, code := crane.dispatch("kite:"+api, "--profile", "worker"); code == 0 {
		t.Errorf("dispatch to a host without a daemon: exit %d, %+v", code, out)
	}
	kite.must(nil, "up")
	want := []row{{"kite", member.Member, api, fleet.StateWorking}}
	for _, h := range f.hosts {
		f.await(h.Name+" shows it with its id", func() bool {
			got := h.members()
			for i := range got {
				if got[i].State != fleet.StateExited { // what else it is doing is another question
					got[i].State = want[0].State
				}
			}
			return cmp.Equal(got, want)
		})
	}
	f.await("an order is refused for who is there", func() bool { // the daemon may come to the cluster a moment later
		out, code := crane.dispatch("kite:"+api, "--profile", "worker")
		if code == 0 {
			t.Fatalf("dispatch: %+v, want it refused", out)
		}
		return code == 3 && out.Code == fleet.CodeTreeOccupied
	})
	if n := kite.starts(); n != 1 {
		t.Errorf("%d agents were started, want 1", n)
	}
}

func TestAHostCutFromEtcdRefusesAndKeepsItsMembers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "kite", "crane")
	kite, crane := f.hosts[0], f.hosts[1]
	member, code := kite.dispatch(f.tree(kite, "api"), "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, member)
	}
	kite.Unplug()
	out, code := kite.dispatch(f.tree(kite, "web"), "--profile", "worker")
	if code != 6 || out.Code != fleet.CodeClusterUnreachable || !strings.Contains(out.Message, f.etcd.Endpoints()[0]) || !strings.Contains(out.Message, f.etcd.Endpoints()[2]) {
		t.Errorf("dispatch: exit %d, %+v, want 6 with %s and the end points", code, out, fleet.CodeClusterUnreachable)
	}
	f.await("its daemon has asked in vain whether its member is held", func() bool {
		log, err := os.ReadFile(filepath.Join(kite.Disk, "state", "daemon.log"))
		return err == nil && strings.Contains(string(log), "look whether the members here are held")
	})
	if rows := kite.members(); len(rows) != 1 || rows[0].ID != member.Member || rows[0].State == fleet.StateExited {
		t.Errorf("kite has %v, want its member", rows)
	}
	if stdout, _, _ := kite.fleetdeck("events"); strings.Contains(stdout, "hold_lost") {
		t.Errorf("kite's events are %s, want none of a hold that was lost", stdout)
	}
	if _, err := os.Stat(filepath.Join(kite.Disk, "state", "reservations.json")); !os.IsNotExist(err) {
		t.Errorf("reservations.json: %v, want none", err)
	}
	if out, code := crane.dispatch(f.tree(crane, "web"), "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch on the host that is not cut off: exit %d, %+v", code, out)
	}
	kite.Plug()
	f.await("kite dispatches again", func() bool {
		_, code := kite.dispatch(f.tree(kite, "web"), "--profile", "worker", "--wait")
		return code == 0
	})
	if n := kite.starts(); n != 2 {
		t.Errorf("%d agents were started on kite, want 2", n)
	}
}

// A daemon that was cut off has an old watch, and etcd has forgotten what came after it.
func TestWatchesThatWereCutOffAndCompactedMissNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "kite", "crane")
	kite, crane := f.hosts[0], f.hosts[1]
	first, code := kite.dispatch(f.tree(kite, "api"), "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, first)
	}
	f.await("crane shows it", func() bool { return len(crane.members()) == 1 })

	crane.Unplug()
	second, code := kite.dispatch(f.tree(kite, "web"), "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, second)
	}
	kite.must(nil, "stop", first.Member)
	kite.must(nil, "reserve", f.tree(kite, "doc"), "--no-git", "--profile", "worker", "--grace", "10m")
	tree := f.tree(crane, "far")
	type answer struct {
		out  fleet.Outcome
		code int
	}
	ordered := make(chan answer, 1)
	go func() { // an order that crane cannot see yet
		out, code := kite.dispatch("crane:"+tree, "--profile", "worker", "--wait", "--grace", "60s")
		ordered <- answer{out, code}
	}()
	f.await("the order is written", func() bool {
		res, err := f.eye.Get(t.Context(), "/fleetdeck/v1/web/order/crane/", clientv3.WithPrefix())
		return err == nil && res.Count == 1
	})
	// By then crane's connection is dead on both sides, so that nothing of it is heard late.
	f.await("crane is lost", func() bool {
		res, err := f.eye.Get(t.Context(), "/fleetdeck/v1/web/node/crane")
		return err == nil && res.Count == 0
	})
	res, err := f.eye.Put(t.Context(), "/elsewhere", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.eye.Compact(t.Context(), res.Header.Revision); err != nil {
		t.Fatal(err)
	}
	crane.Plug()
	select {
	case a := <-ordered:
		if a.code != 0 {
			t.Errorf("the order that crane's watch missed: exit %d, %+v, want it carried out", a.code, a.out)
		}
	case <-time.After(patience):
		t.Fatal("the order that crane's watch missed is not carried out")
	}
	// Each host shows its own that have ended too.
	alive := func(h *host) []row {
		return slices.DeleteFunc(h.members(), func(r row) bool { return r.State == fleet.StateExited })
	}
	same := func() {
		t.Helper()
		diff := ""
		defer func() {
			if diff != "" {
				t.Logf("kite and crane differ (-kite +crane):\n%s", diff)
			}
		}()
		f.await("both hosts show the same two members", func() bool {
			diff = cmp.Diff(alive(kite), alive(crane))
			return diff == "" && len(alive(crane)) == 2
		})
	}
	same()

	for i := range f.etcd.Endpoints() { // one after the other: what its daemons watch by goes each time
		f.etcd.Kill(i)
		f.etcd.Run(i)
	}
	third, code := crane.dispatch("kite:"+f.tree(kite, "api"), "--profile", "worker", "--wait")
	if code != 0 {
		t.Errorf("an order after etcd was restarted: exit %d, %+v", code, third)
	}
	crane.must(nil, "stop", crane.own(t, "crane"))
	same()
	var rows []fleet.ReservationRow
	kite.must(&rows, "reservations")
	if len(rows) != 1 || !strings.HasSuffix(rows[0].Tree, "doc") {
		t.Errorf("kite's reservations are %+v, want that of doc", rows)
	}
}

// own is the live member of node.
func (h *host) own(t *testing.T, node string) string {
	t.Helper()
	for _, r := range h.members() {
		if r.Node == node && r.State != fleet.StateExited {
			return r.ID
		}
	}
	t.Fatalf("%s has no member", node)
	return ""
}
