package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
)

// ofHosts is the console of kite in the cluster of inCluster, with that changed.
func ofHosts(w, h int, change func(*fleet.Snapshot)) *Model {
	m := still(example(instant(0)), w, h, Options{Home: home})
	manyHosts(m, change)
	return m
}

func shownBy(m *Model) string {
	m.Update(nil)
	return ansi.Strip(m.View().Content)
}

func TestTheNodeOfARowIsShownOnEveryUsualScreen(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {100, 30}, {120, 40}, {200, 60}} {
		m := ofHosts(size.w, size.h, nil)
		for v := viewTrees; v <= viewReservations; v++ {
			m.show(v)
			l := m.of(v).(interface{ draws(title string) bool })
			if text := shownBy(m); !l.draws("NODE") {
				t.Errorf("%s at %dx%d has no column for the node:\n%s", m.of(v).name(), size.w, size.h, text)
			}
		}
	}
}

// Nobody here knows whether another host's member has it by now.
func TestASlotIsNotSaidToBeFreeWhileEtcdIsAway(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {200, 60}} {
		m := ofHosts(size.w, size.h, func(s *fleet.Snapshot) {
			s.Slots = append(s.Slots, fleet.Slot{Name: "architect-9", Role: "architect", Profile: "codex", State: fleet.SlotFree})
		})
		typed(m, "3")
		m.slots.goTo("architect-9")
		if text := shownBy(m); !strings.Contains(text, "takes it") {
			t.Errorf("while etcd is heard %dx%d shows:\n%s", size.w, size.h, text)
		}
		manyHosts(m, partitioned)
		text := shownBy(m)
		if strings.Contains(text, "takes it") || !strings.Contains(text, "unsure") || !strings.Contains(text, "? architect-9") {
			t.Errorf("while etcd is away %dx%d shows:\n%s", size.w, size.h, text)
		}
		if s := m.slotsFor("architect", "codex"); strings.HasPrefix(s, "1 of") {
			t.Errorf("the form says %q", s)
		}
	}
}

func TestAHostIsNotSaidToBePresentWhileEtcdIsAway(t *testing.T) {
	m := ofHosts(120, 40, partitioned)
	typed(m, "8")
	for _, n := range m.nodes.all {
		want := map[string]string{"crane": "unknown", "heron": "lost", "kite": "here"}[n.Name]
		if got := m.nodeLook(n).word; got != want {
			t.Errorf("%s is said to be %s, want %s", n.Name, got, want)
		}
	}
}

func TestASlotThatAnotherHostReservedCountsDown(t *testing.T) {
	m := ofHosts(200, 60, func(s *fleet.Snapshot) {
		s.Slots[2] = fleet.Slot{Name: "dev-1", Role: "dev", Profile: "claude", State: fleet.SlotReserved, Reservation: "r13", Tree: fleet.At("crane", home+"/src/tiles"), Node: "crane"}
	})
	typed(m, "3")
	m.slots.goTo("dev-1")
	text := shownBy(m)
	for _, want := range []string{"dev-1→crane:tiles 0:49", "if it is not, in 0:49."} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "member  ") {
		t.Errorf("a member is named that there is none of:\n%s", text)
	}
}

func TestTheBarOfALostHostNamesHowToReleaseIt(t *testing.T) {
	lost := func(names ...string) func(*fleet.Snapshot) {
		return func(s *fleet.Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Lost = slices.Contains(names, s.Nodes[i].Name)
			}
			for _, name := range names {
				if !slices.ContainsFunc(s.Nodes, func(n fleet.Node) bool { return n.Name == name }) {
					s.Nodes = append(s.Nodes, fleet.Node{Name: name, Lost: true})
				}
			}
		}
	}
	for _, c := range []struct {
		name string
		lost []string
		want string
	}{
		{"one", []string{"heron"}, " HOST LOST · heron · 1 member and 2 trees stay taken · 8 shows them · `fleetdeck release --lost heron` frees them"},
		{"two", []string{"crane", "heron"}, " 2 HOSTS LOST · crane, heron · 3 members and 5 trees stay taken · 8 shows them · `fleetdeck release --lost NODE` frees them"},
		{"many", []string{"a", "b", "c", "d", "heron"}, " 5 HOSTS LOST · a, b, c, 2 more · 1 member and 2 trees stay taken · 8 shows them · `fleetdeck release --lost NODE` frees them"},
		{"this one, of which its own daemon tells", []string{"kite"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := ofHosts(200, 60, lost(c.lost...))
			text := shownBy(m)
			if c.want == "" && strings.Contains(text, "LOST") || !strings.Contains(text, c.want) {
				t.Errorf("it does not say %q:\n%s", c.want, text)
			}
		})
	}
}

// A dispatch of a cluster is etcd's to decide: whoever holds the lock of this host holds up nobody.
func TestTheLockOfOneHostHoldsUpNoDispatchOfACluster(t *testing.T) {
	m := ofHosts(160, 50, func(s *fleet.Snapshot) {
		s.Lock = fleet.LockInfo{State: "held", Holder: &fleet.LockHolder{Pid: 99, Program: "backup", Since: s.At.Wall.Add(-time.Minute)}}
	})
	m.start("dispatch dev to ~/src/docs", home+"/src/docs", nil)
	m.shown = m.ix.Lock
	text := shownBy(m)
	if !strings.Contains(text, "LOCK HELD") || strings.Contains(text, "wait for it") || strings.Contains(text, "waiting for the admission lock") {
		t.Errorf("it shows:\n%s", text)
	}
	if text := shownBy(ofHosts(160, 50, nil)); strings.Contains(text, "lock free") {
		t.Errorf("a lock that no dispatch waits for is shown:\n%s", text)
	}
}

func TestTheKeeperOfTheFleetIsNamed(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*fleet.Snapshot)
		want   string
	}{
		{"elected", func(s *fleet.Snapshot) { s.Cluster.Keeper = "crane" }, "· keeper crane ·"},
		{"none, with staff to keep", func(s *fleet.Snapshot) { s.Cluster.Keeper, s.Keeper.Staff, s.Queue = "", 1, nil }, "· no keeper ·"},
		{"one elsewhere, and none for the queue of this host", func(s *fleet.Snapshot) { s.Keeper.Running, s.Keeper.OnDemand = false, false }, "· no keeper here ·"},
		{"etcd is away", partitioned, "· keeper waits ·"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if text := shownBy(ofHosts(200, 60, c.change)); !strings.Contains(text, c.want) {
				t.Errorf("it does not say %q:\n%s", c.want, text)
			}
		})
	}
	m := ofHosts(120, 40, func(s *fleet.Snapshot) { s.Cluster.Keeper = "crane" })
	typed(m, "8")
	if text := shownBy(m); !strings.Contains(text, "crane                present   keeps") {
		t.Errorf("the list of nodes does not say who keeps:\n%s", text)
	}
}

// It is not asked for first and refused then.
func TestWhatOnlyItsOwnHostCanDoIsSaidAtOnce(t *testing.T) {
	tiles := fleet.At("crane", home+"/src/tiles")
	for _, c := range []struct{ key, want, hint string }{
		{"R", "crane:~/src/tiles is released on crane", "`fleetdeck release --id r13 " + home + "/src/tiles`"},
		{"n", "each host has a queue of its own, and crane:~/src/tiles is on crane", "`fleetdeck queue add " + home + "/src/tiles`"},
	} {
		m := ofHosts(120, 40, nil)
		m.trees.goTo(tiles)
		typed(m, c.key)
		text := shownBy(m)
		if m.dialog != nil || !strings.Contains(text, c.want) || !strings.Contains(text, c.hint) {
			t.Errorf("%s shows:\n%s", c.key, text)
		}
		if f := ansi.Strip(m.footer(200)); strings.Contains(f, "R release") || strings.Contains(f, "n queue") {
			t.Errorf("the footer offers it: %s", f)
		}
	}
	m := ofHosts(120, 40, nil)
	typed(m, "s")
	d := m.dialog.(*spawnDialog)
	d.tree, d.field = fleet.At("crane", "/src/new"), fieldTask
	typed(m, "x", "ctrl+r")
	if !d.queue {
		t.Fatal("ctrl+r does not make the form that of a task for the queue")
	}
	typed(m, "enter")
	if text := shownBy(m); m.dialog != d || len(m.acts) > 0 || !strings.Contains(text, "each host has a queue of its own") {
		t.Errorf("the form sends what is refused:\n%s", text)
	}
}

func TestARefusedDispatchToAnotherHostIsNotOfferedToTheQueueOfThisOne(t *testing.T) {
	for tree, want := range map[string]bool{fleet.At("crane", home+"/src/web"): false, home + "/src/web": true} {
		m := ofHosts(120, 40, nil)
		m.offerElse(&held{order: fleet.Order{Tree: tree, Role: "dev", Profile: "claude"}, message: "occupied"})
		if got := strings.Contains(shownBy(m), "n queue it"); got != want {
			t.Errorf("%s: the queue is offered: %t, want %t", tree, got, want)
		}
	}
}

// A free tree of another host is not listed.
func TestWhoWaitsForATreeOfAnotherHostDispatchesWhenItIsHeldNoMore(t *testing.T) {
	web, docs := fleet.At("crane", home+"/src/web"), home+"/src/docs"
	gone := func(s *fleet.Snapshot) {
		s.Trees = slices.DeleteFunc(s.Trees, func(r fleet.TreeRow) bool { return r.Tree == web })
	}
	for _, c := range []struct {
		name   string
		trees  []string
		change func(*fleet.Snapshot)
		want   bool
	}{
		{"it is held", []string{web}, func(*fleet.Snapshot) {}, false},
		{"it is held no more", []string{web}, gone, true},
		{"nor is another of this host", []string{web, docs}, gone, true},
		{"etcd is away", []string{web}, func(s *fleet.Snapshot) { gone(s); partitioned(s) }, false},
		{"a tree of this host that is not known", []string{home + "/src/none"}, gone, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := inCluster(example(instant(0)))
			c.change(&s)
			if got := freeIn(s, c.trees, false); got != c.want {
				t.Errorf("free: %t, want %t", got, c.want)
			}
		})
	}
}

// The view that the key is for is not there on one host.
func TestTheKeyOfNodesYieldsToAnActThatIsGivenIt(t *testing.T) {
	conf := Config{Keys: map[string][]string{"spawn": {"8"}}}
	if p := conf.Check(); len(p) > 0 {
		t.Fatalf("problems: %+v", p)
	}
	for _, many := range []bool{false, true} {
		m := still(example(instant(0)), 120, 40, Options{Home: home, Config: conf})
		if many {
			manyHosts(m, nil)
		}
		if typed(m, "8"); m.dialog == nil || m.view != viewTrees {
			t.Errorf("many hosts %t: 8 does not open the form", many)
		}
		if typed(m, "esc"); strings.Contains(shownBy(m), "8 nodes") {
			t.Errorf("many hosts %t: a key that nodes has no more is shown", many)
		}
		if typed(m, ":", "n", "o", "d", "e", "s", "enter"); many && m.view != viewNodes {
			t.Error("the palette does not go to the nodes")
		}
	}
	both := Config{Keys: map[string][]string{"spawn": {"8"}, "nodes": {"8"}}}
	if p := both.Check(); len(p) != 1 || !strings.Contains(p[0].Text, `"8" is the key of both`) {
		t.Errorf("both given one key: %+v, want one problem", p)
	}
}

// thirty is thirty hosts, some of which have names as long as names can be.
func thirty(s *fleet.Snapshot) {
	for i := range 27 {
		name := fmt.Sprintf("build-%02d", i)
		if i%4 == 0 {
			name = fmt.Sprintf("build-%02d.%s.example", i, strings.Repeat("region-", 6))
		}
		tree := fleet.At(name, home+"/src/api")
		x := fleet.Member{ID: fmt.Sprintf("01JEBUILD%03d", i), Tree: tree, Node: name, Role: "dev", Profile: "claude", State: fleet.StateWorking}
		s.Nodes = append(s.Nodes, fleet.Node{Name: name, Host: name, Version: "0.4.0", Lost: i%9 == 8, Members: []fleet.Member{x},
			Held: []fleet.NodeTree{{Tree: home + "/src/api", ID: fmt.Sprint("b", i), State: "member", Role: "dev"}}})
		s.Members = append(s.Members, x)
		s.Trees = append(s.Trees, fleet.TreeRow{Tree: tree, Node: name, Occupancy: fleet.Taken, Member: x.ID})
	}
}

// What wants a person comes first, however many hosts there are.
func TestLostHostsComeFirst(t *testing.T) {
	m := ofHosts(120, 40, thirty)
	var lost []bool
	for _, n := range m.nodes.shown {
		lost = append(lost, n.Lost)
	}
	if n := slices.Index(lost, false); n != 4 || slices.Contains(lost[n:], true) {
		t.Errorf("lost are %v, want the four that are first", lost)
	}
}

func TestANameOfANodeIsShownWholeWhereThereIsRoom(t *testing.T) {
	m := ofHosts(200, 60, func(s *fleet.Snapshot) {
		s.Reservations[0].Node, s.Nodes[0].Name = "crane-of-the-east", "crane-of-the-east"
	})
	typed(m, "4")
	if text := shownBy(m); !strings.Contains(text, "  crane-of-the-east  ") {
		t.Errorf("it is cut:\n%s", text)
	}
}

func TestThirtyHostsWithLongNamesFitEveryScreen(t *testing.T) {
	for _, size := range []struct{ w, h int }{{40, 10}, {80, 24}, {120, 40}, {200, 60}} {
		m := ofHosts(size.w, size.h, thirty)
		for v := viewTrees; v <= viewNodes; v++ {
			m.show(v)
			m.list().step(far)
			lines := strings.Split(shownBy(m), "\n")
			if len(lines) != size.h {
				t.Errorf("%s at %dx%d has %d lines", m.of(v).name(), size.w, size.h, len(lines))
			}
			for _, l := range lines {
				if width(l) != size.w {
					t.Errorf("%s at %dx%d: a line of %d cells: %q", m.of(v).name(), size.w, size.h, width(l), l)
				}
			}
		}
		if n, _ := m.nodes.count(); n != 30 {
			t.Errorf("%d nodes, want 30", n)
		}
		if testing.Verbose() {
			for _, v := range []view{viewTrees, viewMembers, viewNodes} {
				m.show(v)
				t.Logf("%dx%d\n%s", size.w, size.h, shownBy(m))
			}
		}
	}
}
