package tui

import (
	"slices"
	"testing"

	"fleetdeck/fleet"
)

func TestFilterLooksAtRowsAsTheyAreAndWhereTheyAre(t *testing.T) {
	snapshot := func(branches ...string) fleet.Snapshot {
		s := fleet.Snapshot{At: instant(0)}
		for i, b := range branches {
			s.Trees = append(s.Trees, fleet.TreeRow{Tree: "/src/" + string(rune('a'+i)), Branch: b, Occupancy: fleet.Free})
		}
		return s
	}
	m := still(snapshot("wanted", "main", "main"), 120, 40, Options{})
	wants := func(when string, trees ...string) {
		t.Helper()
		var got []string
		for _, x := range m.trees.shown {
			got = append(got, x.Tree)
		}
		if !slices.Equal(got, trees) {
			t.Errorf("%s: the filter shows %q, want %q", when, got, trees)
		}
	}
	m.trees.filter("wanted")
	wants("at first", "/src/a")
	m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(snapshot("main", "wanted", "wanted"))})
	wants("once the rows have changed", "/src/b", "/src/c")
	typed(m, "-")
	wants("in another order", "/src/c", "/src/b")
}
