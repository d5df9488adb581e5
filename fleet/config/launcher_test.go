package config_test

import (
	"os"
	"strings"
	"testing"

	"fleetdeck/fleet/config"
)

func TestALauncherIsChosenByProfileOrForAll(t *testing.T) {
	const profiles = "[profiles.p]\ncommand = [\"a\"]\n[profiles.q]\ncommand = [\"a\"]\nlauncher = \"embedded\"\n"
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip("no home directory")
	}
	for _, tt := range []struct{ name, text, p, q, server, socket, err string }{
		{"nothing said", profiles, "embedded", "embedded", "", "", ""},
		{"for all", "launcher = \"tmux\"\n" + profiles, "tmux", "embedded", "", "", ""},
		{"another for all", "launcher = \"herdr\"\n" + profiles + "[herdr]\nsocket = \"~/h.sock\"\n", "herdr", "embedded", "", home + "/h.sock", ""},
		{"unknown", "launcher = \"screen\"\n" + profiles, "", "", "", "", `fleetdeck.toml:1: launcher: "screen" is unknown: use embedded, tmux, herdr`},
		{"unknown in a profile", "[profiles.p]\ncommand = [\"a\"]\nlauncher = \"x\"\n", "", "", "", "", `fleetdeck.toml:3: profiles.p.launcher: "x" is unknown`},
		{"a server of the fleet's own", profiles + "[tmux]\nserver = \"own\"\n", "embedded", "embedded", "", "", ""},
		{"the user's", profiles + "[tmux]\nserver = \"user\"\n", "embedded", "embedded", "user", "", ""},
		{"one by its socket", profiles + "[tmux]\nserver = \"./t.sock\"\n", "embedded", "embedded", "/etc/t.sock", "", ""},
		{"no server", profiles + "[tmux]\nserver = \"mine\"\n", "", "", "", "", `"mine" is unknown`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := config.Parse("/etc/fleetdeck.toml", []byte(tt.text))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p, q := c.Profiles["p"].Launcher, c.Profiles["q"].Launcher; p != tt.p || q != tt.q {
				t.Errorf("launchers %q and %q, want %q and %q", p, q, tt.p, tt.q)
			}
			if c.TmuxServer != tt.server || c.HerdrSocket != tt.socket {
				t.Errorf("server %q, socket %q, want %q, %q", c.TmuxServer, c.HerdrSocket, tt.server, tt.socket)
			}
		})
	}
	for name, p := range config.Default("").Profiles {
		if p.Launcher != config.LauncherEmbedded {
			t.Errorf("profile %s without a file has the launcher %q", name, p.Launcher)
		}
	}
}
