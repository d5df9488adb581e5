package agent_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
)

// said is what a payload is read as; nil says that it tells nothing.
type said = *agent.Report

// TestRecordedPayloadsAreRead reads what the real agents handed to their hooks in a turn with one tool that needed a permission.
func TestRecordedPayloadsAreRead(t *testing.T) {
	const (
		claude   = "8f0c1d52-0000-8000-8000-0123456789ac"
		codex    = "01a22c84-7769-7ba3-acd9-8bb9f2b12e1b"
		opencode = "ses_dd37a29c3ffes1OiudQZ7Fc9ef"
	)
	for _, tt := range []struct {
		agent, file string
		want        []said
	}{
		{"claude", "claude", []said{
			{State: fleet.StateIdle, Session: claude, Opens: true},
			{State: fleet.StateWorking, Session: claude, Turn: agent.TurnBegins},
			{State: fleet.StateWorking, Session: claude, Topic: "toolu_01"},
			{State: fleet.StateWaiting, Session: claude, Message: "allow Bash: touch made?"},
			{State: fleet.StateWaiting, Session: claude},
			{State: fleet.StateWorking, Session: claude, Topic: "toolu_01"},
			{State: fleet.StateIdle, Session: claude, Turn: agent.TurnEnds, Message: "All done here."},
			{State: fleet.StateIdle, Session: "8f0c1d52-0000-8000-8000-0123456789ab", Turn: agent.TurnEnds,
				Message: "authentication_failed: Not logged in · Please run /login"},
		}},
		{"codex", "codex", []said{
			{State: fleet.StateIdle, Session: codex, Opens: true},
			{State: fleet.StateWorking, Session: codex, Turn: agent.TurnBegins},
			{State: fleet.StateWorking, Session: codex, Topic: "c1"},
			{State: fleet.StateWaiting, Session: codex, Message: "allow Bash: touch /src/made2?"},
			{State: fleet.StateWorking, Session: codex, Topic: "c1"},
			{State: fleet.StateIdle, Session: codex, Turn: agent.TurnEnds, Message: "All done here."},
		}},
		{"codex", "codex-notify", []said{
			nil, // the turn that names the task
			{State: fleet.StateIdle, Session: codex, Opens: true, Turn: agent.TurnEnds, Message: "All done here."},
		}},
		{"opencode", "opencode", []said{
			{Session: opencode, Opens: true},
			{State: fleet.StateWorking, Session: opencode},
		}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			a, ok := agent.Lookup(tt.agent)
			if !ok {
				t.Fatalf("no agent %s", tt.agent)
			}
			var got []said
			for _, line := range payloads(t, tt.file) {
				if r, ok := a.Read([]byte(line)); ok {
					got = append(got, &r)
				} else {
					got = append(got, nil)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

func payloads(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "hooks", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	for s := bufio.NewScanner(f); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}

// TestPayloadsAreReadAsDocumented reads what was not recorded.
func TestPayloadsAreReadAsDocumented(t *testing.T) {
	for _, tt := range []struct {
		name, agent, payload string
		want                 said
	}{
		{"a nested agent's tool is not the session's state", "claude", `{"hook_event_name":"PreToolUse","session_id":"s","agent_id":"a"}`, nil},
		{"a nested agent's question is a person's to answer", "claude",
			`{"hook_event_name":"PermissionRequest","session_id":"s","agent_id":"a","tool_name":"Edit","tool_use_id":"t","tool_input":{"file_path":"/x"}}`,
			&agent.Report{State: fleet.StateWaiting, Session: "s", Message: "allow Edit: /x?"}},
		{"idle for a minute", "claude", `{"hook_event_name":"Notification","session_id":"s","notification_type":"idle_prompt"}`,
			&agent.Report{State: fleet.StateIdle, Session: "s"}},
		{"a start after compaction is in the middle of a turn", "claude", `{"hook_event_name":"SessionStart","session_id":"s","source":"compact"}`,
			&agent.Report{Session: "s", Opens: true}},
		{"an end of the session is the process's to tell", "claude", `{"hook_event_name":"SessionEnd","session_id":"s"}`, &agent.Report{Session: "s"}},
		{"an interrupt", "codex", `{"hook_event_name":"Interrupt","session_id":"s"}`, &agent.Report{State: fleet.StateIdle, Session: "s", Turn: agent.TurnEnds}},
		{"a command of several words", "codex", `{"hook_event_name":"PermissionRequest","session_id":"s","tool_name":"shell","tool_input":{"command":["rm","-r","x"]}}`,
			&agent.Report{State: fleet.StateWaiting, Session: "s", Message: "allow shell: rm -r x?"}},
		{"a child's session", "opencode", `{"type":"session.created","properties":{"info":{"id":"c","parentID":"p"}}}`, nil},
		{"a permission", "opencode", `{"type":"permission.asked","properties":{"sessionID":"s","permission":"bash","patterns":["git push"]}}`,
			&agent.Report{State: fleet.StateWaiting, Session: "s", Message: "allow bash git push?"}},
		{"idle", "opencode", `{"type":"session.idle","properties":{"sessionID":"s"}}`, &agent.Report{State: fleet.StateIdle, Session: "s", Turn: agent.TurnEnds}},
		{"not JSON", "codex", `{"type":`, nil},
		{"no payload", "claude", ``, nil},
		{"an agent without hooks", "shell", `{"hook_event_name":"Stop"}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, _ := agent.Lookup(tt.agent)
			var got said
			if r, ok := a.Read([]byte(tt.payload)); ok {
				got = &r
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMessageIsBounded(t *testing.T) {
	a, _ := agent.Lookup("claude")
	r, _ := a.Read([]byte(`{"hook_event_name":"Stop","last_assistant_message":"` + strings.Repeat("ä\\n", 5000) + `"}`))
	if len(r.Message) > 400 || strings.ContainsAny(r.Message, "\n\uFFFD") {
		t.Errorf("a message of %d bytes: %q", len(r.Message), r.Message)
	}
}
