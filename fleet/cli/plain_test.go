package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
)

func texts(list []change) []string {
	var t []string
	for _, c := range list {
		t = append(t, c.Text)
	}
	return t
}

func TestEachChangeOfTheFleetIsOneLine(t *testing.T) {
	t.Setenv("HOME", "/home/kim")
	up := fleet.DaemonInfo{Running: true, Pid: 7, Version: "1"}
	base := fleet.Snapshot{
		Daemon: up, Lock: fleet.LockInfo{State: "free"},
		Trees:   []fleet.TreeRow{{Tree: "/home/kim/src/api", Occupancy: fleet.Free, Branch: "main"}},
		Slots:   []fleet.Slot{{Name: "architect-1", State: fleet.SlotFree}},
		Members: []fleet.Member{{ID: "m1", Tree: "/src/web", State: fleet.StateWorking}},
		Queue:   []fleet.QueueRow{{ID: "q1", Tree: "/src/web", State: "queued"}},
		Events:  []fleet.Event{{Seq: 1, Level: "info", Kind: "listed"}},
		History: []fleet.Deed{{What: "prune", Command: "fleetdeck prune", Outcome: "done"}},
		Keeper:  fleet.KeeperInfo{Staff: 2},
	}
	seven := 7
	tree := func(change func(*fleet.TreeRow)) func(*fleet.Snapshot) {
		return func(s *fleet.Snapshot) {
			s.Trees = []fleet.TreeRow{base.Trees[0]}
			change(&s.Trees[0])
		}
	}
	member := func(change func(*fleet.Member)) func(*fleet.Snapshot) {
		return func(s *fleet.Snapshot) {
			s.Members = []fleet.Member{base.Members[0]}
			change(&s.Members[0])
		}
	}
	for _, test := range []struct {
		name   string
		change func(*fleet.Snapshot)
		want   []string
	}{
		{"nothing", func(*fleet.Snapshot) {}, nil},
		{"only the age", tree(func(t *fleet.TreeRow) { t.RemainingS = 3 }), nil},
		{"dirt", tree(func(t *fleet.TreeRow) { t.Dirty = true }), nil},
		{"daemon down", func(s *fleet.Snapshot) { s.Daemon = fleet.DaemonInfo{Error: "no socket"} },
			[]string{"daemon is down, start it with 'fleetdeck up': no socket"}},
		{"another daemon", func(s *fleet.Snapshot) { s.Daemon.Pid = 8 }, []string{"daemon is another by now, pid 8, version 1"}},
		{"a broken file", func(s *fleet.Snapshot) { s.File.Error = "zeros" },
			[]string{"reservation file is unusable, dispatches are refused: zeros"}},
		{"a held lock", func(s *fleet.Snapshot) {
			s.Lock = fleet.LockInfo{State: "held", Holder: &fleet.LockHolder{Pid: 9, Program: "python3 x.py"}}
		}, []string{"lock is held by pid 9 (python3 x.py)"}},
		{"a keeper", func(s *fleet.Snapshot) { s.Keeper.Running = true }, []string{"keeper runs, 2 trees to keep staffed"}},
		{"a broken entry", func(s *fleet.Snapshot) { s.Keeper.Broken = 1 },
			[]string{"keeper has given up on 1 of 2 trees, see 'fleetdeck keep --status'"}},
		{"reserved", func(s *fleet.Snapshot) {
			s.Trees = []fleet.TreeRow{{Tree: "/home/kim/src/api", Occupancy: fleet.Reserved, Reservation: "r1", RemainingS: 89.6, Branch: "main"}}
			s.Reservations = []fleet.ReservationRow{{Tree: "/home/kim/src/api", ID: "r1", Dispatcher: fleet.Dispatcher{Pid: 5, Program: "fleetdeck dispatch"}}}
		}, []string{"tree ~/src/api is reserved by fleetdeck dispatch, pid 5, 90s left"}},
		{"occupied", func(s *fleet.Snapshot) {
			s.Trees = []fleet.TreeRow{{Tree: "/home/kim/src/api", Occupancy: fleet.Taken, Member: "m2", Branch: "main"}}
			s.Members = append(base.Members[:1:1], fleet.Member{ID: "m2", Role: "dev", Profile: "claude", State: fleet.StateIdle})
		}, []string{"tree ~/src/api is occupied by member m2, dev on claude, idle"}},
		{"another branch", tree(func(t *fleet.TreeRow) { t.Branch = "topic" }), []string{"tree ~/src/api is on branch topic"}},
		{"missing", tree(func(t *fleet.TreeRow) { t.Missing = true }), []string{"tree ~/src/api is missing: its directory is gone"}},
		{"a new tree", func(s *fleet.Snapshot) {
			s.Trees = append(base.Trees[:1:1], fleet.TreeRow{Tree: "/src/new", Occupancy: fleet.Free})
		}, []string{"tree /src/new is new, and free"}},
		{"a tree less", func(s *fleet.Snapshot) { s.Trees = nil }, []string{"tree ~/src/api is not listed any more"}},
		{"waiting", member(func(m *fleet.Member) { m.State, m.StateMessage = fleet.StateWaiting, "Which database?" }),
			[]string{"member m1 in /src/web waits: “Which database?”"}},
		{"idle", member(func(m *fleet.Member) { m.State = fleet.StateIdle }), []string{"member m1 in /src/web is idle"}},
		{"ended", member(func(m *fleet.Member) { m.State, m.ExitCode = fleet.StateExited, &seven }),
			[]string{"member m1 in /src/web ended with code 7"}},
		{"an end that nobody saw", member(func(m *fleet.Member) { m.State = fleet.StateExited }),
			[]string{"member m1 in /src/web ended, its exit code is not known"}},
		{"a mismatch", member(func(m *fleet.Member) { m.CharterMismatch = true }),
			[]string{"member m1 in /src/web has the charter of a role that it does not hold"}},
		{"a bound slot", func(s *fleet.Snapshot) {
			s.Slots = []fleet.Slot{{Name: "architect-1", State: fleet.SlotBound, Member: "m1", Tree: "/src/web"}}
		}, []string{"slot architect-1 is bound to member m1 in /src/web"}},
		{"given up", func(s *fleet.Snapshot) {
			s.Queue = []fleet.QueueRow{{ID: "q1", Tree: "/src/web", State: "given_up", Error: "no profile"}}
		}, []string{"task q1 for /src/web is given up: no profile"}},
		{"through the queue", func(s *fleet.Snapshot) { s.Queue = nil }, []string{"task q1 for /src/web has left the queue"}},
		{"an alarm", func(s *fleet.Snapshot) {
			s.Events = append(base.Events[:1:1], fleet.Event{Seq: 2, Level: "alarm", Kind: "bind_failed", Tree: "/src/web", Message: "no slot"},
				fleet.Event{Seq: 3, Level: "info", Kind: "listed", Message: "not told"})
		}, []string{"alarm: /src/web: no slot"}},
		{"another console's act", func(s *fleet.Snapshot) {
			s.History = append(base.History[:1:1], fleet.Deed{By: fleet.Dispatcher{Pid: 4}, What: "stop", Command: "fleetdeck stop m1", Outcome: "refused", Message: "no"})
		}, []string{"console, pid 4: fleetdeck stop m1: refused: no"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			next := base
			test.change(&next)
			if d := cmp.Diff(test.want, texts(diff(base, next))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWhatOnlyTheDaemonKnowsHasNotChangedWhileItIsDown(t *testing.T) {
	up := fleet.Snapshot{
		Daemon: fleet.DaemonInfo{Running: true, Pid: 7}, Trees: []fleet.TreeRow{{Tree: "/src/api", Occupancy: fleet.Taken, Member: "m1"}},
		Members: []fleet.Member{{ID: "m1", Tree: "/src/api", State: fleet.StateWorking}}, Slots: []fleet.Slot{{Name: "s", State: fleet.SlotBound, Member: "m1"}},
	}
	down := fleet.Snapshot{Trees: []fleet.TreeRow{{Tree: "/src/api", Occupancy: fleet.Free}}}
	carried := carry(up, down)
	if got := texts(diff(up, carried)); len(got) != 1 {
		t.Errorf("down: %q, want one line, on the daemon", got)
	}
	if got := texts(diff(carried, carry(carried, up))); len(got) != 1 {
		t.Errorf("up again: %q, want one line, on the daemon", got)
	}
}

func TestTheStatusTellsEveryTreeThatIsNotAtRest(t *testing.T) {
	s := fleet.Snapshot{
		Daemon: fleet.DaemonInfo{Running: true, Pid: 7, Version: "1"},
		Trees:  []fleet.TreeRow{{Tree: "/src/a", Occupancy: fleet.Free}, {Tree: "/src/b", Occupancy: fleet.Taken, Member: "m"}},
		Members: []fleet.Member{
			{ID: "m", Tree: "/src/b", Role: "dev", Profile: "claude", State: fleet.StateWaiting, StateMessage: "Which?"},
			{ID: "old", Tree: "/src/a", State: fleet.StateExited},
		},
		Events: []fleet.Event{{Seq: 1, Level: "warn", Message: "long ago"}},
	}
	want := []string{
		"daemon is up, pid 7, version 1", "tree /src/b is occupied by member m, dev on claude, waiting", "member m in /src/b waits: “Which?”",
		"2 trees, 1 of them free",
	}
	if d := cmp.Diff(want, texts(status(s))); d != "" {
		t.Error(d)
	}
	s.Daemon = fleet.DaemonInfo{Error: "no socket"}
	s.Members = nil
	want = []string{"daemon is down, start it with 'fleetdeck up': no socket", "2 trees; who is where is not known without the daemon"}
	if d := cmp.Diff(want, texts(status(s))); d != "" {
		t.Error(d)
	}
}
