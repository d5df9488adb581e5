package cli_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster/etcdrun"
	"fleetdeck/fleet/launch/embedded"
)

// fencedHost is a node of a fleet with four architects, in etcd at endpoint. An architect heeds no TERM, and has a child in a session of
// its own.
func fencedHost(t *testing.T, endpoint, node, fence string) *rig {
	t.Helper()
	slots := ""
	for i := range 4 {
		slots += fmt.Sprintf("[[slots]]\nname = \"architect-%d\"\nrole = \"architect\"\nprofile = \"hard\"\n", i+1)
	}
	r := newRig(t, strings.Replace(agents, `lock_wait = "10s"`, `lock_wait = "3s"`, 1)+fmt.Sprintf(`
[profiles.hard]
command = ["sh", "-c", "trap '' TERM HUP; setsid sh -c \"trap '' TERM HUP; while :; do sleep 1; done\" & while :; do sleep 1; done"]
%s
[cluster]
endpoints = [%q]
fleet = "web"
node = %q
%s
`, slots, endpoint, node, fence))
	r.must(nil, "up")
	return r
}

// staffed sends an architect and a dev to r, and gives them.
func staffed(r *rig) (architect, dev fleet.Outcome) {
	r.t.Helper()
	architect = asArchitect(r, "api")
	dev, code := r.dispatch(r.repo("web"), "--profile", "worker", "--wait")
	if architect.Outcome != fleet.Accepted || code != 0 {
		r.t.Fatalf("dispatch: %+v, and exit %d, %+v", architect, code, dev)
	}
	return architect, dev
}

// asArchitect tries to get a slot, and gives what came of it.
func asArchitect(r *rig, tree string) fleet.Outcome {
	r.t.Helper()
	out, _ := r.dispatch(r.repo(tree), "--role", "architect", "--profile", "hard", "--wait")
	return out
}

// runs are the processes of a member's agent.
func runs(member string) []int { return marked("FLEETDECK_MEMBER=" + member) }

// isFenced asks a member's holder.
func (r *rig) isFenced(member string) bool {
	r.t.Helper()
	term, err := embedded.New("").Find(r.t.Context(), member, filepath.Join(r.state, "members", member))
	if err != nil {
		return false
	}
	status, err := term.Status(r.t.Context())
	return err == nil && status.Fenced
}

// TestASlotOfAHostThatNothingIsHeardOfFreesItselfAfterItsAgent takes hosts from the fleet in all the ways there are, and looks at the very
// moments at which another gets their slots. One of them asked for no fence: it keeps what it has.
func TestASlotOfAHostThatNothingIsHeardOfFreesItselfAfterItsAgent(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	endpoint := etcd.Endpoints()[0]
	const fence = `self_fence = "3s"`
	w := newWire(t, strings.TrimPrefix(endpoint, "http://"))
	owl := fencedHost(t, endpoint, "owl", "")
	killed, paused := fencedHost(t, endpoint, "killed", fence), fencedHost(t, endpoint, "paused", fence)
	cut, unfenced := fencedHost(t, "http://"+w.addr, "cut", fence), fencedHost(t, endpoint, "unfenced", "")
	lost := []*rig{killed, paused, cut}

	architects, devs, by := map[*rig]fleet.Outcome{}, map[*rig]fleet.Outcome{}, map[string]*rig{}
	for _, r := range append(lost, unfenced) {
		architects[r], devs[r] = staffed(r)
		by[architects[r].Slot] = r
		r.await("its architect is fenced where that was asked for", func() bool { return r.isFenced(architects[r].Member) == (r != unfenced) })
		if r.isFenced(devs[r].Member) {
			t.Error("a dev is fenced")
		}
	}
	if out := asArchitect(owl, "0"); out.Code != fleet.CodeSlotUnavailable {
		t.Fatalf("dispatch to a slot where all are taken: %+v", out)
	}

	pid := paused.daemonPid()
	resume := func() { syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(resume)
	syscall.Kill(pid, syscall.SIGSTOP)
	w.cut()
	t.Cleanup(w.mend)
	killed.kill()
	unfenced.kill()
	for i := range lost {
		owl.await("owl gets a slot", func() bool {
			out := asArchitect(owl, fmt.Sprint(i))
			if out.Outcome != fleet.Accepted {
				return false
			}
			if left := runs(architects[by[out.Slot]].Member); len(left) > 0 {
				t.Errorf("owl got %s while processes %v of its architect run", out.Slot, left)
			}
			return true
		})
	}
	owl.await("every lease is over", func() bool { return owl.clusterStatus("unfenced").State == "lost" })
	if out := asArchitect(owl, "more"); out.Code != fleet.CodeSlotUnavailable || len(runs(architects[unfenced].Member)) == 0 {
		t.Errorf("dispatch to the slot of who is not fenced: %+v, with processes %v, want it taken, and some", out, runs(architects[unfenced].Member))
	}
	for r, dev := range devs {
		if len(runs(dev.Member)) == 0 {
			t.Errorf("the dev of %s, which fills no slot, was ended", r.config)
		}
	}

	resume()
	w.mend()
	killed.must(nil, "up")
	for i, node := range []string{"killed", "paused", "cut"} {
		r := lost[i]
		r.await("it knows what became of its members", func() bool {
			m := on(r, node)
			return len(m) == 1 && m[0].ID == devs[r].Member && owl.clusterStatus(node).Trees == 1
		})
		if stdout, _, _ := r.fleetdeck("events"); !strings.Contains(stdout, "fenced") || strings.Contains(stdout, "hold_lost") {
			t.Errorf("events on %s: %s, want that it was fenced, and that nobody had to be ended", node, stdout)
		}
	}

	// A fence comes to members that run, and stays.
	text, err := os.ReadFile(unfenced.config)
	if err != nil {
		t.Fatal(err)
	}
	unfenced.setConfig(string(text) + fence + "\n")
	unfenced.must(nil, "up")
	unfenced.await("its architect is fenced", func() bool { return unfenced.isFenced(architects[unfenced].Member) })
	unfenced.setConfig(string(text))
	unfenced.must(nil, "down")
	unfenced.must(nil, "up")
	up := time.Now()
	unfenced.await("a fence that nobody moves on is over", func() bool { return time.Since(up) > fleet.FenceUsual+time.Second })
	if len(runs(architects[unfenced].Member)) == 0 {
		t.Error("the architect ended, though a daemon looks after it")
	}
}

// TestAnAbsenceThatIsShorterThanTheFenceEndsNobody kills etcd and the daemon, and looks after the fence would have been over.
func TestAnAbsenceThatIsShorterThanTheFenceEndsNobody(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	const span = 10 * time.Second
	kite := fencedHost(t, etcd.Endpoints()[0], "kite", `self_fence = "10s"`)
	architect, dev := staffed(kite)
	kite.await("its architect is fenced", func() bool { return kite.isFenced(architect.Member) })
	pids, daemon := kite.pids(), kite.daemonPid()
	etcd.Kill(0)
	gone := time.Now()
	kite.await("etcd was missed", func() bool { return time.Since(gone) > span/4 })
	etcd.Run(0)
	syscall.Kill(daemon, syscall.SIGKILL)
	kite.must(nil, "up")
	kite.await("the fence of then is over", func() bool { return time.Since(gone) > span+2*time.Second })
	if now := kite.pids(); len(now) != 2 || now[architect.Member] != pids[architect.Member] || now[dev.Member] != pids[dev.Member] {
		t.Errorf("members %v, want %v", now, pids)
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
