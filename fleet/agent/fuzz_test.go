package agent_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"fleetdeck/fleet/agent"
)

func FuzzAHookPayloadIsAShortReportOrNone(f *testing.F) {
	for _, s := range []string{
		`{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"rm -rf /"}}`,
		`{"hook_event_name":"PermissionRequest","tool_input":{"command":["a",1,null]}}`, `{"hook_event_name":"Notification","notification_type":"idle_prompt"}`,
		`{"hook_event_name":"StopFailure","error":"e","last_assistant_message":"m"}`, `{"hook_event_name":"Stop","agent_id":"x"}`,
		`{"type":"agent-turn-complete","turn-id":"1","last-assistant-message":"done"}`, `{"type":"session.idle","properties":{}}`,
		`{"type":"permission.updated","properties":{"title":"x"}}`, `[]`, `null`, "{\"hook_event_name\":\"Elicitation\",\"message\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, name := range agent.Names() {
			a, _ := agent.Lookup(name)
			r, ok := a.Read(payload)
			if !ok {
				continue
			}
			if r.State != "" && !r.State.Reportable() {
				t.Errorf("%s: state %q", name, r.State)
			}
			if len(r.Message) > 400 || !utf8.ValidString(r.Message) || strings.Contains(r.Message, "\n") {
				t.Errorf("%s: a message of %d bytes: %q", name, len(r.Message), r.Message)
			}
		}
	})
}
