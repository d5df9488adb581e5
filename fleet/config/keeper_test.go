package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet/config"
)

const staffed = `[profiles.shell]
command = ["sh"]
[[staff]]
tree = "/src/api"
profile = "shell"
[[staff]]
tree = "/src/web"
profile = "shell"
`

func TestKeeperIsTakenFromTheFileAndElseAsDocumented(t *testing.T) {
	c, err := config.Parse("/etc/fleetdeck.toml", []byte(staffed))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.DefaultKeeper, c.Keeper); diff != "" {
		t.Errorf("without [keeper] (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(config.DefaultKeeper, config.Default("").Keeper); diff != "" {
		t.Errorf("without a file (-want +got):\n%s", diff)
	}
	c, err = config.Parse("/etc/fleetdeck.toml", []byte(staffed+`[keeper]
interval = "50ms"
launches = 2
crashes = 3
backoff = "10ms"
backoff_max = "1s"
in_daemon = false
`))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Keeper{Interval: 50 * time.Millisecond, Launches: 2, Crashes: 3, Backoff: 10 * time.Millisecond, BackoffMax: time.Second}
	if diff := cmp.Diff(want, c.Keeper); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrongKeeperOrStaffIsToldWithKeyAndLine(t *testing.T) {
	for _, tt := range []struct{ name, add, want string }{
		{"no launches", "[keeper]\nlaunches = 0\n", ":10: keeper.launches: 0 must be more than zero"},
		{"no crashes", "[keeper]\ncrashes = -1\n", ":10: keeper.crashes: -1 must be more than zero"},
		{"no interval", "[keeper]\ninterval = \"0s\"\n", ":10: keeper.interval"},
		{"no duration", "[keeper]\nlaunches = 1\nbackoff = \"soon\"\n", ":11: keeper.backoff"},
		{"first back-off above the longest", "[keeper]\nbackoff = \"10m\"\n", ":10: keeper.backoff"},
		{"longest back-off below the first", "[keeper]\nbackoff_max = \"1ms\"\n", ":10: keeper.backoff_max"},
		{"no number", "[keeper]\nlaunches = \"four\"\n", ":10:"},
		{"unknown key", "[keeper]\nlaunchs = 4\n", `:10: unknown key "keeper.launchs"`},
		{"a tree twice", "[[staff]]\nprofile = \"shell\"\ntree = \"/src/./api\"\n", ":11: staff[2].tree: /src/api stands twice"},
		{"unknown policy", "[[staff]]\ntree = \"/src/db\"\nprofile = \"shell\"\nrestart = \"sometimes\"\n", ":12: staff[2].restart"},
		{"no profile", "[[staff]]\ntree = \"/src/db\"\n", ":9: staff[2].profile"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse("/etc/fleetdeck.toml", []byte(staffed+tt.add))
			if err == nil || !strings.Contains(err.Error(), "/etc/fleetdeck.toml"+tt.want) {
				t.Errorf("Parse: %v, want %q", err, tt.want)
			}
		})
	}
}
