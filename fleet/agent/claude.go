package agent

import (
	"encoding/json"

	"fleetdeck/fleet"
)

// claude is Claude Code. Its hooks come in a settings file of the launch's own, which adds to the user's; its session is ours
// to name. A task may begin with a dash: "--" keeps it from being read as an option.
var claude = Agent{
	Name: "claude",
	Command: []string{"claude", "{hooks}", "{args}", "--session-id", "{session}",
		"--append-system-prompt", "{charter}", "--", "{task}"},
	Resume: []string{"claude", "{hooks}", "{args}", "--resume", "{session}",
		"--append-system-prompt", "{charter}", "--", "{task}"},
	Ready:    "output",
	Recorded: "2.1.197",
	Titles: []Sign{
		sign(fleet.StateWorking, `^[\x{2800}-\x{28ff}◐-◓] `),
		sign(fleet.StateIdle, `^[✳✻✽✶✢] `),
	},
	Screens: []Dialog{
		// The folder's trust, the use of a key, the way to log in, a tool's permission: a choice in a frame, and its keys below.
		dialog(fleet.StateWaiting, `^\s*(Enter to (confirm|select)|Esc to cancel)\b`, `^\s*(.*\S\?)(\s|$)`, `^\s*❯\s*\d+\.`),
		dialog(fleet.StateWaiting, `^\s*(Enter to (confirm|select)|Esc to cancel)\b`, `^\s*❯\s*\d+\.`),
	},
	Animates: true,
	inject:   injectClaude,
	read:     readHook,
}

// claudeEvents are the hooks that tell of a session's state.
var claudeEvents = []string{
	"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied",
	"Notification", "Elicitation", "ElicitationResult", "Stop", "StopFailure",
}

func injectClaude(l Launch) Injection {
	if !l.Report {
		return Injection{}
	}
	type hook struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
		// The agent does not wait; reports that overtake each other carry a sequence.
		Async bool `json:"async"`
	}
	type matcher struct {
		Hooks []hook `json:"hooks"`
	}
	hooks := map[string][]matcher{}
	for _, event := range claudeEvents {
		hooks[event] = []matcher{{[]hook{{"command", hookCommand(l.Exe, "claude"), 5, true}}}}
	}
	// Strings and numbers only: it cannot fail.
	settings, _ := json.MarshalIndent(map[string]any{"hooks": hooks}, "", "  ")
	const name = "claude-settings.json"
	return Injection{
		Args:  []string{"--settings", l.Dir + "/" + name},
		Files: map[string]string{name: string(settings) + "\n"},
	}
}
