package cli_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/client"
)

// agentHook runs a hook of the member whose environment as is.
func (r *rig) agentHook(t *testing.T, as []string, agent, payload string, args ...string) (out string, code int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"hook", agent}, args...)...)
	cmd.Env = append(os.Environ(), as...)
	cmd.Stdin = strings.NewReader(payload)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return both.String(), cmd.ProcessState.ExitCode()
}

func claudeEvent(event, more string) string {
	return fmt.Sprintf(`{"session_id":"s1","hook_event_name":%q%s}`, event, more)
}

// talker is an agent that prints what it finds in the file "say", once it is there, and then rests.
const talker = `
[profiles.talker]
agent = "AGENT"
command = ["sh", "-c", "echo up; while :; do while [ ! -e DIR/say ]; do sleep 0.05; done; cat DIR/say; rm DIR/say; done"]
`

func talking(t *testing.T, agent string) (r *rig, member string, as []string) {
	t.Helper()
	r = newRig(t, agents+strings.ReplaceAll(talker, "AGENT", agent))
	r.must(nil, "up")
	out, code := r.dispatch(r.repo("api"), "--profile", "talker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	return r, out.Member, r.identity(out.Member)
}

// prints has the agent print text, and waits until it did.
func (r *rig) prints(text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, "say")
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		r.t.Fatal(err)
	}
	r.await("it prints", func() bool { _, err := os.Stat(path); return err != nil })
}

func TestAHookTellsTheDaemonAndNobodyElse(t *testing.T) {
	r, member, as := talking(t, "claude")
	for _, tt := range []struct {
		agent, payload string
		args           []string
		state          fleet.State
		message        string
	}{
		{agent: "claude", payload: claudeEvent("UserPromptSubmit", ""), state: fleet.StateWorking},
		{agent: "claude", payload: claudeEvent("PermissionRequest", `,"tool_name":"Bash","tool_input":{"command":"rm x"}`), state: fleet.StateWaiting, message: "allow Bash: rm x?"},
		{agent: "claude", payload: claudeEvent("Notification", `,"notification_type":"permission_prompt","message":"needs you"`), state: fleet.StateWaiting, message: "allow Bash: rm x?"},
		{agent: "claude", payload: "not JSON", state: fleet.StateWaiting, message: "allow Bash: rm x?"},
		{agent: "claude", payload: claudeEvent("Stop", `,"last_assistant_message":"merged"`), state: fleet.StateIdle, message: "merged"},
		{agent: "nobody", payload: claudeEvent("UserPromptSubmit", ""), state: fleet.StateIdle, message: "merged"},
		{agent: "codex", args: []string{`{"type":"agent-turn-complete","thread-id":"s2","input-messages":["x"],"last-assistant-message":"pushed"}`}, state: fleet.StateIdle, message: "pushed"},
	} {
		if out, code := r.agentHook(t, as, tt.agent, tt.payload, tt.args...); out != "" || code != 0 {
			t.Errorf("hook %s %s: exit %d, and it printed %q", tt.agent, tt.payload, code, out)
		}
		if m := r.member(member); m.State != tt.state || m.StateMessage != tt.message || m.StateSource != "hook" {
			t.Errorf("after %s %s%v: %s %q by %s, want %s %q by hook", tt.agent, tt.payload, tt.args, m.State, m.StateMessage, m.StateSource, tt.state, tt.message)
		}
	}
	var w api.Witnesses
	r.must(&w, "explain", member[len(member)-6:])
	if w.Session != "s2" || w.Judgement.State != fleet.StateIdle || len(w.Testimonies) == 0 || w.Testimonies[0].Source != "hook" {
		t.Errorf("explained as %+v", w)
	}
	r.kill()
	r.must(nil, "up")
	r.prints("\033]0;✳ api\a")
	r.await("its title is heard", func() bool {
		r.must(&w, "explain", member)
		return len(w.Testimonies) > 1 && w.Testimonies[1].Source == "title"
	})
	if m := r.member(member); m.State != fleet.StateIdle || m.StateSource != "hook" || m.StateMessage != "pushed" {
		t.Errorf("after the daemon was killed: %s %q by %s", m.State, m.StateMessage, m.StateSource)
	}
}

func TestAHookOfAnotherSessionIsNotHeard(t *testing.T) {
	r, member, as := talking(t, "claude")
	r.agentHook(t, as, "claude", claudeEvent("UserPromptSubmit", ""))
	other := strings.ReplaceAll(claudeEvent("Stop", ""), "s1", "s9")
	r.agentHook(t, as, "claude", other)
	if m := r.member(member); m.State != fleet.StateWorking {
		t.Errorf("%s, by the hook of another session", m.State)
	}
	r.agentHook(t, as, "claude", strings.ReplaceAll(claudeEvent("SessionStart", `,"source":"clear"`), "s1", "s9"))
	r.agentHook(t, as, "claude", strings.ReplaceAll(claudeEvent("UserPromptSubmit", ""), "s1", "s9"))
	r.agentHook(t, as, "claude", other)
	if m := r.member(member); m.State != fleet.StateIdle {
		t.Errorf("%s, though the session that it began has said so", m.State)
	}
}

func TestAHookThatIsLateChangesNothing(t *testing.T) {
	r, member, as := talking(t, "claude")
	c := client.New(variable(as, "FLEETDECK_SOCKET"), variable(as, "FLEETDECK_TOKEN"))
	for _, h := range []struct {
		state fleet.State
		seq   uint64
	}{{fleet.StateWorking, 10}, {fleet.StateIdle, 30}, {fleet.StateWorking, 20}} {
		if err := c.Report(t.Context(), member, api.Report{State: h.state, Source: api.SourceHook, Seq: h.seq}); err != nil {
			t.Fatal(err)
		}
	}
	if m := r.member(member); m.State != fleet.StateIdle {
		t.Errorf("%s, by a hook that came late", m.State)
	}
}

// TestAHookNeverHoldsTheAgentUp has a daemon that does not answer, one that is away, and a payload that does not end.
func TestAHookNeverHoldsTheAgentUp(t *testing.T) {
	dir, err := os.MkdirTemp("", "fd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	silent, err := net.Listen("unix", filepath.Join(dir, "silent"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	never, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer never.Close()
	defer w.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, socket := range map[string]string{"silent": "silent", "away": "away", "none": ""} {
		for _, stdin := range []string{"whole", "endless"} {
			t.Run(name+" "+stdin, func(t *testing.T) {
				cmd := exec.Command(exe, "hook", "claude")
				cmd.Env = append(os.Environ(), "FLEETDECK_SOCKET="+filepath.Join(dir, socket), "FLEETDECK_TOKEN=x", "FLEETDECK_MEMBER=x")
				cmd.Stdin = never
				if stdin == "whole" {
					cmd.Stdin = strings.NewReader(claudeEvent("Stop", ""))
				}
				if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("%v, and it printed %q", err, out)
				}
			})
		}
	}
}

func TestATerminalTellsWhatNoHookDoes(t *testing.T) {
	full(t)
	r, member, as := talking(t, "codex")
	if m := r.member(member); m.State != fleet.StateUnknown {
		t.Errorf("%s by %s before it said anything", m.State, m.StateSource)
	}
	r.prints("\033]0;api\a")
	r.prints("\033]0;⠋ api\a")
	r.awaitState(member, fleet.StateWorking, "title")
	r.prints("\033]7501;state=blocked:app=codex\033\\\033]9;Approval requested: rm x\a")
	if m := r.awaitState(member, fleet.StateWaiting, "progress"); m.StateMessage != "" && m.StateMessage != "Approval requested: rm x" {
		t.Errorf("it asks %q", m.StateMessage)
	}
	r.await("its question is known", func() bool { return r.member(member).StateMessage == "Approval requested: rm x" })
	r.prints("\033]7501;state=working\033\\")
	r.awaitState(member, fleet.StateWorking, "progress")
	r.prints("\033]0;api\a\033]7501;state=done\033\\")
	r.awaitState(member, fleet.StateIdle, "title", "progress")
	r.prints(strings.Repeat(" ", 100<<10) + "\033]9;Approval requested: rm y\a")
	r.awaitState(member, fleet.StateWaiting, "progress")
	r.agentHook(t, as, "codex", "", `{"type":"agent-turn-complete","thread-id":"s"}`)
	r.awaitState(member, fleet.StateIdle, "hook")
	r.kill()
	r.must(nil, "up") // its notification is in the output still, and long answered
	r.prints("\033]0;⠋ api\a")
	r.awaitState(member, fleet.StateWorking, "title")
	ups := strings.Split(r.text("state/events.jsonl"), `"kind":"daemon_up"`)
	if since := ups[len(ups)-1]; strings.Contains(since, "waiting") {
		t.Errorf("what was asked before the restart is asked again:\n%s", since)
	}
}

func TestADialogOnTheScreenIsSeen(t *testing.T) {
	r, member, _ := talking(t, "claude")
	r.prints("\033]0;✳ Claude\a\033[2J\033[HNothing that any rule knows.\r\n")
	r.awaitState(member, fleet.StateUnknown, "screen", "title")
	r.prints("\033[2J\033[H Quick check: do you trust this folder?\r\n\r\n ❯ 1. Yes\r\n   2. No\r\n\r\n Enter to confirm · Esc to cancel\r\n")
	if m := r.awaitState(member, fleet.StateWaiting, "screen"); m.StateMessage != "Quick check: do you trust this folder?" {
		t.Errorf("it asks %q", m.StateMessage)
	}
	r.prints("\033[2J\033[H❯ \r\n  ? for shortcuts\r\n")
	r.awaitState(member, fleet.StateUnknown, "screen", "title")
	text, _, code := r.fleetdeck("explain", member)
	if code != 0 || !strings.Contains(text, "the terminal's title") && !strings.Contains(text, "its screen") {
		t.Errorf("explain: exit %d:\n%s", code, text)
	}
}

func TestAProfileSaysWhatATerminalMeans(t *testing.T) {
	r := newRig(t, agents+`
[profiles.own]
command = ["sh", "-c", "printf '\\033]0;busy bee\\007'; exec sleep 600"]
titles = [{ state = "working", text = "^busy" }]
`)
	r.must(nil, "up")
	out, _ := r.dispatch(r.repo("api"), "--profile", "own", "--wait")
	r.awaitState(out.Member, fleet.StateWorking, "title")
}
