package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
)

// inCluster makes a snapshot of one host that of kite in a fleet of three hosts, of which heron is lost.
func inCluster(s fleet.Snapshot) fleet.Snapshot {
	now := s.At
	ago := func(d time.Duration) time.Time { return now.Wall.Add(-d) }
	s.Trees, s.Members, s.Reservations, s.Slots = slices.Clone(s.Trees), slices.Clone(s.Members), slices.Clone(s.Reservations), slices.Clone(s.Slots)
	for i := range s.Trees {
		s.Trees[i].Node = "kite"
	}
	for i := range s.Members {
		s.Members[i].Node = "kite"
	}
	for i := range s.Reservations {
		s.Reservations[i].Node = "kite"
	}
	for i := range s.Slots {
		if s.Slots[i].State != fleet.SlotFree {
			s.Slots[i].Node = "kite"
		}
	}
	ends := fleet.DeadlineAfter(now, 49*time.Second)
	held := func(tree, id, state string) fleet.NodeTree {
		return fleet.NodeTree{Tree: home + "/src/" + tree, ID: id, State: state, Role: "dev", Profile: "claude", ReservedAt: ago(41 * time.Second)}
	}
	slotted := held("maps", "r12", "member")
	slotted.Role, slotted.Profile, slotted.Slot = "architect", "codex", "architect-2"
	member := func(id, tree, role, reservation string, state fleet.State) fleet.Member {
		return fleet.Member{ID: id, Tree: home + "/src/" + tree, Role: role, RequestedRole: role, Profile: "claude", State: state, StartedAt: ago(25 * time.Minute), Reservation: reservation}
	}
	crane := fleet.Node{Name: "crane", Host: "crane.example", Version: "0.4.0",
		Members: []fleet.Member{member("01JECRANE001", "web", "dev", "r11", fleet.StateWaiting), member("01JECRANE002", "maps", "architect", "r12", fleet.StateWorking)},
		Held:    []fleet.NodeTree{held("web", "r11", "member"), slotted, held("tiles", "r13", "launching")}}
	crane.Members[0].StateMessage, crane.Members[1].Profile, crane.Members[1].Slot = "Which port is it to listen on?", "codex", "architect-2"
	heron := fleet.Node{Name: "heron", Lost: true,
		Members: []fleet.Member{member("01JEHERON001", "api", "dev", "r21", fleet.StateWorking)},
		Held:    []fleet.NodeTree{held("api", "r21", "member"), held("batch", "r22", "member")}}
	kite := fleet.Node{Name: "kite", Host: "kite.example", Version: "0.4.0", Members: s.Members[:min(3, len(s.Members))],
		Held: []fleet.NodeTree{held("api", "r1", "member"), held("billing", "r2", "member"), held("fleet-core", "r3", "member"), held("search", "r5", "launching")}}
	s.Nodes = []fleet.Node{crane, heron, kite}
	for _, n := range []fleet.Node{crane, heron} {
		byReservation := map[string]string{}
		for _, x := range n.Members {
			x.Node, x.Tree = n.Name, fleet.At(n.Name, x.Tree)
			if n.Lost {
				x.State = fleet.StateLost
			}
			byReservation[x.Reservation] = x.ID
			s.Members = append(s.Members, x)
		}
		for _, t := range n.Held {
			tree := fleet.At(n.Name, t.Tree)
			row := fleet.TreeRow{Tree: tree, Node: n.Name, Occupancy: fleet.Taken, Member: byReservation[t.ID], Reservation: t.ID}
			if t.State != "member" {
				row.Occupancy, row.Deadline = fleet.Reserved, ends
				s.Reservations = append(s.Reservations, fleet.ReservationRow{
					Tree: tree, Node: n.Name, ID: t.ID, Role: t.Role, Profile: t.Profile, ReservedAt: t.ReservedAt, ExpiresAt: ends.Wall, Verdict: fleet.VerdictPending,
					Dispatcher: fleet.Dispatcher{Pid: 611, Host: "crane", Program: "fleetdeck dispatch"}, Deadline: ends,
				})
			}
			s.Trees = append(s.Trees, row)
		}
	}
	if len(s.Slots) == 0 {
		s.Slots = make([]fleet.Slot, 2)
	}
	s.Slots[1] = fleet.Slot{Name: "architect-2", Role: "architect", Profile: "codex", State: fleet.SlotBound, Member: "01JECRANE002", Reservation: "r12", Tree: fleet.At("crane", home+"/src/maps"), Since: ago(25 * time.Minute), Node: "crane"}
	s.File.Path = "https://10.0.0.1:2379,https://10.0.0.2:2379,https://10.0.0.3:2379/fleetdeck/v1/web/"
	s.Cluster = &fleet.ClusterInfo{Fleet: "web", Node: "kite", Keeper: "kite", HeardAt: ago(time.Second), Endpoints: []fleet.Endpoint{
		{URL: "https://10.0.0.1:2379", Name: "etcd-1", Version: "3.7.0", LatencyMS: 1.24, Revision: 4711, Bytes: 180_000},
		{URL: "https://10.0.0.2:2379", Name: "etcd-2", Version: "3.7.0", Leader: true, LatencyMS: 0.93, Revision: 4711, Bytes: 180_000},
		{URL: "https://10.0.0.3:2379", Name: "etcd-3", Version: "3.7.0", LatencyMS: 12.4, Revision: 4711, Bytes: 176_000},
	}}
	return s
}

// manyHosts has m show its fleet as that of kite in a cluster.
func manyHosts(m *Model, change func(*fleet.Snapshot)) {
	s := m.ix.Snapshot
	if !m.many() {
		s = inCluster(s)
	}
	if change != nil {
		change(&s)
	}
	m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(s)})
}

// partitioned is a cluster that was heard 12 s ago.
func partitioned(s *fleet.Snapshot) {
	c := *s.Cluster
	c.HeardAt, c.Error = s.At.Wall.Add(-12*time.Second), "etcd does not answer: https://10.0.0.1:2379: context deadline exceeded"
	c.Endpoints = slices.Clone(c.Endpoints)
	for i := range c.Endpoints {
		c.Endpoints[i] = fleet.Endpoint{URL: c.Endpoints[i].URL, Error: "context deadline exceeded"}
	}
	s.Cluster = &c
	s.File.Error, s.File.Code = c.Error, fleet.CodeClusterUnreachable
	for i := range s.Trees {
		if s.Trees[i].Occupancy == fleet.Free {
			s.Trees[i].Occupancy = fleet.Unsure
		}
	}
}

func TestAPartitionIsShownAsStaleDataAndNeverAsAnEmptyFleet(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {200, 60}} {
		for _, v := range []struct{ key, want string }{{"1", "crane:~/src/web"}, {"2", "01JECRANE001"}, {"3", "architect-2"}, {"4", "tiles"}, {"8", "heron"}} {
			m := still(example(instant(0)), size.w, size.h, Options{Home: home})
			manyHosts(m, nil)
			typed(m, v.key)
			_, before := m.list().count()
			manyHosts(m, partitioned)
			text := ansi.Strip(m.View().Content)
			if _, now := m.list().count(); now != before {
				t.Errorf("view %s at %dx%d: %d rows, before the partition %d", v.key, size.w, size.h, now, before)
			}
			for _, want := range []string{"ETCD NOT HEARD · for 12 s: what other hosts show is of then", "etcd not heard 12 s"} {
				if !strings.Contains(text, want) {
					t.Errorf("view %s at %dx%d does not say %q:\n%s", v.key, size.w, size.h, want, text)
				}
			}
			if strings.Contains(text, "· live") {
				t.Errorf("view %s at %dx%d is said to be live", v.key, size.w, size.h)
			}
		}
	}
}

// Where etcd takes no more writes nobody can be sent anywhere, though all that is shown is true.
func TestAFullEtcdIsShown(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}} {
		m := still(example(instant(0)), size.w, size.h, Options{Home: home})
		manyHosts(m, func(s *fleet.Snapshot) { s.Cluster.Endpoints[1].Full = true })
		typed(m, "8")
		if text := ansi.Strip(m.View().Content); !strings.Contains(text, "etcd full") || !strings.Contains(text, "live") {
			t.Errorf("at %dx%d the console shows:\n%s", size.w, size.h, text)
		}
		if text := ansi.Strip(m.View().Content); size.w > 80 && !strings.Contains(text, "its database is full") {
			t.Errorf("its servers are shown as:\n%s", text)
		}
	}
}

// What never was heard is told apart from a fleet without other hosts.
func TestAClusterThatWasNeverHeardIsSaidToBe(t *testing.T) {
	m := still(example(instant(0)), 120, 40, Options{Home: home})
	manyHosts(m, func(s *fleet.Snapshot) {
		partitioned(s)
		s.Cluster.HeardAt, s.Nodes = time.Time{}, nil
	})
	if text := ansi.Strip(m.View().Content); !strings.Contains(text, "ETCD NOT HEARD · only this host is shown") {
		t.Errorf("the console shows:\n%s", text)
	}
}

func TestRowsOfANodeAreFoundAndGrouped(t *testing.T) {
	for _, c := range []struct {
		key, filter string
		want        int
	}{
		{"1", "node:crane", 3}, {"1", "node:heron", 2}, {"1", "!node:kite", 5}, {"2", "node:crane", 2}, {"2", "state:lost", 1},
		{"3", "node:crane", 1}, {"4", "node:crane", 1}, {"8", "state:lost", 1}, {"8", "state:here", 1},
	} {
		m := still(example(instant(0)), 120, 40, Options{Home: home})
		manyHosts(m, nil)
		typed(m, c.key)
		m.list().filter(c.filter)
		if n, _ := m.list().count(); n != c.want {
			t.Errorf("view %s, %s: %d rows, want %d", c.key, c.filter, n, c.want)
		}
	}
	m := still(example(instant(0)), 200, 60, Options{Home: home})
	manyHosts(m, nil)
	for range m.trees.groups {
		typed(m, "b")
	}
	if d := m.trees.describe(); !strings.HasSuffix(d, "grouped by node") {
		t.Errorf("the last group is %q, want by node", d)
	}
	typed(m, "8")
	m.nodes.goTo("crane")
	typed(m, "enter")
	if n, _ := m.members.count(); m.view != viewMembers || n != 2 {
		t.Errorf("enter on crane shows view %d with %d rows, want its two members", m.view, n)
	}
}

func TestNothingOfAClusterIsShownOnOneHost(t *testing.T) {
	m := still(example(instant(0)), 200, 60, Options{Home: home})
	typed(m, "8")
	if m.view != viewTrees {
		t.Error("there is a view of nodes")
	}
	for range 2 * len(m.trees.groups) {
		typed(m, "b")
		if strings.Contains(m.trees.describe(), "node") {
			t.Error("trees are grouped by node")
		}
	}
	for range len(m.trees.cols) + 1 {
		typed(m, ">")
		if strings.Contains(m.trees.describe(), "by node") {
			t.Error("trees are sorted by node")
		}
	}
	for _, key := range []string{"?", ":"} {
		typed(m, key)
		if text := ansi.Strip(m.View().Content); strings.Contains(text, "nodes") {
			t.Errorf("%s names nodes:\n%s", key, text)
		}
		typed(m, "esc")
	}
	for v := viewTrees; v <= viewReservations; v++ {
		m.show(v)
		m.Update(nil)
		if text := ansi.Strip(m.View().Content); strings.Contains(text, "NODE") || strings.Contains(text, "etcd") {
			t.Errorf("view %d shows a cluster:\n%s", v, text)
		}
	}
}

// An id is enough for a member, and a tree is named with its host.
func TestActsOnRowsOfAnotherHostNameIt(t *testing.T) {
	m := still(example(instant(0)), 120, 40, Options{Home: home})
	manyHosts(m, nil)
	web := fleet.At("crane", home+"/src/web")
	m.trees.goTo(web)
	if got := m.selectedTree(); got != web {
		t.Errorf("the selected tree is %q, want %q", got, web)
	}
	if x := m.selectedMember(); x == nil || x.ID != "01JECRANE001" {
		t.Errorf("the selected member is %+v, want 01JECRANE001", x)
	}
	m.trees.goTo(home + "/src/docs")
	typed(m, "s", "shift+tab", "shift+tab", "shift+tab", "shift+tab", "shift+tab")
	d := m.dialog.(*spawnDialog)
	if d.field != fieldTree {
		t.Fatalf("the form is in field %d, want the tree", d.field)
	}
	for _, k := range fleet.At("crane", "/src/new") {
		typed(m, string(k))
	}
	if typed(m, "enter"); d.tree != "crane:/src/new" {
		t.Errorf("the form is about %q, want crane:/src/new", d.tree)
	}
}
