package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/launch/process"
)

// killPoints is how many places of each path the daemon is killed at.
var killPoints = flag.Int("killpoints", 10, "at how many of a path's steps the daemon is killed; 0 means at each")

const leakSweepConfig = `
grace = "90s"
lock_wait = "10s"
[roles.architect]
[profiles.dies]
command = ["sh", "-c", "echo $FLEETDECK_MEMBER >> DIR/starts; exit 9"]
ready = "pattern:never"
[profiles.lives]
command = ["sh", "-c", "echo $FLEETDECK_MEMBER >> DIR/starts; exec sleep 600"]
[profiles.boots]
command = ["sh", "-c", "echo $FLEETDECK_MEMBER >> DIR/starts; while [ ! -e DIR/go ]; do sleep 0.05; done; echo ready; exec sleep 600"]
ready = "pattern:ready"
[[slots]]
name = "architect-boots"
role = "architect"
profile = "boots"
[[slots]]
name = "architect-dies"
role = "architect"
profile = "dies"
[[slots]]
name = "architect-lives"
role = "architect"
profile = "lives"
`

// leakSweep is a fleet whose daemon is a child of the test, so that it can be followed.
type leakSweep struct {
	*rig
	client *client.Client
	book   *book.Book
	daemon *exec.Cmd
	tree   string
}

func newLeakSweep(t *testing.T) *leakSweep {
	t.Helper()
	r := newRig(t, leakSweepConfig)
	s := &leakSweep{rig: r, client: client.New(filepath.Join(r.state, "fleetd.sock"), "")}
	s.tree = s.repo("tree")
	s.up()
	b, err := book.Open(s.state, process.Now)
	if err != nil {
		t.Fatal(err)
	}
	s.book = b
	t.Cleanup(s.down) // what the rig starts in its place ends with the rig
	return s
}

// up starts the daemon and waits until it answers.
func (s *leakSweep) up() {
	s.t.Helper()
	s.start(s.command("up", "--foreground"))
	s.await("the daemon answers", func() bool {
		h, err := s.client.Health(s.t.Context())
		return err == nil && h.Pid == s.daemon.Process.Pid
	})
}

// upStopped starts what becomes the daemon once it is let go: it is stopped, so that it can be followed from its first step.
func (s *leakSweep) upStopped() {
	s.t.Helper()
	run := s.command("up", "--foreground")
	s.start(exec.Command("sh", append([]string{"-c", `kill -STOP $$; exec "$@"`, "sh", run.Path}, run.Args[1:]...)...))
	s.await("it is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.daemon.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
}

func (s *leakSweep) start(cmd *exec.Cmd) {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "daemon.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.daemon = cmd
	s.daemon.Stdout, s.daemon.Stderr = log, log
	s.daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.daemon.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *leakSweep) down() {
	s.daemon.Process.Kill()
	s.daemon.Wait()
}

func (s *leakSweep) dispatcher() *dispatch.Dispatcher {
	return &dispatch.Dispatcher{Ledger: s.book, Daemon: s.client, LockWait: 10 * time.Second, Grace: 90 * time.Second, Now: process.Now,
		Self: fleet.Dispatcher{Program: "test"}}
}

func (s *leakSweep) order(profile string) fleet.Order {
	return fleet.Order{Tree: s.tree, Role: "architect", Profile: profile}
}

// dispatch sends an architect into the tree and waits until it is listed or has failed, however often the daemon dies meanwhile.
func (s *leakSweep) dispatch(ctx context.Context, profile string) (fleet.Outcome, error) {
	d := s.dispatcher()
	out, err := d.Dispatch(ctx, s.order(profile))
	if err == nil {
		out, err = d.Wait(ctx, out)
	}
	return out, err
}

// settled reports whether no reservation stands in the file: the daemon has nothing more to do.
func (s *leakSweep) settled() bool {
	entries, err := s.book.Read()
	return err == nil && len(entries) == 0
}

// onRecord says how far the registry has the newest launch, and gives its id.
func (s *leakSweep) onRecord() (stage, id string) {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.state, "registry.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	var doc map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatalf("the registry is %q: %v", data, err)
	}
	delete(doc, "$format")
	ids := slices.Sorted(maps.Keys(doc))
	if len(ids) == 0 {
		return nothing, ""
	}
	id = ids[len(ids)-1]
	var rec struct{ Step, Reservation string }
	if err := json.Unmarshal(doc[id], &rec); err != nil {
		s.t.Fatal(err)
	}
	entries, err := s.book.Read()
	if err != nil {
		s.t.Fatal(err)
	}
	if slices.ContainsFunc(entries, func(e fleet.Entry) bool { return e.ID == rec.Reservation }) {
		return rec.Step + ", reserved", id
	}
	return rec.Step, id
}

// nothing is on record where the newest launch is an earlier one.
const nothing = "nothing"

// wantNobody demands that slots and tree are free and that no agent lives.
func (s *leakSweep) wantNobody() {
	s.t.Helper()
	s.await("every slot is free and no entry stands", func() bool {
		slots, err := s.client.Slots(s.t.Context())
		return err == nil && s.settled() && !slices.ContainsFunc(slots, func(x fleet.Slot) bool { return x.State != fleet.SlotFree })
	})
	roster, err := s.client.Roster(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if h := fleet.Occupancy(fleet.Tree{Path: s.tree}, nil, roster, process.Now()); h.State != fleet.Free {
		s.t.Errorf("the tree is %s", h.State)
	}
	if left := marked("FLEETDECK_TREE=" + s.tree); len(left) > 0 {
		s.t.Errorf("the tree is free while %v live", left)
	}
}

// wantMember demands that the slot is bound to the member, that the tree is its, and that it is the only agent.
func (s *leakSweep) wantMember(id, slot string) {
	s.t.Helper()
	slots, err := s.client.Slots(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, x := range slots {
		if mine := x.Name == slot; mine && (x.State != fleet.SlotBound || x.Member != id) || !mine && x.State != fleet.SlotFree {
			s.t.Errorf("slot %+v, want %s bound to %s, the others free", x, slot, id)
		}
	}
	roster, err := s.client.Roster(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	h := fleet.Occupancy(fleet.Tree{Path: s.tree}, nil, roster, process.Now())
	if h.Member == nil || h.Member.ID != id || len(roster.Launches) != 0 {
		s.t.Fatalf("the tree is %+v, launches %+v, want member %s alone", h, roster.Launches, id)
	}
	if live := marked("FLEETDECK_TREE=" + s.tree); len(live) != 1 || live[0] != h.Member.Pid {
		s.t.Errorf("in the tree live %v, want %d", live, h.Member.Pid)
	}
	s.await("the reservation is dropped", s.settled)
}

// act is what a daemon does while it is killed: its result is sent once it is done, by this daemon or the next.
type act func(s *leakSweep, ctx context.Context) (fleet.Outcome, error)

// killAt lets the daemon be killed before the nth step of act, and starts another. It says before which step that was, and
// what then was on record; it is empty where act had fewer steps.
func (s *leakSweep) killAt(n int, do act) (out fleet.Outcome, steps []string, stage string, err error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*patience)
	defer cancel()
	earlier, newest := s.onRecord()
	running := !strings.HasPrefix(earlier, "failed") && !strings.HasPrefix(earlier, "exited")
	follower, err := follow(s.daemon.Process.Pid, n)
	if err != nil {
		s.t.Skipf("SKIPPED, the daemon was not killed between its steps: it cannot be traced here: %v", err)
	}
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		out, err = do(s, ctx)
	}()
	killed := make(chan struct{})
	var ferr error
	go func() {
		defer close(killed)
		steps, ferr = follower.wait()
	}()
	select {
	case <-killed:
	case <-acted:
		s.await("it is settled", func() bool {
			select {
			case <-killed:
				return true
			default:
				return s.settled()
			}
		})
		follower.quit.Store(true)
		s.await("the follower quits", func() bool {
			select {
			case <-killed:
				return true
			default:
				s.client.Health(ctx) // something to follow
				return false
			}
		})
	}
	if ferr != nil {
		s.t.Fatal(ferr)
	}
	if n > 0 && len(steps) == n {
		s.daemon.Wait()
		var id string
		if stage, id = s.onRecord(); id == newest && !running {
			stage = nothing
		}
		s.up()
	}
	<-acted
	return out, steps, stage, err
}

func TestADaemonKilledBetweenAnyTwoStepsLeavesWhatIsTrue(t *testing.T) {
	t.Parallel()
	full(t)
	for _, path := range []struct {
		name, profile string
		ends          bool // what it comes to is nobody
		// ready brings the fleet to where the path begins, and gives who is there then.
		ready  func(s *leakSweep) (member string)
		do     func(member string) act
		stages []string
	}{
		{"a launch that fails", "dies", true, nil, func(string) act {
			return func(s *leakSweep, ctx context.Context) (fleet.Outcome, error) { return s.dispatch(ctx, "dies") }
		}, []string{nothing, "accepted, reserved", "booting, reserved", "failed, reserved"}},
		{"a launch that succeeds", "lives", false, nil, func(string) act {
			return func(s *leakSweep, ctx context.Context) (fleet.Outcome, error) { return s.dispatch(ctx, "lives") }
		}, []string{nothing, "accepted, reserved", "booting, reserved", "listed, reserved"}},
		{"a member that ends", "lives", true, func(s *leakSweep) string {
			out, err := s.dispatch(s.t.Context(), "lives")
			if err != nil {
				s.t.Fatal(err)
			}
			s.await("the reservation is dropped", s.settled)
			return out.Member
		}, func(member string) act {
			return func(s *leakSweep, ctx context.Context) (fleet.Outcome, error) {
				for _, pid := range marked("FLEETDECK_TREE=" + s.tree) {
					syscall.Kill(pid, syscall.SIGKILL)
				}
				for {
					m, err := s.client.Member(ctx, member)
					if err == nil && !m.Alive() {
						return fleet.Outcome{}, errors.New("it has ended")
					}
					select {
					case <-ctx.Done():
						return fleet.Outcome{}, ctx.Err()
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
		}, []string{"listed", "exited"}},
		{"a launch that is taken over", "boots", false, func(s *leakSweep) string {
			os.Remove(filepath.Join(s.dir, "go"))
			out, err := s.dispatcher().Dispatch(s.t.Context(), s.order("boots"))
			if err != nil {
				s.t.Fatal(err)
			}
			s.await("it boots", func() bool {
				stage, _ := s.onRecord()
				return stage == "booting, reserved" && slices.Contains(s.starts(), out.Member)
			})
			s.down()
			if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
				s.t.Fatal(err)
			}
			s.upStopped()
			return out.Member
		}, func(member string) act {
			return func(s *leakSweep, ctx context.Context) (fleet.Outcome, error) {
				return s.dispatcher().Wait(ctx, fleet.Outcome{Member: member})
			}
		}, []string{"booting, reserved", "listed, reserved", "listed"}},
	} {
		t.Run(path.name, func(t *testing.T) {
			s := newLeakSweep(t)
			round := func(n int) (steps []string, stage string) {
				before := len(s.starts())
				member := ""
				if path.ready != nil {
					member = path.ready(s)
				}
				out, steps, stage, err := s.killAt(n, path.do(member))
				refusal := fleet.RefusalOf(err)
				switch {
				case err == nil && path.ends:
					t.Errorf("%+v, want nobody", out)
				case err == nil:
					s.await("its agent says that it was started", func() bool { return len(s.starts()) > before })
					s.wantMember(out.Member, "architect-"+path.profile)
					if err := s.client.Stop(t.Context(), out.Member); err != nil {
						t.Errorf("stop: %v", err)
					}
				case !path.ends && (refusal == nil || refusal.Code != fleet.CodeDaemonUnreachable):
					t.Errorf("dispatch: %+v, %v, want an agent, or that nothing was sent", out, err)
				}
				s.wantNobody()
				if began := s.starts()[before:]; len(began) > 1 {
					t.Errorf("%d agents were started: %v", len(began), began)
				}
				return steps, stage
			}
			all, _ := round(0)
			if len(all) < 4 {
				t.Fatalf("its steps are %v: too few to be true", all)
			}
			stride := 1
			if *killPoints > 0 {
				stride = max(1, (len(all)+*killPoints-1) / *killPoints)
			}
			seen, kills := map[string]int{}, 0
			var log strings.Builder
			for n, short := 1, 0; short < 5; n += stride {
				steps, stage := round(n)
				if len(steps) < n {
					short++ // it had fewer steps this time; how many differs a little
					continue
				}
				kills++
				seen[stage]++
				fmt.Fprintf(&log, "%3d before %-32s on record: %s\n", n, steps[n-1], stage)
				if t.Failed() {
					break
				}
			}
			t.Logf("%d steps; killed %d times: %v\n%s", len(all), kills, seen, log.String())
			for _, stage := range path.stages {
				if stride == 1 && seen[stage] == 0 {
					t.Errorf("it was never killed with %q on record: the sweep has lost its aim", stage)
				}
			}
		})
	}
}
