package cli_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
	"fleetdeck/fleet/launch/embedded"
)

// fencedHost is a node of a fleet of its own name, in etcd at endpoint. Its one architect heeds no TERM, and has a child in a session of its own.
func fencedHost(t *testing.T, endpoint, name, node, fence string) *rig {
	t.Helper()
	r := newRig(t, strings.Replace(agents, `lock_wait = "10s"`, `lock_wait = "3s"`, 1)+fmt.Sprintf(`
[profiles.hard]
command = ["sh", "-c", "trap '' TERM HUP; setsid sh -c \"trap '' TERM HUP; while :; do sleep 1; done\" & while :; do sleep 1; done"]
[[slots]]
name = "architect-1"
role = "architect"
profile = "hard"
[cluster]
endpoints = [%q]
fleet = %q
node = %q
%s
`, endpoint, name, node, fence))
	r.must(nil, "up")
	return r
}

// staffed sends an architect and a dev to r, and gives them.
func staffed(r *rig) (architect, dev fleet.Outcome) {
	r.t.Helper()
	for _, d := range []struct {
		out  *fleet.Outcome
		tree string
		args []string
	}{
		{&architect, "api", []string{"--role", "architect", "--profile", "hard", "--wait"}},
		{&dev, "web", []string{"--profile", "worker", "--wait"}},
	} {
		out, code := r.dispatch(r.repo(d.tree), d.args...)
		if code != 0 {
			r.t.Fatalf("dispatch: exit %d, %+v", code, out)
		}
		*d.out = out
	}
	return architect, dev
}

// runs are the processes of a member's agent.
func runs(member string) []int { return marked("FLEETDECK_MEMBER=" + member) }

// asArchitect tries to get the one slot, and gives what came of it.
func asArchitect(r *rig) fleet.Outcome {
	r.t.Helper()
	out, _ := r.dispatch(r.repo("there"), "--role", "architect", "--profile", "hard", "--wait")
	return out
}

// TestASlotOfAHostThatNothingIsHeardOfFreesItselfAfterItsAgent takes hosts from the fleet in all the ways there are, and looks at the very
// moment at which another gets the slot.
func TestASlotOfAHostThatNothingIsHeardOfFreesItselfAfterItsAgent(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	for _, tt := range []struct {
		name string
		lose func(t *testing.T, kite *rig, w *wire) (back func())
	}{
		{"its daemon is killed", func(t *testing.T, kite *rig, _ *wire) func() {
			kite.kill()
			return func() { kite.must(nil, "up") }
		}},
		{"its daemon is paused", func(t *testing.T, kite *rig, _ *wire) func() {
			pid := kite.daemonPid()
			syscall.Kill(pid, syscall.SIGSTOP)
			resume := func() { syscall.Kill(pid, syscall.SIGCONT) }
			t.Cleanup(resume)
			return resume
		}},
		{"its network is cut", func(t *testing.T, _ *rig, w *wire) func() {
			w.cut()
			t.Cleanup(w.mend)
			return w.mend
		}},
		{"its daemon is told to go", func(t *testing.T, kite *rig, _ *wire) func() {
			kite.must(nil, "down")
			return func() { kite.must(nil, "up") }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, strings.TrimPrefix(etcd.Endpoints()[0], "http://"))
			name := strings.ReplaceAll(tt.name, " ", "-")
			kite := fencedHost(t, "http://"+w.addr, name, "kite", `self_fence = "3s"`)
			crane := fencedHost(t, etcd.Endpoints()[0], name, "crane", "")
			architect, dev := staffed(kite)
			if out := asArchitect(crane); out.Code != fleet.CodeSlotUnavailable {
				t.Fatalf("dispatch to a slot that is taken: %+v", out)
			}
			back := tt.lose(t, kite, w)
			crane.await("crane gets the slot", func() bool {
				out := asArchitect(crane)
				if left := runs(architect.Member); out.Outcome == fleet.Accepted && len(left) > 0 {
					t.Fatalf("crane got the slot while processes %v of kite's architect run", left)
				}
				return out.Outcome == fleet.Accepted
			})
			if len(runs(dev.Member)) == 0 {
				t.Error("the dev, which fills no slot, was ended")
			}
			back()
			kite.await("kite knows what became of its members", func() bool {
				m := on(kite, "kite")
				return len(m) == 1 && m[0].ID == dev.Member && crane.clusterStatus("kite").Trees == 1
			})
			if stdout, _, _ := kite.fleetdeck("events"); !strings.Contains(stdout, "fenced") || strings.Contains(stdout, "hold_lost") {
				t.Errorf("events %s, want that it was fenced, and that nobody had to be ended", stdout)
			}
			if m := on(crane, "crane"); len(m) != 1 {
				t.Errorf("crane has %+v, want its architect", m)
			}
		})
	}
}

// TestAnAbsenceOfEtcdThatIsShorterThanTheFenceEndsNobody kills etcd, and looks long after the fence would have been over.
func TestAnAbsenceOfEtcdThatIsShorterThanTheFenceEndsNobody(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	const span = 10 * time.Second
	kite := fencedHost(t, etcd.Endpoints()[0], "short", "kite", `self_fence = "10s"`)
	architect, dev := staffed(kite)
	pids := kite.pids()
	etcd.Kill(0)
	gone := time.Now()
	kite.await("the fence has not been moved on", func() bool { return time.Since(gone) > span/4 })
	etcd.Run(0)
	kite.await("the fence of then is over", func() bool { return time.Since(gone) > span+5*time.Second })
	if now := kite.pids(); len(now) != 2 || now[architect.Member] != pids[architect.Member] || now[dev.Member] != pids[dev.Member] {
		t.Errorf("members %v, want %v", now, pids)
	}
	// A daemon that comes back in time finds it, and goes on.
	kite.kill()
	kite.must(nil, "up")
	back := time.Now()
	kite.await("the fence of then is over too", func() bool { return time.Since(back) > span+time.Second })
	if now := kite.pids(); len(now) != 2 || now[architect.Member] != pids[architect.Member] {
		t.Errorf("after the daemon was killed members are %v, want %v", now, pids)
	}
}

// TestWithoutAFenceNobodyEndsAndNoSlotIsGivenAway is how it is where nobody asked for one; and then how one comes to members that run.
func TestWithoutAFenceNobodyEndsAndNoSlotIsGivenAway(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite := fencedHost(t, etcd.Endpoints()[0], "off", "kite", "")
	crane := fencedHost(t, etcd.Endpoints()[0], "off", "crane", "")
	architect, dev := staffed(kite)
	kite.kill()
	gone := time.Now()
	crane.await("kite is lost, and any lease of it is over", func() bool {
		return time.Since(gone) > fleet.FenceLease+2*time.Second && crane.clusterStatus("kite").State == "lost"
	})
	if out := asArchitect(crane); out.Code != fleet.CodeSlotUnavailable || len(runs(architect.Member)) == 0 || len(runs(dev.Member)) == 0 {
		t.Fatalf("dispatch to its slot: %+v, with processes %v and %v, want it taken and both alive", out, runs(architect.Member), runs(dev.Member))
	}

	text, err := os.ReadFile(kite.config)
	if err != nil {
		t.Fatal(err)
	}
	kite.setConfig(string(text) + "self_fence = \"3s\"\n")
	kite.must(nil, "up")
	kite.await("its architect is fenced", func() bool {
		term, err := embedded.New("").Find(t.Context(), architect.Member, kite.state+"/members/"+architect.Member)
		if err != nil {
			return false
		}
		status, err := term.Status(t.Context())
		return err == nil && status.Fenced
	})
	kite.setConfig(string(text)) // what is fenced stays so, and is looked after
	kite.must(nil, "down")
	kite.must(nil, "up")
	up := time.Now()
	kite.await("a fence that nobody moves on is over", func() bool { return time.Since(up) > fleet.FenceUsual+time.Second })
	if len(runs(architect.Member)) == 0 {
		t.Error("the architect ended, though a daemon looks after it")
	}
}

// wire is a way to a server that can be cut: what is sent gets no answer, as in a network that loses it.
type wire struct {
	addr string

	mu    sync.Mutex // guards all below
	lost  bool
	conns map[net.Conn]bool
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{addr: listener.Addr().String(), conns: map[net.Conn]bool{}}
	t.Cleanup(func() { listener.Close(); w.mend() })
	go func() {
		for {
			here, err := listener.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", to)
			if err != nil {
				here.Close()
				continue
			}
			go w.carry(here, there)
			go w.carry(there, here)
		}
	}()
	return w
}

// carry carries what comes from one side to the other, and loses it while the wire is cut.
func (w *wire) carry(from, to net.Conn) {
	w.mu.Lock()
	w.conns[from] = true
	w.mu.Unlock()
	defer to.Close()
	for buf := make([]byte, 32<<10); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		w.mu.Lock()
		lost := w.lost
		w.mu.Unlock()
		if lost {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = true
}

// mend lets new connections through. Those that lost something are closed.
func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = false
	for c := range w.conns {
		c.Close()
	}
	clear(w.conns)
}
