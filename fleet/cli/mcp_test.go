package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
)

// withArchitect lets one member be an architect, who may spawn, send and stop.
const withArchitect = agents + `
[profiles.echo]
command = ["sh", "-c", "while read -r line; do echo \"heard: $line\"; done"]
[profiles.caller]
command = ["EXE", "mcp-agent", "DIR/said"]
ready = "report"
[[slots]]
name = "architect-1"
role = "architect"
profile = "worker"
[[slots]]
name = "architect-2"
role = "architect"
profile = "caller"
`

func newMCPRig(t *testing.T) *rig {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, strings.ReplaceAll(withArchitect, "EXE", exe))
	r.must(nil, "up")
	return r
}

// doors are the ways to the tools. Each connects as a member, by the entries of its environment, or as the operator.
var doors = map[string]func(*rig, []string) *sdk.ClientSession{
	"stdio": func(r *rig, as []string) *sdk.ClientSession {
		cmd := r.command("mcp")
		cmd.Env = append(os.Environ(), as...)
		return r.connect(&sdk.CommandTransport{Command: cmd})
	},
	"http": func(r *rig, as []string) *sdk.ClientSession {
		return r.connect(&sdk.StreamableClientTransport{
			Endpoint: "http://fleetd/mcp", MaxRetries: -1, DisableStandaloneSSE: true,
			HTTPClient: &http.Client{Transport: bearer{r.overSocket(), variable(as, "FLEETDECK_TOKEN")}},
		})
	},
}

// bearer adds a token to each request.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.RoundTripper.RoundTrip(req)
}

// overSocket connects to the daemon whatever the address.
func (r *rig) overSocket() *http.Transport {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.socket())
	}}
	r.t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func (r *rig) socket() string {
	r.t.Helper()
	var s struct {
		Daemon fleet.DaemonInfo `json:"daemon"`
	}
	r.must(&s, "status")
	return s.Daemon.Socket
}

func (r *rig) connect(tr sdk.Transport) *sdk.ClientSession {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	r.t.Cleanup(cancel)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, tr, nil)
	if err != nil {
		r.t.Fatalf("connect: %v", err)
	}
	r.t.Cleanup(func() { session.Close() })
	return session
}

// identity gives the entries of a member's environment by which it is known: what the member itself has.
func (r *rig) identity(id string) []string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.state, "members", id, "spec.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	var spec struct {
		Env []string `json:"env"`
	}
	if err := json.Unmarshal(data, &spec); err != nil {
		r.t.Fatal(err)
	}
	return slices.DeleteFunc(spec.Env, func(kv string) bool { return !strings.HasPrefix(kv, "FLEETDECK_") })
}

func variable(env []string, name string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// toolAnswer is what a tool answered.
type toolAnswer struct {
	Failed     bool
	Text       string
	Structured map[string]any
}

func (s toolAnswer) code() fleet.Code { return fleet.Code(fmt.Sprint(s.Structured["code"])) }

func callTool(ctx context.Context, session *sdk.ClientSession, name string, args map[string]any) (toolAnswer, error) {
	res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return toolAnswer{}, err
	}
	s := toolAnswer{Failed: res.IsError}
	for _, c := range res.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			s.Text += text.Text
		}
	}
	s.Structured, _ = res.StructuredContent.(map[string]any)
	return s, nil
}

func (r *rig) call(session *sdk.ClientSession, name string, args map[string]any) toolAnswer {
	r.t.Helper()
	s, err := callTool(r.t.Context(), session, name, args)
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	return s
}

// wantRefusal checks that a refusal has its code in the text and in the structured content.
func wantRefusal(t *testing.T, what string, got toolAnswer, code fleet.Code) {
	t.Helper()
	if !got.Failed || got.code() != code || !strings.HasPrefix(got.Text, string(code)+": ") || got.Structured["message"] == "" {
		t.Errorf("%s: %+v, want an error with code %s in text and structure", what, got, code)
	}
}

func TestTheToolsDoWhatTheCommandsDo(t *testing.T) {
	t.Parallel()
	full(t)
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			r := newMCPRig(t)
			tree := r.repo("api")
			session := door(r, nil)
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range tools.Tools {
				names = append(names, tool.Name)
				if tool.Description == "" || tool.InputSchema == nil || tool.OutputSchema == nil {
					t.Errorf("%s lacks a description or a schema", tool.Name)
				}
			}
			slices.Sort(names)
			if want := []string{"fleet_list", "fleet_report", "fleet_send", "fleet_spawn", "fleet_stop", "fleet_whoami"}; !slices.Equal(names, want) {
				t.Errorf("tools %v, want %v", names, want)
			}

			spawned := r.call(session, "fleet_spawn", map[string]any{"tree": tree, "profile": "echo", "task": "t", "wait": true})
			id, _ := spawned.Structured["member"].(string)
			if spawned.Failed || id == "" || spawned.Structured["outcome"] != fleet.Accepted {
				t.Fatalf("spawn: %+v", spawned)
			}
			if m := r.alive(); len(m) != 1 || m[0].ID != id || m[0].Tree != tree || m[0].Task != "t" {
				t.Errorf("members %+v, want %s in %s", m, id, tree)
			}
			wantRefusal(t, "a second spawn", r.call(session, "fleet_spawn", map[string]any{"tree": tree, "profile": "echo", "task": ""}), fleet.CodeTreeOccupied)
			wantRefusal(t, "an unknown profile", r.call(session, "fleet_spawn", map[string]any{"tree": r.repo("web"), "profile": "nope", "task": ""}), fleet.CodeProfileUnknown)
			wantRefusal(t, "no slot", r.call(session, "fleet_spawn", map[string]any{"tree": r.repo("web"), "profile": "echo", "role": "architect", "task": ""}), fleet.CodeSlotUnconfigured)
			wantRefusal(t, "a relative tree", r.call(session, "fleet_spawn", map[string]any{"tree": "api", "task": ""}), fleet.CodeBadRequest)
			wantRefusal(t, "the operator's whoami", r.call(session, "fleet_whoami", nil), fleet.CodeNotAllowed)
			wantRefusal(t, "the operator's report", r.call(session, "fleet_report", map[string]any{"state": "idle"}), fleet.CodeNotAllowed)
			wantRefusal(t, "nobody stopped", r.call(session, "fleet_stop", map[string]any{"member": "nobody"}), fleet.CodeNotFound)

			if s := r.call(session, "fleet_send", map[string]any{"member": tree, "text": "hello there"}); s.Failed || s.Structured["member"] != id {
				t.Errorf("send: %+v", s)
			}
			r.await("it heard", func() bool {
				out, _, _ := r.fleetdeck("logs", id)
				return strings.Contains(out, "heard: hello there")
			})
			if s := r.call(session, "fleet_list", nil); s.Failed || !strings.Contains(s.Text, id) || !strings.Contains(s.Text, "architect-1") {
				t.Errorf("list: %+v, want %s and the slots", s, id)
			}
			if s := r.call(session, "fleet_stop", map[string]any{"member": id}); s.Failed || len(r.alive()) != 0 {
				t.Errorf("stop: %+v, alive %v", s, r.alive())
			}
			r.await("no reservation is left", func() bool { return len(r.reservations()) == 0 })
		})
	}
}

func TestTheToolsActAsTheMemberThatCalls(t *testing.T) {
	full(t)
	t.Parallel()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			r := newMCPRig(t)
			dev, _ := r.dispatch(r.repo("dev"), "--profile", "worker", "--wait")
			boss, _ := r.dispatch(r.repo("boss"), "--profile", "worker", "--role", "architect", "--wait")
			asDev, asBoss := door(r, r.identity(dev.Member)), door(r, r.identity(boss.Member))
			target := r.repo("target")

			before, info := r.fileState()
			wantRefusal(t, "a dev's spawn", r.call(asDev, "fleet_spawn", map[string]any{"tree": target, "profile": "worker", "task": ""}), fleet.CodeNotAllowed)
			wantRefusal(t, "a dev's send", r.call(asDev, "fleet_send", map[string]any{"member": boss.Member, "text": "x"}), fleet.CodeNotAllowed)
			wantRefusal(t, "a dev's stop", r.call(asDev, "fleet_stop", map[string]any{"member": boss.Member}), fleet.CodeNotAllowed)
			if after, now := r.fileState(); after != before || !now.ModTime().Equal(info.ModTime()) {
				t.Errorf("the refused dev changed the reservation file: %q, then %q", before, after)
			}
			if len(r.begun(2)) != 2 || len(r.alive()) != 2 {
				t.Errorf("started %v, alive %v; want the first two", r.starts(), r.alive())
			}
			if s := r.call(asDev, "fleet_whoami", nil); s.Failed || s.Structured["member"] != dev.Member || s.Structured["role"] != fleet.RoleDev {
				t.Errorf("a dev's whoami: %+v", s)
			}
			if s := r.call(asDev, "fleet_report", map[string]any{"state": "waiting", "message": "which one?"}); s.Failed {
				t.Errorf("a dev's report: %+v", s)
			}
			if s := r.call(asDev, "fleet_list", nil); s.Failed || !strings.Contains(s.Text, "which one?") {
				t.Errorf("a dev's list: %+v, want its own message", s)
			}
			who := r.call(asBoss, "fleet_whoami", nil)
			if who.Structured["role"] != "architect" || who.Structured["slot"] != "architect-1" {
				t.Errorf("an architect's whoami: %+v", who)
			}
			if s := r.call(asBoss, "fleet_spawn", map[string]any{"tree": target, "profile": "worker", "task": "", "wait": true}); s.Failed {
				t.Errorf("an architect's spawn: %+v", s)
			}
			if s := r.call(asBoss, "fleet_stop", map[string]any{"member": target}); s.Failed {
				t.Errorf("an architect's stop: %+v", s)
			}
		})
	}
}

// mcpAgent is an agent that uses the tools, as agents do: over stdio, from a server that it starts itself. It keeps what it was
// told in the file path, and reports that it is there.
func mcpAgent(path string) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server := exec.Command(os.Getenv("FLEETDECK_EXE"), "mcp")
	session, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, &sdk.CommandTransport{Command: server}, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	answers := map[string]toolAnswer{}
	for _, call := range []struct {
		tool string
		args map[string]any
	}{
		{"fleet_whoami", nil},
		{"fleet_spawn", map[string]any{"tree": os.Getenv("FLEETDECK_TREE") + "/../target", "profile": "worker", "task": "", "wait": true}},
		{"fleet_report", map[string]any{"state": "working"}},
	} {
		if answers[call.tool], err = callTool(ctx, session, call.tool, call.args); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	data, _ := json.Marshal(answers)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		fmt.Println(err)
		return 1
	}
	time.Sleep(10 * time.Minute)
	return 0
}

func TestAnAgentAsksWhoItIsFromInside(t *testing.T) {
	t.Parallel()
	full(t)
	for role, spawns := range map[string]bool{fleet.RoleDev: false, "architect": true} {
		t.Run(role, func(t *testing.T) {
			r := newMCPRig(t)
			target := r.repo("target")
			out, code := r.dispatch(r.repo("own"), "--profile", "caller", "--role", role, "--wait")
			if code != 0 {
				t.Fatalf("exit %d: %s", code, out.Message)
			}
			var answers map[string]toolAnswer
			r.await("the agent has its answers", func() bool {
				data, err := os.ReadFile(filepath.Join(r.dir, "said"))
				return err == nil && json.Unmarshal(data, &answers) == nil
			})
			who := answers["fleet_whoami"].Structured
			if who["member"] != out.Member || who["role"] != role || who["tree"] != out.Tree ||
				who["charter_sha256"] != hashOf(string(config.BuiltinCharter(role))) {
				t.Errorf("whoami %v, want member %s, %s in %s on its charter", who, out.Member, role, out.Tree)
			}
			if spawns {
				if s := answers["fleet_spawn"]; s.Failed || s.Structured["tree"] != target {
					t.Errorf("spawn: %+v, want it accepted for %s", s, target)
				}
			} else {
				wantRefusal(t, "spawn", answers["fleet_spawn"], fleet.CodeNotAllowed)
			}
			if spawns { // it is accepted before it runs
				r.await("the worker runs", func() bool { return len(r.starts()) > 0 })
			}
			if got := len(r.starts()); (got == 1) != spawns {
				t.Errorf("%d workers were started", got)
			}
		})
	}
}
