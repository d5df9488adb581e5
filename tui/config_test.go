package tui

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrongSettingsAreAllToldByName(t *testing.T) {
	tests := []struct {
		name string
		conf Config
		want []string // parts of "key: text"
	}{
		{"nothing is set", Config{}, nil},
		{"another key", Config{Keys: map[string][]string{"spawn": {"ctrl+n", "N"}}}, nil},
		{"no key at all", Config{Keys: map[string][]string{"prune": {}}}, nil},
		{"no such action", Config{Keys: map[string][]string{"spwan": {"s"}}}, []string{`keys.spwan: there is no action "spwan"`}},
		{"a key of another", Config{Keys: map[string][]string{"spawn": {"m"}}}, []string{`keys.spawn: "m" is the key of both spawn and message`}},
		{"two that change places", Config{Keys: map[string][]string{"spawn": {"m"}, "message": {"s"}}}, nil},
		{"both given one key", Config{Keys: map[string][]string{"spawn": {"f9"}, "diff": {"f9"}}}, []string{`keys.diff: "f9" is the key of both spawn and diff`}},
		{"a bare space", Config{Keys: map[string][]string{"spawn": {" "}}}, []string{`keys.spawn: the space bar is written "space"`}},
		{"no such key", Config{Keys: map[string][]string{"spawn": {"hyper+s"}}}, []string{`keys.spawn: there is no key "hyper+s"`}},
		{"destroying by a small letter", Config{Keys: map[string][]string{"stop": {"k"}}}, []string{`keys.stop: stop destroys, so "k" cannot be its key`}},
		{"destroying by ctrl+d", Config{Keys: map[string][]string{"stop": {"ctrl+d"}}}, []string{"keys.stop: ctrl+d scrolls"}},
		{"no way out", Config{Keys: map[string][]string{"quit-now": {}}}, []string{"keys.quit-now: quit-now needs a key"}},
		{"strict, and a small letter", Config{StrictKeys: true, Keys: map[string][]string{"message": {"b"}}}, []string{"keys.message: message changes the fleet, and strict_keys asks for a shifted letter"}},
		{"strict", Config{StrictKeys: true}, nil},
		{"no such view", Config{Columns: map[string][]string{"forest": {"tree"}}}, []string{`columns.forest: there is no view "forest"`}},
		{"no such column", Config{Columns: map[string][]string{"trees": {"tree", "colour"}}}, []string{`columns.trees: there is no column "colour"`}},
		{"no column", Config{Columns: map[string][]string{"trees": {}}}, []string{"columns.trees: a list without columns"}},
		{"sorted by what is not shown", Config{Columns: map[string][]string{"trees": {"tree"}}, Sort: map[string]string{"trees": "branch"}}, []string{`sort.trees: there is no column to sort by "branch": there are tree`}},
		{"sorted", Config{Sort: map[string]string{"members": "-up"}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range tt.conf.Check() {
				got = append(got, p.Key+": "+p.Text)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("problems = %q, want %q", got, tt.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tt.want[i]) {
					t.Errorf("problem = %q, want %q", got[i], tt.want[i])
				}
			}
		})
	}
}

func TestConfiguredKeysAreThoseThatCount(t *testing.T) {
	conf := Config{Keys: map[string][]string{"members": {"f2"}, "palette": {}}}
	m := still(example(instant(0)), 120, 40, Options{Home: home, Config: conf})
	if typed(m, "2"); m.view != viewTrees {
		t.Error("a key that was taken away still acts")
	}
	if typed(m, "f2"); m.view != viewMembers {
		t.Error("the configured key does not act")
	}
	if !strings.Contains(m.View().Content, "f2 members") {
		t.Error("the tab does not show the configured key")
	}
	if typed(m, ":"); m.dialog != nil {
		t.Error("an action without a key still has one")
	}
}

func TestStrictKeysMoveChangesToShiftedLetters(t *testing.T) {
	m := still(example(instant(0)), 120, 40, Options{Home: home, Config: Config{StrictKeys: true}})
	for _, a := range m.all {
		for _, k := range a.key.Keys() {
			if _, small := shifted(k); small && a.changes {
				t.Errorf("%s changes the fleet by %q", a.name, k)
			}
		}
	}
	if typed(m, "s"); m.dialog != nil {
		t.Error("s still opens the form")
	}
	if typed(m, "S"); m.dialog == nil {
		t.Error("S does not open the form")
	}
}

func TestConfiguredColumnsAndOrderAreThoseThatAreDrawn(t *testing.T) {
	conf := Config{Columns: map[string][]string{"trees": {"occupancy", "tree"}}, Sort: map[string]string{"trees": "-tree"}}
	m := still(example(instant(0)), 80, 24, Options{Home: home, Config: conf})
	var titles string
	for l := range strings.Lines(plainFrame(m)) {
		if strings.Contains(l, "OCCUPANCY") {
			titles = strings.Join(strings.Fields(l), " ")
		}
	}
	if diff := cmp.Diff("OCCUPANCY TREE↓", titles); diff != "" {
		t.Errorf("titles (-want +got):\n%s", diff)
	}
	if got := m.trees.shown[0].Tree; got != home+"/src/web" {
		t.Errorf("first row %q, want the last by name", got)
	}
}
