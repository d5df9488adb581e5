package config_test

import (
	"slices"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
	"fleetdeck/fleet/config"
)

func TestAProfileOverridesEachPartOfItsAgent(t *testing.T) {
	c, err := config.Parse("/etc/fleetdeck.toml", []byte(`
[profiles.plain]
agent = "codex"
[profiles.own]
agent = "codex"
args = ["--model", "x"]
resume = ["codex", "resume", "--last"]
hooks = true
titles = [{ state = "waiting", text = "^!" }]
notices = [{ state = "done", text = "^merged" }]
[[profiles.own.screens]]
state = "idle"
foot = '^ready$'
body = ['^codex']
[profiles.quiet]
agent = "claude"
hooks = false
[profiles.aider]
agent = "aider"
`))
	if err != nil {
		t.Fatal(err)
	}
	codex, _ := agent.Lookup("codex")
	plain, own := c.Profiles["plain"], c.Profiles["own"]
	if plain.Hooks != config.HooksUsual || own.Hooks != config.HooksAll || c.Profiles["quiet"].Hooks != config.HooksNone {
		t.Errorf("hooks: %q, %q, %q", plain.Hooks, own.Hooks, c.Profiles["quiet"].Hooks)
	}
	if !slices.Equal(plain.Resume, codex.Resume) || !slices.Equal(own.Resume, []string{"codex", "resume", "--last"}) {
		t.Errorf("resume: %q, %q", plain.Resume, own.Resume)
	}
	if !slices.Equal(own.Command, codex.Command) || !slices.Equal(own.Args, []string{"--model", "x"}) {
		t.Errorf("command: %q with %q", own.Command, own.Args)
	}
	if state, _ := agent.ReadSign(own.Titles, "! Action"); state != fleet.StateWaiting {
		t.Errorf("its own title is read as %q", state)
	}
	if state, _ := agent.ReadSign(own.Titles, "⠋ api"); state != fleet.StateWorking {
		t.Errorf("its agent's title is read as %q", state)
	}
	if state, _ := agent.ReadSign(own.Notices, "merged x"); state != fleet.StateDone {
		t.Errorf("its own notification is read as %q", state)
	}
	if state, _ := agent.ReadScreen(own.Screens, []string{"codex", "ready"}); state != fleet.StateIdle {
		t.Errorf("its own screen is read as %q", state)
	}
	if a := c.Profiles["aider"]; a.Charter != config.CharterTyped || a.Ready.Pattern == nil || !a.Ready.Pattern.MatchString("Aider\n> ") {
		t.Errorf("aider: charter %q, ready %s", a.Charter, a.Ready)
	}
}

func TestARuleWithoutItsAnchorIsRefused(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"a title that matches all": {`titles = [{ state = "idle", text = "" }]`, "would match everything"},
		"a screen without a foot":  {`screens = [{ state = "idle", body = ["x"] }]`, "would match everything"},
		"a state that is none":     {`notices = [{ state = "asleep", text = "x" }]`, `"asleep" is unknown`},
		"a pattern that is none":   {`titles = [{ state = "idle", text = "(" }]`, "missing closing )"},
		"arguments with no place":  {"command = [\"codex\"]\nargs = [\"-x\"]", "the command has no {args}"},
	} {
		_, err := config.Parse("/etc/fleetdeck.toml", []byte("[profiles.p]\nagent = \"codex\"\n"+tt.text+"\n"))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "fleetdeck.toml:") {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
