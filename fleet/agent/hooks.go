package agent

import (
	"encoding/json"
	"strings"

	"fleetdeck/fleet"
)

// hookPayload is what Claude Code hands to its hooks, and Codex to those that have the same shape.
type hookPayload struct {
	Event     string          `json:"hook_event_name"`
	Session   string          `json:"session_id"`
	Subagent  string          `json:"agent_id"`
	Tool      string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	ToolUse   string          `json:"tool_use_id"`
	Kind      string          `json:"notification_type"`
	Message   string          `json:"message"`
	Error     string          `json:"error"`
	Last      string          `json:"last_assistant_message"`
	Source    string          `json:"source"`
}

// readHook reads such a payload. What happens in a nested agent is not the session's own state, unless a person must answer.
func readHook(payload []byte) (Report, bool) {
	var p hookPayload
	if json.Unmarshal(payload, &p) != nil || p.Event == "" {
		return Report{}, false
	}
	r := Report{Session: p.Session, Topic: p.ToolUse}
	if p.Subagent != "" {
		if p.Event != "PermissionRequest" {
			return Report{}, false
		}
		r.Topic = "" // its end would be a nested agent's event
	}
	switch p.Event {
	case "SessionStart":
		r.Opens = true
		if p.Source == "compact" {
			return r, true // in the middle of a turn, perhaps
		}
		r.State = fleet.StateIdle
	case "UserPromptSubmit":
		r.State, r.Turn = fleet.StateWorking, TurnBegins
	case "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied", "ElicitationResult":
		r.State = fleet.StateWorking
	case "PermissionRequest":
		r.State, r.Message = fleet.StateWaiting, question(p)
	case "Elicitation":
		r.State, r.Message = fleet.StateWaiting, brief(p.Message)
	case "Notification":
		switch p.Kind {
		case "permission_prompt": // it comes after the request itself, which says for what
			r.State = fleet.StateWaiting
		case "elicitation_dialog", "agent_needs_input":
			r.State, r.Message = fleet.StateWaiting, brief(p.Message)
		case "elicitation_complete":
			r.State = fleet.StateWorking
		case "idle_prompt", "agent_completed":
			r.State = fleet.StateIdle
		}
	case "Stop":
		r.State, r.Turn, r.Message = fleet.StateIdle, TurnEnds, brief(p.Last)
	case "StopFailure":
		r.State, r.Turn, r.Message = fleet.StateIdle, TurnEnds, brief(strings.Trim(p.Error+": "+p.Last, ": "))
	case "Interrupt":
		r.State, r.Turn = fleet.StateIdle, TurnEnds
	}
	return r, true
}

// question is what a permission is asked for.
func question(p hookPayload) string {
	var in struct {
		Command     any    `json:"command"`
		FilePath    string `json:"file_path"`
		URL         string `json:"url"`
		Description string `json:"description"`
	}
	_ = json.Unmarshal(p.ToolInput, &in) // another tool's input: its name is enough
	what := in.FilePath + in.URL
	switch c := in.Command.(type) {
	case string:
		what = c
	case []any:
		for _, part := range c {
			if s, ok := part.(string); ok {
				what += " " + s
			}
		}
	}
	if what == "" {
		what = in.Description
	}
	return brief(strings.Trim("allow "+p.Tool+": "+strings.TrimSpace(what), ": ") + "?")
}

// maxBrief bounds a message, in bytes.
const maxBrief = 300

// brief is the first lines of s as one.
func brief(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxBrief {
		s = strings.ToValidUTF8(s[:maxBrief], "") + "…"
	}
	return s
}
