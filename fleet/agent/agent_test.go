package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
	"fleetdeck/fleet/screen"
)

// TestRecordedScreensAreRead draws what the real agents printed, up to a moment, and reads the screen.
func TestRecordedScreensAreRead(t *testing.T) {
	for _, tt := range []struct {
		file     string
		want     fleet.State
		question string
	}{
		{"claude-trust", fleet.StateWaiting, "Quick safety check: Is this a project you created or one you trust?"},
		{"claude-key", fleet.StateWaiting, "Do you want to use this API key?"},
		{"claude-permission", fleet.StateWaiting, "Do you want to proceed?"},
		{"claude-prompt", fleet.StateUnknown, ""},
		{"codex-trust", fleet.StateWaiting, "Trust this folder?"},
		{"codex-approval", fleet.StateWaiting, "Would you like to run the following command?"},
		{"codex-prompt", fleet.StateUnknown, ""},
		{"gemini-prompt", fleet.StateUnknown, ""},
		{"gemini-trust", fleet.StateWaiting, "Do you trust the files in this folder?"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata", "terminal", tt.file+".raw"))
			if err != nil {
				t.Fatal(err)
			}
			s := screen.New(120, 40)
			defer s.Close()
			if _, err := s.Write(raw); err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(tt.file, "-")
			a, _ := agent.Lookup(name)
			if state, question := agent.ReadScreen(a.Screens, s.Snapshot().Lines); state != tt.want || question != tt.question {
				t.Errorf("read as %s %q, want %s %q", state, question, tt.want, tt.question)
			}
		})
	}
}

// TestProseIsNoDialog: what an agent writes looks like a question, and stands above the prompt.
func TestProseIsNoDialog(t *testing.T) {
	prose := []string{
		"● Would you like to run the following command?", "  yes", " ❯ 1. Yes", "› 1. Yes, proceed (y)", "  Press enter to confirm or esc to cancel",
		" Enter to confirm · Esc to cancel", "", "────────", "❯ ", "────────", "  ? for shortcuts · ← for agents", "", "",
	}
	for _, name := range agent.Names() {
		a, _ := agent.Lookup(name)
		if state, _ := agent.ReadScreen(a.Screens, prose); state != fleet.StateUnknown {
			t.Errorf("%s: prose is read as %s", name, state)
		}
		if state, _ := agent.ReadScreen(a.Screens, []string{"", "  "}); state != fleet.StateUnknown {
			t.Errorf("%s: an empty screen is read as %s", name, state)
		}
	}
}

func TestTitlesAreRead(t *testing.T) {
	for _, tt := range []struct {
		agent, title string
		want         fleet.State
	}{
		{"claude", "✳ Claude Code", fleet.StateIdle},
		{"claude", "⠂ Claude Code", fleet.StateWorking},
		{"claude", "◐ mend it", fleet.StateWorking},
		{"claude", "vim", ""},
		{"codex", "tree", fleet.StateIdle},
		{"codex", `⠴ say hi to "all" | tree`, fleet.StateWorking},
		{"codex", `[ ! ] Action Required | say hi to "all" | tree`, fleet.StateWaiting},
		{"codex", "", ""},
		{"gemini", "✋  Action Required (api)", fleet.StateWaiting},
		{"gemini", "✦  Working… (api)", fleet.StateWorking},
		{"gemini", "◇  Ready (api)", fleet.StateIdle},
		{"shell", "✳ Claude Code", ""},
	} {
		a, _ := agent.Lookup(tt.agent)
		if got, _ := agent.ReadSign(a.Titles, tt.title); got != tt.want {
			t.Errorf("%s: title %q is read as %q, want %q", tt.agent, tt.title, got, tt.want)
		}
	}
}

// odd is a program's path that a careless hand would break.
const odd = `/opt/my "fleet"/it's $HOME\deck`

func TestTheHookIsThisProgramAbsoluteAndQuoted(t *testing.T) {
	l := agent.Launch{Exe: odd, Dir: "/state/members/M1", Charter: "/state/members/M1/charter.md", Report: true, All: true}
	claude, _ := agent.Lookup("claude")
	in := claude.Inject(l)
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Type, Command string
				Async         bool
			}
		}
	}
	if err := json.Unmarshal([]byte(in.Files["claude-settings.json"]), &settings); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"SessionStart", "UserPromptSubmit", "PermissionRequest", "Stop", "StopFailure"} {
		h := settings.Hooks[event]
		if len(h) != 1 || len(h[0].Hooks) != 1 || h[0].Hooks[0].Command != `'/opt/my "fleet"/it'\''s $HOME\deck' hook claude` || !h[0].Hooks[0].Async {
			t.Errorf("hook of %s: %+v", event, h)
		}
	}
	if want := []string{"--settings", "/state/members/M1/claude-settings.json"}; !slices.Equal(in.Args, want) {
		t.Errorf("arguments %q, want %q", in.Args, want)
	}
	codex, _ := agent.Lookup("codex")
	if args := codex.Inject(l).Args; !slices.Contains(args, `notify=["/opt/my \"fleet\"/it's $HOME\\deck","hook","codex"]`) {
		t.Errorf("codex is given %q", args)
	}
}

func TestNobodyReportsUnasked(t *testing.T) {
	for _, name := range agent.Names() {
		a, _ := agent.Lookup(name)
		in := a.Inject(agent.Launch{Exe: "/bin/fleetdeck", Dir: "/m", Charter: "/m/charter.md"})
		if text := strings.Join(append(in.Args, in.Env...), " "); strings.Contains(text, "hook") || len(in.Files) > 0 {
			t.Errorf("%s: %+v, though it is not to report", name, in)
		}
		in = a.Inject(agent.Launch{Exe: "/bin/fleetdeck", Dir: "/m", Report: true})
		if strings.Contains(strings.Join(in.Args, " "), "bypass") {
			t.Errorf("%s: %q bypasses a trust gate unasked", name, in.Args)
		}
	}
}

func TestEveryAgentHasACommandThatCanBeResumed(t *testing.T) {
	for _, name := range agent.Names() {
		a, _ := agent.Lookup(name)
		if len(a.Command) == 0 || a.Ready == "" {
			t.Errorf("%s has no command, or is never ready", name)
		}
		// A file of the user's is never named.
		if agent.Mentions(a.Resume, "{session}") != (name == "claude" || name == "codex" || name == "opencode" || name == "gemini") {
			t.Errorf("%s resumes by %q", name, a.Resume)
		}
	}
	if got, want := agent.Expand([]string{"x", "{hooks}", "{args}", "--a={args}"}, []string{"-h"}, nil), []string{"x", "-h", "--a={args}"}; !slices.Equal(got, want) {
		t.Errorf("Expand = %q, want %q", got, want)
	}
}

func TestABareCommandHoldsNeitherCharterNorTask(t *testing.T) {
	for name, want := range map[string]string{
		"claude": "claude {hooks} {args} --resume {session}", "codex": "codex {hooks} {args} resume {session}",
		"opencode": "opencode {hooks} {args} --session {session}", "gemini": "gemini {args} --resume {session}",
	} {
		a, _ := agent.Lookup(name)
		if got := strings.Join(agent.Bare(a.Resume), " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got, want := agent.Bare([]string{"{task}", "x", "{charter_file}", "-y"}), []string{"x", "-y"}; !slices.Equal(got, want) {
		t.Errorf("Bare = %q, want %q", got, want)
	}
}
