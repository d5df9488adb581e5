package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"fleetdeck/fleet"
)

// codex is OpenAI's Codex. It tells the end of a turn by its notify program; all the rest needs its hooks, which it runs only
// once a person has trusted them: a profile that says hooks = true has them run without. It names its session itself, and is
// heard to do so.
var codex = Agent{
	Name:     "codex",
	Command:  []string{"codex", "{hooks}", "{args}", "-c", "developer_instructions={charter}", "--", "{task}"},
	Resume:   []string{"codex", "{hooks}", "{args}", "-c", "developer_instructions={charter}", "resume", "{session}", "--", "{task}"},
	Ready:    "output",
	Recorded: "0.171.0",
	Titles: []Sign{
		sign(fleet.StateWaiting, `Action Required`),
		sign(fleet.StateWorking, `^[\x{2800}-\x{28ff}] `),
		sign(fleet.StateIdle, `\S`),
	},
	Notices: []Sign{
		sign(fleet.StateWaiting, `^(Approval requested|Codex wants to edit|Question requested|Plan mode prompt)`),
	},
	Screens: []Dialog{
		dialog(fleet.StateWaiting, `^\s*enter continue · esc back\s*$`, `^\s*(Trust this folder\?)`, `^\s*›\s*\d+\.`),
		dialog(fleet.StateWaiting, `^\s*(Press enter to (confirm|continue)|enter (confirm|continue|select|submit)\b)`, `^\s*(.*\S\?)\s*$`, `^\s*›\s*\d+\.`),
		dialog(fleet.StateWaiting, `^\s*(Press enter to (confirm|continue)|enter (confirm|continue|select|submit)\b)`, `^\s*›\s*\d+\.`),
	},
	Animates: true,
	inject:   injectCodex,
	read:     readCodex,
}

// codexEvents are the hooks that tell of a session's state.
var codexEvents = []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop"}

func injectCodex(l Launch) Injection {
	if !l.Report {
		return Injection{}
	}
	set := func(key, value string) []string { return []string{"-c", key + "=" + value} }
	args := set("notify", "["+tomlString(l.Exe)+`,"hook","codex"]`)
	// Without these it tells nothing while it believes that somebody looks.
	args = append(args, set("tui.notification_condition", `"always"`)...)
	args = append(args, set("tui.notification_method", `"osc9"`)...)
	if !l.All {
		return Injection{Args: args}
	}
	for _, event := range codexEvents {
		args = append(args, set("hooks."+event, fmt.Sprintf(`[{hooks=[{type="command",command=%s,timeout=5}]}]`,
			tomlString(hookCommand(l.Exe, "codex"))))...)
	}
	return Injection{Args: append(args, "--dangerously-bypass-hook-trust")}
}

// titleTurn begins the prompt of a turn that Codex runs by itself, to name the task: it notifies of its end like any other.
const titleTurn = "Generate a concise, single-line task title"

// readCodex reads the argument of its notify program, or the payload of one of its hooks.
func readCodex(payload []byte) (Report, bool) {
	var n struct {
		Type   string   `json:"type"`
		Thread string   `json:"thread-id"`
		Inputs []string `json:"input-messages"`
		Last   string   `json:"last-assistant-message"`
	}
	if json.Unmarshal(payload, &n) != nil {
		return Report{}, false
	}
	switch {
	case n.Type == "":
		return readHook(payload)
	case n.Type != "agent-turn-complete", len(n.Inputs) > 0 && strings.HasPrefix(n.Inputs[0], titleTurn):
		return Report{}, false
	}
	return Report{State: fleet.StateIdle, Turn: TurnEnds, Session: n.Thread, Opens: true, Message: brief(n.Last)}, true
}

// tomlString writes s as a basic string of TOML.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
