package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet"
)

// installSDK installs the protocol's TypeScript SDK beside a client of it, and gives their directory.
func installSDK(t *testing.T) string {
	t.Helper()
	if os.Getenv("FLEETDECK_TEST_NPM") == "" {
		t.Skip("SKIPPED: the client in another language is installed from the network; set FLEETDECK_TEST_NPM=1")
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: no %s here", tool)
		}
	}
	dir := t.TempDir()
	script, err := os.ReadFile("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "client.mjs"), script, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true,"type":"module"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--silent", "@modelcontextprotocol/sdk@1")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the SDK cannot be installed here: %v: %s", err, out)
	}
	return dir
}

// nodeClient is a running client in JavaScript.
type nodeClient struct {
	t   *testing.T
	in  *json.Encoder
	out *bufio.Reader
}

// node starts a client that connects as connect says: {"command":[…]} or {"url":…}.
func (r *rig) node(t *testing.T, dir string, as []string, connect any) *nodeClient {
	t.Helper()
	how, err := json.Marshal(connect)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "client.mjs")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(append(os.Environ(), as...), "CONNECT="+string(how))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
	})
	return &nodeClient{t, json.NewEncoder(stdin), bufio.NewReader(stdout)}
}

// nodeAnswer is what a call came to, in the SDK's own words.
type nodeAnswer struct {
	Tools             []struct{ Name string }
	IsError           bool
	Content           []struct{ Text string }
	StructuredContent map[string]any
	Thrown            string
}

// ask calls a tool; without one it asks for their list.
func (n *nodeClient) ask(tool string, args map[string]any) nodeAnswer {
	n.t.Helper()
	if err := n.in.Encode(map[string]any{"tool": tool, "args": args}); err != nil {
		n.t.Fatalf("%s: %v", tool, err)
	}
	line, err := n.out.ReadBytes('\n')
	var a nodeAnswer
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil || a.Thrown != "" {
		n.t.Fatalf("%s: %v %s", tool, err, a.Thrown)
	}
	return a
}

func (n *nodeClient) call(tool string, args map[string]any) toolAnswer {
	n.t.Helper()
	a := n.ask(tool, args)
	out := toolAnswer{Failed: a.IsError, Structured: a.StructuredContent}
	for _, c := range a.Content {
		out.Text += c.Text
	}
	return out
}

func TestAClientInAnotherLanguageIsServed(t *testing.T) {
	t.Parallel()
	dir := installSDK(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, strings.ReplaceAll(withArchitect, "EXE", exe)+"\n[mcp]\nlisten = \"127.0.0.1:0\"\n")
	r.must(nil, "up")
	dev, _ := r.dispatch(r.repo("dev"), "--profile", "worker", "--wait")
	boss, _ := r.dispatch(r.repo("boss"), "--profile", "worker", "--role", "architect", "--wait")
	stdio := map[string]any{"command": []string{exe, "mcp", "--state", r.state, "--config", r.config}}
	overHTTP := map[string]any{"url": "http://" + r.mcpAddress() + "/mcp"}
	for name, connect := range map[string]any{"stdio": stdio, "http": overHTTP} {
		t.Run(name, func(t *testing.T) {
			asDev, asBoss := r.node(t, dir, r.identity(dev.Member), connect), r.node(t, dir, r.identity(boss.Member), connect)
			if tools := asDev.ask("", nil).Tools; len(tools) != 6 {
				t.Errorf("tools %v, want six", tools)
			}
			if who := asDev.call("fleet_whoami", nil); who.Failed || who.Structured["member"] != dev.Member || who.Structured["role"] != fleet.RoleDev {
				t.Errorf("whoami: %+v, want %s", who, dev.Member)
			}
			target := r.repo("target-" + name)
			wantRefusal(t, "a dev's spawn", asDev.call("fleet_spawn", map[string]any{"tree": target, "profile": "worker", "task": ""}), fleet.CodeNotAllowed)
			wantRefusal(t, "a dev's stop", asDev.call("fleet_stop", map[string]any{"member": boss.Member}), fleet.CodeNotAllowed)
			spawned := asBoss.call("fleet_spawn", map[string]any{"tree": target, "profile": "echo", "task": "", "wait": true})
			if spawned.Failed || spawned.Structured["tree"] != target {
				t.Fatalf("an architect's spawn: %+v", spawned)
			}
			wantRefusal(t, "a second one", asBoss.call("fleet_spawn", map[string]any{"tree": target, "profile": "echo", "task": ""}), fleet.CodeTreeOccupied)
			for tool, args := range map[string]map[string]any{
				"fleet_send": {"member": target, "text": "hello"}, "fleet_list": nil, "fleet_report": {"state": "working"},
			} {
				if a := asBoss.call(tool, args); a.Failed {
					t.Errorf("%s: %+v", tool, a)
				}
			}
			if a := asBoss.call("fleet_stop", map[string]any{"member": target}); a.Failed || len(r.alive()) != 2 {
				t.Errorf("stop: %+v, alive %v", a, r.alive())
			}
		})
	}
}

// mcpAddress is where the daemon serves the tools over TCP.
func (r *rig) mcpAddress() string {
	r.t.Helper()
	addr := ""
	r.await("the daemon says where it serves the tools", func() bool {
		log, err := os.ReadFile(filepath.Join(r.state, "daemon.log"))
		_, rest, found := strings.Cut(string(log), "MCP on http://")
		addr, _, _ = strings.Cut(rest, "/mcp")
		return err == nil && found
	})
	return addr
}
