package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fleetdeck/fleet"
)

// as runs the program as a member does: with its identity in the environment.
func (r *rig) as(identity []string, args ...string) (stdout string, code int) {
	r.t.Helper()
	cmd := r.command(args...)
	cmd.Env = append(os.Environ(), identity...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.Discard
	if err := cmd.Run(); cmd.ProcessState == nil {
		r.t.Fatalf("run %v: %v", args, err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// request makes a call of the daemon's API with a token and gives its status, its code and its body.
func (r *rig) request(method, path, token, body string) (int, fleet.Code, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://fleetd"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	client := http.Client{Transport: bearer{r.overSocket(), token}}
	resp, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	var refusal fleet.Refusal
	json.Unmarshal(data, &refusal)
	return resp.StatusCode, refusal.Code, string(data)
}

// refusals counts the events of calls that were not allowed.
func (r *rig) refusals() int {
	r.t.Helper()
	out, _, _ := r.fleetdeck("events", "--json")
	return strings.Count(out, `"kind":"not_allowed"`)
}

func TestADevMayNotSpawnByAnyWay(t *testing.T) {
	t.Parallel()
	full(t)
	r := newMCPRig(t)
	dev, _ := r.dispatch(r.repo("dev"), "--profile", "worker", "--wait")
	other, _ := r.dispatch(r.repo("other"), "--profile", "worker", "--wait")
	identity, target := r.identity(dev.Member), r.repo("target")
	token := variable(identity, "FLEETDECK_TOKEN")
	var reserved fleet.Outcome
	r.must(&reserved, "reserve", target, "--profile", "worker")
	spawn := `{"reservation":"` + reserved.Reservation + `","tree":"` + target + `","role":"dev","profile":"worker"}`
	free := r.repo("free")

	command := func(args ...string) func(t *testing.T) {
		return func(t *testing.T) {
			if _, code := r.as(identity, args...); code != 3 {
				t.Errorf("exit %d, want 3", code)
			}
		}
	}
	for _, way := range []struct {
		name string
		try  func(t *testing.T)
	}{
		{"dispatch", func(t *testing.T) {
			stdout, code := r.as(identity, "dispatch", "--json", free, "--profile", "worker")
			var out fleet.Outcome
			if err := json.Unmarshal([]byte(stdout), &out); err != nil || code != 3 || out.Code != fleet.CodeNotAllowed || out.Reservation != "" {
				t.Errorf("exit %d, %+v, %v; want 3, %s", code, out, err, fleet.CodeNotAllowed)
			}
		}},
		{"reserve", command("reserve", free, "--profile", "worker")},
		{"release", command("release", target)},
		{"lock", command("lock", "--", "true")},
		{"queue add", command("queue", "add", free, "--profile", "worker", "--task", "x")},
		{"stop another", command("stop", other.Member)},
		{"send", command("send", other.Member, "x")},
		{"down", command("down")},
		{"HTTP with the reservation of another", func(t *testing.T) {
			if status, code, _ := r.request("POST", "/v1/members", token, spawn); status != http.StatusForbidden || code != fleet.CodeNotAllowed {
				t.Errorf("%d %s, want 403 %s", status, code, fleet.CodeNotAllowed)
			}
		}},
		{"HTTP: another's state", func(t *testing.T) {
			if status, code, _ := r.request("POST", "/v1/members/"+other.Member+"/state", token, `{"state":"done"}`); status != http.StatusForbidden || code != fleet.CodeNotAllowed {
				t.Errorf("%d %s, want 403 %s", status, code, fleet.CodeNotAllowed)
			}
		}},
		{"MCP", func(t *testing.T) {
			for _, door := range doors {
				wantRefusal(t, "spawn", r.call(door(r, identity), "fleet_spawn", map[string]any{"tree": free, "profile": "worker", "task": ""}), fleet.CodeNotAllowed)
			}
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			file, info := r.fileState()
			loud := r.refusals()
			way.try(t)
			after, afterInfo := r.fileState()
			if after != file || !os.SameFile(info, afterInfo) || !info.ModTime().Equal(afterInfo.ModTime()) {
				t.Errorf("the reservation file changed: %q, then %q", file, after)
			}
			if len(r.begun(2)) != 2 || len(r.alive()) != 2 {
				t.Errorf("started %v, alive %v; want the first two", r.starts(), r.alive())
			}
			if r.refusals() == loud {
				t.Error("the refusal is in no event")
			}
		})
	}
	// What is always a member's own.
	for _, args := range [][]string{{"whoami"}, {"members"}, {"report", "idle"}} {
		if _, code := r.as(identity, args...); code != 0 {
			t.Errorf("%v: exit %d, want 0", args, code)
		}
	}
	if status, _, body := r.request("DELETE", "/v1/members/"+dev.Member, token, ""); status != http.StatusOK {
		t.Errorf("a member that stops itself: %d %s", status, body)
	}
}

func TestAnArchitectMaySpawnByItsCommand(t *testing.T) {
	t.Parallel()
	r := newMCPRig(t)
	boss, _ := r.dispatch(r.repo("boss"), "--profile", "worker", "--role", "architect", "--wait")
	if _, code := r.as(r.identity(boss.Member), "dispatch", r.repo("target"), "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	if n := len(r.alive()); n != 2 {
		t.Errorf("%d members, want 2", n)
	}
}

func TestOnlyALiveMembersTokenIsOne(t *testing.T) {
	t.Parallel()
	full(t)
	r := newMCPRig(t)
	live, _ := r.dispatch(r.repo("live"), "--profile", "worker", "--wait")
	ended, _ := r.dispatch(r.repo("ended"), "--profile", "worker", "--wait")
	old, token := r.identity(ended.Member), variable(r.identity(live.Member), "FLEETDECK_TOKEN")
	r.must(nil, "stop", ended.Member)
	wrong := token[:len(token)-4] + "AAAA"
	for _, tt := range []struct{ name, token string }{
		{"none", ""},
		{"a wrong one", wrong},
		{"the id alone", live.Member},
		{"another member's id before a right one", ended.Member + token[strings.IndexByte(token, '.'):]},
		{"an ended member's", variable(old, "FLEETDECK_TOKEN")},
		{"nonsense", "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := []struct{ method, path, body string }{
				{"GET", "/v1/whoami", ""},
				{"POST", "/v1/members/" + live.Member + "/state", `{"state":"done"}`},
			}
			if tt.token != "" { // without one it is the operator that calls
				calls = append(calls, []struct{ method, path, body string }{
					{"GET", "/v1/members", ""}, {"POST", "/v1/members", "{}"}, {"DELETE", "/v1/members/" + live.Member, ""},
					{"POST", "/v1/shutdown", ""}, {"POST", "/mcp", "{}"},
				}...)
			}
			for _, c := range calls {
				if status, code, _ := r.request(c.method, c.path, tt.token, c.body); status != http.StatusForbidden || code != fleet.CodeNotAllowed {
					t.Errorf("%s %s: %d %s, want 403 %s", c.method, c.path, status, code, fleet.CodeNotAllowed)
				}
			}
		})
	}
	if m := r.alive(); len(m) != 1 || m[0].State == fleet.StateDone {
		t.Errorf("alive %+v, want %s, not done", m, live.Member)
	}
	if _, code := r.as(old, "whoami"); code != 3 {
		t.Errorf("an ended member's whoami: exit %d, want 3", code)
	}
}

func TestNobodyIsToldAToken(t *testing.T) {
	t.Parallel()
	full(t)
	r := newMCPRig(t)
	dev, _ := r.dispatch(r.repo("dev"), "--profile", "worker", "--wait", "--task", "look around")
	identity := r.identity(dev.Member)
	token := variable(identity, "FLEETDECK_TOKEN")
	if token == "" {
		t.Fatal("the member has no token")
	}
	secret := token[strings.IndexByte(token, '.')+1:]
	// What could make it be told: refused calls, reports, MCP, a daemon that starts again, and an end.
	r.as(identity, "dispatch", r.repo("free"), "--profile", "worker")
	r.as(identity, "report", "working", "-m", "hello")
	r.call(doors["http"](r, identity), "fleet_whoami", nil)
	r.request("GET", "/v1/whoami", token+"x", "")
	r.kill()
	r.must(nil, "up")

	for _, path := range []string{"/v1/health", "/v1/roster", "/members", "/v1/launches", "/v1/slots", "/v1/trees", "/v1/members/" + dev.Member,
		"/v1/launches/" + dev.Member, "/v1/reservations/" + dev.Reservation, "/v1/members/" + dev.Member + "/screen", "/v1/members/" + dev.Member + "/log",
		"/v1/events?follow=false", "/v1/whoami"} {
		t.Run("GET "+path, func(t *testing.T) {
			status, _, body := r.request("GET", path, token, "")
			if status != http.StatusOK {
				t.Errorf("status %d", status)
			}
			if strings.Contains(body, secret) {
				t.Errorf("the answer tells it: %s", body)
			}
		})
	}
	t.Run("ps", func(t *testing.T) {
		out, err := exec.Command("ps", "-eo", "args").Output()
		if err != nil {
			t.Skipf("no ps here: %v", err)
		}
		if bytes.Contains(out, []byte(secret)) {
			t.Error("a command line tells it")
		}
	})
	t.Run("files", func(t *testing.T) {
		var holders []string
		err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(data, []byte(secret)) {
				return err
			}
			holders = append(holders, filepath.Base(path))
			info, err := e.Info()
			if err != nil {
				return err
			}
			dir, err := os.Stat(filepath.Dir(path))
			if err != nil {
				return err
			}
			if info.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700 {
				t.Errorf("%s has mode %04o in a directory of %04o, want 0600 in 0700", path, info.Mode().Perm(), dir.Mode().Perm())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(holders, []string{"spec.json"}) {
			t.Errorf("it stands in %v, want spec.json alone", holders)
		}
	})
}

// withTCP serves the tools on a port of the system's choice.
const withTCP = agents + "\n[mcp]\nlisten = \"127.0.0.1:0\"\n"

func TestTheToolsOverTCPNeedATokenAndALocalName(t *testing.T) {
	t.Parallel()
	r := newRig(t, withTCP)
	r.must(nil, "up")
	dev, _ := r.dispatch(r.repo("dev"), "--profile", "worker", "--wait")
	token := variable(r.identity(dev.Member), "FLEETDECK_TOKEN")
	addr := r.mcpAddress()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	for _, tt := range []struct {
		name, host, origin, token, path string
		want                            int
	}{
		{"a member", addr, "", token, "/mcp", http.StatusOK},
		{"no token", addr, "", "", "/mcp", http.StatusUnauthorized},
		{"a wrong token", addr, "", "x", "/mcp", http.StatusUnauthorized},
		{"a name that resolves to here", "evil.example:80", "", token, "/mcp", http.StatusForbidden},
		{"a web page", addr, "http://evil.example", token, "/mcp", http.StatusForbidden},
		{"the rest of the API", addr, "", token, "/v1/members", http.StatusNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+tt.path, strings.NewReader(hello))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = tt.host
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			if tt.origin != "" {
				req.Header.Set("Origin", tt.origin)
			}
			if tt.token != "" {
				req.Header.Set("Authorization", "Bearer "+tt.token)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.want {
				body, _ := io.ReadAll(resp.Body)
				t.Errorf("status %d, want %d: %s", resp.StatusCode, tt.want, body)
			}
		})
	}
	session := r.connect(&sdk.StreamableClientTransport{Endpoint: "http://" + addr + "/mcp", DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: bearer{http.DefaultTransport, token}}})
	if s := r.call(session, "fleet_whoami", nil); s.Structured["member"] != dev.Member {
		t.Errorf("whoami: %+v, want %s", s, dev.Member)
	}
}
