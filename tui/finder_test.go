package tui

import (
	"testing"

	"fleetdeck/fleet"
)

func TestFinderTakesAFewLettersForTheNameThatHasThem(t *testing.T) {
	s := example(instant(0))
	root := "/tmp/fleetdeck-demo-of-a-very-long-name/src/"
	s.Trees = nil
	for _, name := range []string{"api", "billing", "mobile", "web"} {
		s.Trees = append(s.Trees, fleet.TreeRow{Tree: root + name, Branch: "main", Occupancy: fleet.Free})
	}
	tests := []struct{ typed, want string }{
		{"mob", "mobile"}, {"MOB", "mobile"}, {"eb", "web"}, {"bil", "billing"}, {"src/mob", "mobile"}, {"mble", "mobile"},
	}
	for _, tt := range tests {
		m := still(s, 120, 40, Options{Home: home})
		d := finder{}
		d.begin(m, "")
		d.input.set(tt.typed)
		d.search(m, "")
		var found []string
		for _, f := range d.found {
			found = append(found, f.Tree)
		}
		if len(found) == 0 || found[0] != root+tt.want {
			t.Errorf("%q finds %q, want %s first", tt.typed, found, tt.want)
		}
	}
}
