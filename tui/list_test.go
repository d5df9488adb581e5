package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
)

// plainFrame is the frame as text.
func plainFrame(m *Model) string { return ansi.Strip(m.View().Content) }

func TestFilterByField(t *testing.T) {
	tests := []struct {
		view, query string
		want        int
	}{
		{"1", "state:waiting", 1}, {"1", "role:dev", 4}, {"1", "role:dev !state:waiting", 3}, {"1", "!occupancy:free", 6},
		{"1", "occupancy:free main", 2}, {"1", "branch:main state:free", 2}, {"1", "nofield:x", 0},
		{"2", "state:exited", 1}, {"2", "profile:cla", 2}, {"2", "role:", 4}, {"2", "role:ev", 0},
		{"3", "state:free", 1}, {"4", "verdict:pending", 2}, {"5", "state:given", 1}, {"6", "level:alarm", 1}, {"7", "outcome:refused", 1},
	}
	for _, tt := range tests {
		t.Run(tt.view+" "+tt.query, func(t *testing.T) {
			m := typed(still(example(instant(0)), 120, 40, Options{Home: home}), tt.view, "/")
			for _, r := range tt.query {
				m.Update(keyOf(string(r)))
			}
			if got, _ := m.list().count(); got != tt.want {
				t.Errorf("%d rows are shown, want %d", got, tt.want)
			}
		})
	}
}

func TestOrderIsKeptAcrossSnapshotsAndTheCursorStaysOnItsRow(t *testing.T) {
	m := still(example(instant(0)), 120, 40, Options{Home: home})
	typed(m, "j", "j", "j") // fleet-core
	typed(m, ">", ">", "-") // by branch, descending
	if got := m.trees.describe(); got != "by branch, descending" {
		t.Fatalf("the order is %q", got)
	}
	order := func() (out []string) {
		for _, t := range m.trees.shown {
			out = append(out, t.Branch)
		}
		return out
	}
	want := order()
	if want[0] != "release/2026.11-hardening" || want[len(want)-1] != "checkout-v2" {
		t.Errorf("the order is %q", want)
	}
	m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(example(instant(0)))})
	if diff := cmp.Diff(want, order()); diff != "" {
		t.Errorf("after a snapshot (-want +got):\n%s", diff)
	}
	if got := m.selectedTree(); got != home+"/src/fleet-core" {
		t.Errorf("the cursor is on %q", got)
	}
	if !strings.Contains(plainFrame(m), "BRANCH↓") {
		t.Error("the title does not show what the list is sorted by")
	}
	for range len(m.trees.cols) + 1 {
		typed(m, ">")
	}
	if got := m.trees.describe(); got != "by branch" {
		t.Errorf("once around, the order is %q", got)
	}
}

func TestGroupsAreTitledAndTheCursorStaysInSight(t *testing.T) {
	m := still(crowd(200, 40), 80, 24, Options{Home: home})
	typed(m, "b", "b", "b") // repository, role, occupancy
	if _, note := m.listTitle(viewTrees, true); !strings.Contains(ansi.Strip(note), "grouped by occupancy") {
		t.Fatalf("the title says %q", note)
	}
	for _, keys := range [][]string{{"G"}, {"g"}, {"ctrl+d", "ctrl+d", "ctrl+d"}, {"pgup"}} {
		typed(m, keys...)
		x, _ := m.trees.current()
		if name := x.Tree[len(x.Tree)-16:]; !strings.Contains(plainFrame(m), name) {
			t.Errorf("after %v the row %s is out of sight:\n%s", keys, name, plainFrame(m))
		}
	}
	typed(m, "g")
	frame := plainFrame(m)
	if !strings.Contains(frame, "\n free ") {
		t.Errorf("the first group has no title:\n%s", frame)
	}
	for i := range 199 {
		if typed(m, "j"); m.trees.at != i+1 {
			t.Fatalf("down from row %d leads to row %d", i, m.trees.at)
		}
		x, _ := m.trees.current()
		if !strings.Contains(plainFrame(m), x.Tree[len(x.Tree)-16:]) {
			t.Fatalf("row %d is out of sight", m.trees.at)
		}
	}
}

func TestRowsOfAGroupAreInTheOrderThatIsAskedFor(t *testing.T) {
	m := typed(still(example(instant(0)), 120, 40, Options{Home: home}), "b", "b", "b", ">", "-") // by occupancy, trees descending
	var got []string
	for _, x := range m.trees.shown {
		got = append(got, string(x.Occupancy)+" "+x.Tree[strings.LastIndex(x.Tree, "/")+1:])
	}
	want := []string{"foreign legacy-importer-with-a-long-name", "free old", "free mobile", "free docs",
		"occupied fleet-core", "occupied billing", "occupied api", "reserved web", "reserved search"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRangeWithoutABeginningMarksTheRowOnly(t *testing.T) {
	m := typed(still(example(instant(0)), 120, 40, Options{Home: home}), "j", "j", "v")
	if got := m.chosenTrees(); len(got) != 1 || got[0] != home+"/src/docs" || m.trees.marked() != 1 {
		t.Errorf("marked: %q", got)
	}
}

func TestFaultsOnlyShowsWhatWantsAPerson(t *testing.T) {
	tests := []struct {
		view string
		want []string
	}{
		{"1", []string{"billing", "legacy-importer-with-a-long-name", "old"}},
		{"2", []string{"01JEABCD0002", "01JEABCD0004"}},
		{"4", []string{"old"}},
		{"5", []string{"docs"}},
	}
	for _, tt := range tests {
		t.Run(tt.view, func(t *testing.T) {
			m := typed(still(example(instant(0)), 120, 40, Options{Home: home}), tt.view, "f")
			var got []string
			switch tt.view {
			case "1":
				for _, x := range m.trees.shown {
					got = append(got, x.Tree[strings.LastIndex(x.Tree, "/")+1:])
				}
			case "2":
				for _, x := range m.members.shown {
					got = append(got, x.ID)
				}
			case "4":
				for _, x := range m.entries.shown {
					got = append(got, x.Tree[strings.LastIndex(x.Tree, "/")+1:])
				}
			case "5":
				for _, x := range m.queue.shown {
					got = append(got, x.Tree[strings.LastIndex(x.Tree, "/")+1:])
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if typed(m, "esc"); m.list().faultsOnly() {
				t.Error("esc does not show everything again")
			}
		})
	}
}

func TestActsGoOverWhatIsMarked(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("2", "space", "j", "space") // the first and the third
		l.wants("2 marked", "X stop")
		l.press("X")
		l.wants("Stop 2 members?", "dev in ~/src/api · working", "architect in ~/src/fleet-core · idle", "stop all 2 members")
		l.press("y")
		l.wantCalls("stop 01JEABCD0001", "stop 01JEABCD0003")
		l.wants("stopped 2 members")
	})
}

func TestMarksFollowTheirRowsAndGoWithThem(t *testing.T) {
	s := example(instant(0))
	m := still(s, 120, 40, Options{Home: home})
	typed(m, "j", "j", "space", "j", "v") // docs to legacy…
	if got := m.chosenTrees(); len(got) != 3 || got[0] != home+"/src/docs" {
		t.Fatalf("marked: %q", got)
	}
	s.Trees = s.Trees[3:]
	m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(s)})
	if got := m.chosenTrees(); len(got) != 2 || got[0] != home+"/src/fleet-core" {
		t.Errorf("once a marked tree is gone: %q", got)
	}
	typed(m, "esc")
	if got := m.trees.marked(); got != 0 {
		t.Errorf("esc leaves %d marks", got)
	}
	typed(m, "*")
	if got := m.trees.marked(); got != len(s.Trees) {
		t.Errorf("all marked: %d", got)
	}
	if typed(m, "*"); m.trees.marked() != 0 {
		t.Error("marking all again does not take the marks away")
	}
}

func TestOneTaskGoesToEveryMarkedTree(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("j", "j", "space", "j", "j", "space", "s") // docs and mobile
		l.wants("2 trees", "~/src/docs", "~/src/mobile")
		l.typeText("Update the licence.")
		l.press("enter")
		l.settle()
		if got := fmt.Sprint(len(l.f.calls)); got != "2" {
			t.Fatalf("calls = %q", l.f.calls)
		}
		for _, tree := range []string{"docs", "mobile"} {
			want := fmt.Sprintf("dispatch %s/src/%s dev claude %q", home, tree, "Update the licence.")
			if !strings.Contains(strings.Join(l.f.calls, "\n"), want) {
				t.Errorf("calls = %q, want %q among them", l.f.calls, want)
			}
		}
	})
}

func TestOneFailureOfManyKeepsNoOtherFromBeingTried(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("2", "*", "T") // three live
		l.wants("Restart 3 members?")
		l.f.outcome = fleet.Outcome{Outcome: fleet.Refused, Code: fleet.CodeSlotUnavailable, Message: "every slot is taken"}
		l.press("y")
		l.wantCalls("restart 01JEABCD0001", "restart 01JEABCD0002", "restart 01JEABCD0003")
		l.wants("restart 3 members: 3 of 3 failed", "every slot is taken")
	})
}
