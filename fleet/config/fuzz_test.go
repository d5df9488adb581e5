package config_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet/config"
)

func FuzzAConfigurationIsReadOrRefusedByItsLine(f *testing.F) {
	for _, s := range []string{
		"grace = \"90s\"\nroots = [\"~/src\"]\n[roles.dev]\nmay = [\"spawn\"]\n", "[profiles.x]\nagent = \"claude\"\nready = \"pattern:(\"\n",
		"[[slots]]\nname = \"a\"\nrole = \"architect\"\nprofile = \"x\"\n[[staff]]\ntree = \"/x\"\n", "[console]\nkeys = { quit = \"q\" }\n",
		"grace = \"-1s\"\nlock_wait = 5\n", "[mcp]\nlisten = \"0.0.0.0:1\"\n", "x = [[[[[[", "a.b.c = 1\n[a]\n", "\xff\x00", "roots = [\"\\u0000\"]\n",
		"[profiles.\"\\u001b[31m\"]\ncommand = []\n[worktrees]\ntrust = true\n", "[[profiles.own.screens]]\nstate = \"idle\"\nfoot = '('\n",
	} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "fleetdeck.toml")
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse(path, data)
		if err == nil {
			if c.Grace <= 0 || c.LockWait < 0 || c.PruneWait < 0 {
				t.Errorf("grace %s, windows %s and %s", c.Grace, c.LockWait, c.PruneWait)
			}
			if host, _, _ := strings.Cut(c.MCPListen, ":"); c.MCPListen != "" && host == "0.0.0.0" {
				t.Errorf("the tools are served to everybody: %s", c.MCPListen)
			}
			for name, p := range c.Profiles {
				if len(p.Command) == 0 || p.Command[0] == "" {
					t.Errorf("profile %q has no command", name)
				}
			}
			return
		}
		var where *config.Error
		if !errors.As(err, &where) || where.Path != path || where.Line < 0 || where.Msg == "" {
			t.Errorf("the error does not say where: %v", err)
		}
	})
}
