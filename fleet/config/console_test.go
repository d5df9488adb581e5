package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet/config"
)

func TestConsoleIsTakenFromTheFileHoweverItIsSpelt(t *testing.T) {
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "ed -s")
	t.Setenv("SHELL", "/bin/zsh")
	whole := config.Console{
		Theme: "colour-blind", Mouse: true, StrictKeys: true, Notify: "osc777",
		Editor: []string{"code", "-w"}, Shell: []string{"fish", "-l"},
		Keys:    map[string][]string{"spawn": {"s"}, "stop.all": {"X", "ctrl+x"}, "prune": {}},
		Columns: map[string][]string{"trees": {"tree", "state"}},
		Sort:    map[string]string{"trees": "-age"},
	}
	defaults := config.Console{
		Theme: "auto", Notify: "bell", Editor: []string{"sh", "-c", `ed -s "$@"`, "EDITOR"}, Shell: []string{"/bin/zsh"},
		Keys: map[string][]string{},
	}
	for _, tt := range []struct {
		name, text string
		want       config.Console
		pos        map[string]int
	}{
		{"nothing", "grace = \"9s\"\n", defaults, map[string]int{}},
		{"tables", `[console]
theme = "colour-blind"
mouse = true
strict_keys = true
notify = "osc777"
editor = ["code", "-w"]
shell = ["fish", "-l"]
[console.keys]
spawn = "s"
"stop.all" = ["X",
  "ctrl+x"]
prune = []
[console.columns]
trees = ["tree", "state"]
[console.sort]
trees = "-age"
`, whole, map[string]int{
			"": 1, "theme": 2, "mouse": 3, "strict_keys": 4, "notify": 5, "editor": 6, "shell": 7, "keys": 8, "keys.spawn": 9,
			"keys.stop.all": 10, "keys.prune": 12, "columns": 13, "columns.trees": 14, "sort": 15, "sort.trees": 16,
		}},
		{"dotted and in line", `[console]
mouse = true
strict_keys = true
notify = "osc777"
editor = ["code", "-w"]
shell = ["fish", "-l"]
keys = { spawn = "s", "stop.all" = ["X", "ctrl+x"], prune = [] }
columns.trees = ["tree", "state"]
sort.trees = "-age"
theme = "colour-blind"
`, whole, map[string]int{
			"": 1, "mouse": 2, "strict_keys": 3, "notify": 4, "editor": 5, "shell": 6, "keys": 7, "keys.spawn": 7,
			"keys.stop.all": 7, "keys.prune": 7, "columns": 8, "columns.trees": 8, "sort": 9, "sort.trees": 9, "theme": 10,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := config.Parse("/etc/fleetdeck.toml", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Pos = tt.pos
			if diff := cmp.Diff(tt.want, c.Console); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	defaults.Keys = nil
	if diff := cmp.Diff(defaults, config.Default("").Console); diff != "" {
		t.Errorf("without a file (-want +got):\n%s", diff)
	}
}

func TestWrongConsoleIsToldWithKeyAndLine(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"theme", "[console]\nmouse = true\ntheme = \"pink\"\n", `:3: console.theme: "pink" is unknown: use auto, dark`},
		{"no theme", "[console]\ntheme = \"\"\n", `:2: console.theme: "" is unknown`},
		{"notify", "[console]\nnotify = \"mail\"\n", ":2: console.notify"},
		{"mouse", "[console]\nmouse = \"yes\"\n", ":2:"},
		{"no editor", "[console]\neditor = []\n", ":2: console.editor: names no program"},
		{"editor as a line", "[console]\neditor = \"vi\"\n", ":2:"},
		{"shell", "[console]\nshell = [\"\"]\n", ":2: console.shell: names no program"},
		{"key of another kind", "[console.keys]\nspawn = 3\n", ":2: console.keys.spawn: is a key or a list"},
		{"keys of another kind", "[console.keys]\nspawn = [\"s\", 3]\n", ":2: console.keys.spawn: is a key or a list"},
		{"empty key", "[console.keys]\nspawn = \"s\"\nprune = \"\"\n", ":3: console.keys.prune: holds an empty key"},
		{"key in line", "[console]\n\nkeys = { spawn = \"\" }\n", ":3: console.keys.spawn"},
		{"no columns", "[console.columns]\ntrees = []\n", ":2: console.columns.trees: a view needs a column"},
		{"column twice", "[console.columns]\ntrees = [\"a\", \"b\", \"a\"]\n", `:2: console.columns.trees: "a"`},
		{"sort", "[console.sort]\ntrees = \"-\"\n", ":2: console.sort.trees: names no column"},
		{"unknown key", "[console]\ncolour = true\n", `:2: unknown key "console.colour"`},
		{"unknown table", "[consol]\n", `:1: unknown key "consol"`},
		{"worktrees", "[worktrees]\ndirectory = \"x\"\n", `:2: unknown key "worktrees.directory"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse("/etc/fleetdeck.toml", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), "/etc/fleetdeck.toml"+tt.want) {
				t.Errorf("Parse: %v, want %q", err, tt.want)
			}
		})
	}
}

func TestWorktreeDirIsAbsolute(t *testing.T) {
	t.Setenv("HOME", "/home/kim")
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"[worktrees]\ndir = \"wt\"\n", "/etc/wt"},
		{"[worktrees]\ndir = \"~/wt\"\n", "/home/kim/wt"},
		{"[worktrees]\ndir = \"/wt/\"\n", "/wt"},
	} {
		c, err := config.Parse("/etc/fleetdeck.toml", []byte(tt.text))
		if err != nil || c.WorktreeDir != tt.want {
			t.Errorf("%q: dir %q, %v, want %q", tt.text, c.WorktreeDir, err, tt.want)
		}
	}
}
