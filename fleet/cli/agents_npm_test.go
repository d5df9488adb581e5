package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
)

// installed are the real agents, each installed once a run.
var installed struct {
	mu  sync.Mutex // guards all below
	dir string
	bin map[string]func() (string, error)
}

// installAgent installs a real agent from the package registry into a directory of this run's own, and gives the directory of
// its program. The test goes on beside others.
func installAgent(t *testing.T, pkg string) string {
	t.Helper()
	if os.Getenv("FLEETDECK_TEST_NPM") == "" {
		t.Skipf("SKIPPED: %s is installed from the network; set FLEETDECK_TEST_NPM=1", pkg)
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("no %s here, and FLEETDECK_TEST_NPM asks for real agents", tool)
		}
	}
	t.Parallel()
	installed.mu.Lock()
	if installed.bin == nil {
		dir, err := os.MkdirTemp("", "fleetdeck-agents-")
		if err != nil {
			t.Fatal(err)
		}
		installed.dir, installed.bin = dir, map[string]func() (string, error){}
	}
	install := installed.bin[pkg]
	if install == nil {
		dir := filepath.Join(installed.dir, filepath.Base(pkg))
		install = sync.OnceValues(func() (string, error) { return npmInstall(dir, pkg) })
		installed.bin[pkg] = install
	}
	installed.mu.Unlock()
	bin, err := install()
	if err != nil { // what a registry serves is no fault of ours: the run says which agents it went without
		t.Skipf("SKIPPED: %s cannot be installed here: %v", pkg, err)
	}
	return bin
}

func npmInstall(dir, pkg string) (bin string, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", dir, pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, "node_modules", ".bin"), nil
}

// removeInstalled removes what [installAgent] installed, once all tests are over.
func removeInstalled() {
	if installed.dir != "" {
		os.RemoveAll(installed.dir)
	}
}

// theTask is text that a careless hand would change.
const theTask = "-n say \"hi\" to 'all' of $HOME\n\n- then {charter}\n--stop"

// realAgent is a fleet with one profile, "real", of an agent that has its own home and speaks to a model of the test's.
func realAgent(t *testing.T, agent, bin string, m *model, env []string, more string) (r *rig, home string) {
	t.Helper()
	var list strings.Builder
	for _, kv := range append([]string{"HOME=DIR/home", "PATH=" + bin + ":" + os.Getenv("PATH")}, env...) {
		fmt.Fprintf(&list, "%q, ", strings.ReplaceAll(kv, "MODEL", m.URL))
	}
	r = newRig(t, fmt.Sprintf("grace = \"60s\"\n[roles.dev]\ncharter = \"dev.md\"\n[profiles.real]\nagent = %q\nenv = [%s]\n%s\n", agent, list.String(), more))
	home = filepath.Join(r.dir, "home")
	r.write("dev.md", theCharter)
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	up := r.command("up")
	up.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home} // nobody's keys reach a real agent
	if out, err := up.CombinedOutput(); err != nil {
		t.Fatalf("up: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range r.members() {
				text, _, _ := r.fleetdeck("screen", m.ID)
				why, _, _ := r.fleetdeck("explain", m.ID)
				t.Logf("%s\n%s", text, why)
			}
		}
	})
	return r, home
}

// write writes a file of the rig's.
func (r *rig) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// member gives a member as it is now.
func (r *rig) member(id string) fleet.Member {
	r.t.Helper()
	for _, m := range r.members() {
		if m.ID == id {
			return m
		}
	}
	r.t.Fatalf("no member %s", id)
	return fleet.Member{}
}

// awaitState waits until a member is in a state by one of sources, and gives it.
func (r *rig) awaitState(id string, state fleet.State, sources ...string) (m fleet.Member) {
	r.t.Helper()
	r.await(fmt.Sprintf("%s is %s by %v", id, state, sources), func() bool {
		m = r.member(id)
		if m.State != state {
			return false
		}
		for _, s := range sources {
			if m.StateSource == s {
				return true
			}
		}
		return false
	})
	return m
}

// awaitScreen waits until a member's screen shows text.
func (r *rig) awaitScreen(id, text string) {
	r.t.Helper()
	r.await("its screen shows "+text, func() bool {
		shown, _, _ := r.fleetdeck("screen", id)
		return strings.Contains(shown, text)
	})
}

// killed kills a member's process and waits until that is known.
func (r *rig) killed(id string) {
	r.t.Helper()
	if err := syscall.Kill(r.member(id).Pid, syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
	r.awaitState(id, fleet.StateExited, "process")
}

// goesOn resumes a member after its first turn: the session knows all of it, and is told one thing more.
func (r *rig) goesOn(id string, m *model) (next string) {
	r.t.Helper()
	const more = "and then rest"
	var out fleet.Outcome
	r.must(&out, "restart", "--resume", id, "--task", more, "--wait")
	r.awaitSlow("the session and what is new reach the model", func() bool { return m.heard(theTask, lastWord, more) && m.heard(strings.TrimSpace(theCharter), more) })
	m.answer(2)
	r.awaitState(out.Member, fleet.StateIdle, "hook")
	return out.Member
}

func codexHome(m *model, trusted string) string {
	text := fmt.Sprintf("model = \"stub\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\nbase_url = \"%s/v1\"\nwire_api = \"responses\"\n", m.URL)
	if trusted != "" {
		text += fmt.Sprintf("[projects.%q]\ntrust_level = \"trusted\"\n", trusted)
	}
	return text
}

func TestRealCodexIsDispatched(t *testing.T) {
	bin := installAgent(t, "@openai/codex")
	m := newModel(t, "", "")
	r, _ := realAgent(t, "codex", bin, m, nil, "")
	tree := r.repo("api")
	config := codexHome(m, tree)
	r.write("home/.codex/config.toml", config)
	out, code := r.dispatch(tree, "--profile", "real", "--task", theTask, "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	r.await("charter and task reach the model", func() bool { return m.heard(theTask, strings.TrimSpace(theCharter)) })
	r.awaitState(out.Member, fleet.StateWorking, "title", "progress")
	m.answer(1)
	if got := r.awaitState(out.Member, fleet.StateIdle, "hook"); got.StateMessage != lastWord {
		t.Errorf("it said %q, want %q", got.StateMessage, lastWord)
	}
	var w api.Witnesses
	r.must(&w, "explain", out.Member)
	if len(w.Session) != 36 {
		t.Errorf("its session is %q", w.Session)
	}
	r.must(nil, "send", out.Member, "go on") // a second turn, that no hook tells the beginning of
	r.awaitState(out.Member, fleet.StateWorking, "title", "progress")
	m.answer(1)
	r.awaitState(out.Member, fleet.StateIdle, "hook")
	if now := r.text("home/.codex/config.toml"); !strings.HasPrefix(now, config[:40]) || strings.Contains(now, "notify") || strings.Contains(now, "hook") {
		t.Errorf("the user's own configuration was changed:\n%s", now)
	}
	r.killed(r.goesOn(out.Member, m))
}

func TestRealCodexAsksAndIsSeenToWait(t *testing.T) {
	bin := installAgent(t, "@openai/codex")
	for name, hooks := range map[string]string{"hooks": "hooks = true", "no hooks": "hooks = false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t, "exec_command", `{"cmd":"touch made","sandbox_permissions":"require_escalated","justification":"May I make a file?"}`)
			r, _ := realAgent(t, "codex", bin, m, nil, hooks)
			r.write("home/.codex/config.toml", codexHome(m, ""))
			out, code := r.dispatch(r.repo("api"), "--profile", "real", "--task", "make it", "--wait")
			if code != 0 {
				t.Fatalf("dispatch: exit %d: %s", code, out.Message)
			}
			// The dialog before its first prompt, that neither hook nor title tells of.
			if got := r.awaitState(out.Member, fleet.StateWaiting, "screen"); got.StateMessage != "Trust this folder?" {
				t.Errorf("it asks %q", got.StateMessage)
			}
			r.must(nil, "send", out.Member, "")
			r.await("the task reaches the model", func() bool { return m.heard("make it", strings.TrimSpace(theCharter)) })
			m.answer(1)
			if name == "hooks" {
				if got := r.awaitState(out.Member, fleet.StateWaiting, "hook"); got.StateMessage != "allow Bash: touch made?" {
					t.Errorf("it asks %q", got.StateMessage)
				}
			} else {
				r.awaitState(out.Member, fleet.StateWaiting, "title", "progress")
			}
			r.awaitScreen(out.Member, "Press enter to confirm") // a hook may be quicker than the dialog
			r.must(nil, "send", out.Member, "")
			m.answer(1)
			by := []string{"title", "progress"}
			if name == "hooks" {
				by = []string{"hook"}
			}
			r.awaitState(out.Member, fleet.StateIdle, by...)
		})
	}
}

func claudeEnv() []string {
	return []string{"ANTHROPIC_BASE_URL=MODEL", "ANTHROPIC_AUTH_TOKEN=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
}

func TestRealClaudeIsDispatched(t *testing.T) {
	bin := installAgent(t, "@anthropic-ai/claude-code")
	m := newModel(t, "Bash", `{"command":"touch made","description":"make a file"}`)
	r, _ := realAgent(t, "claude", bin, m, claudeEnv(), "")
	r.write("home/.claude.json", `{"hasCompletedOnboarding":true,"theme":"dark"}`)
	out, code := r.dispatch(r.repo("api"), "--profile", "real", "--task", theTask, "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	if got := r.awaitState(out.Member, fleet.StateWaiting, "screen"); !strings.HasPrefix(got.StateMessage, "Quick safety check") {
		t.Errorf("it asks %q", got.StateMessage)
	}
	r.must(nil, "send", out.Member, "")
	r.await("charter and task reach the model", func() bool { return m.heard(theTask, strings.TrimSpace(theCharter)) })
	r.awaitState(out.Member, fleet.StateWorking, "hook")
	m.answer(2) // one for what it asks beside the turn
	if got := r.awaitState(out.Member, fleet.StateWaiting, "hook"); got.StateMessage != "allow Bash: touch made?" {
		t.Errorf("it asks %q", got.StateMessage)
	}
	r.awaitScreen(out.Member, "Esc to cancel")
	r.must(nil, "send", out.Member, "")
	m.answer(2)
	if got := r.awaitState(out.Member, fleet.StateIdle, "hook"); got.StateMessage != lastWord {
		t.Errorf("it said %q, want %q", got.StateMessage, lastWord)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "home", ".claude", "settings.json")); err == nil {
		t.Error("the user's own settings were written")
	}
	r.killed(r.goesOn(out.Member, m))
}

func TestRealClaudeInAnEmptyHomeIsNeverIdle(t *testing.T) {
	bin := installAgent(t, "@anthropic-ai/claude-code")
	m := newModel(t, "", "")
	r, _ := realAgent(t, "claude", bin, m, claudeEnv(), "")
	out, code := r.dispatch(r.repo("api"), "--profile", "real", "--task", "say hi", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	r.await("its screen was looked at", func() bool {
		var w api.Witnesses
		r.must(&w, "explain", out.Member)
		for _, said := range w.Testimonies {
			if said.State == fleet.StateIdle || w.Judgement.State == fleet.StateIdle {
				t.Fatalf("idle, says %+v", said)
			}
			if said.Source == "screen" || w.Judgement.State == fleet.StateExited {
				return true
			}
		}
		return w.Judgement.State == fleet.StateExited
	})
}

// awaitSlow is await for an agent that takes long to come up, above all where many do at once.
func (r *rig) awaitSlow(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(10 * patience); !ok() && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	r.await(what, ok)
}

// openCode dispatches OpenCode with the task, and waits until its first turn has reached the model.
func openCode(t *testing.T, m *model) (r *rig, member string) {
	t.Helper()
	bin := installAgent(t, "opencode-ai")
	r, _ = realAgent(t, "opencode", bin, m, []string{
		"OPENCODE_CONFIG=DIR/opencode.json", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		"NPM_CONFIG_REGISTRY=MODEL", // what it would install for its plugins is refused at once, where it would try for minutes
	}, "")
	r.write("home/.npmrc", "registry="+m.URL+"/\nfetch-retries=0\n")
	r.write("opencode.json", fmt.Sprintf(`{"model":"stub/stub","small_model":"stub/stub","autoupdate":false,"share":"disabled","provider":{"stub":{
		"npm":"@ai-sdk/openai-compatible","name":"stub","options":{"baseURL":"%s/v1","apiKey":"x"},"models":{"stub":{"name":"stub"}}}}}`, m.URL))
	out, code := r.dispatch(r.repo("api"), "--profile", "real", "--task", theTask, "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	r.awaitSlow("charter and task reach the model", func() bool { return m.heard(theTask) && m.heard(strings.TrimSpace(theCharter)) })
	r.awaitState(out.Member, fleet.StateWorking, "hook")
	return r, out.Member
}

func TestRealOpenCodeIsDispatched(t *testing.T) {
	m := newModel(t, "", "")
	r, member := openCode(t, m)
	m.answer(2) // one for the session's title
	r.awaitState(member, fleet.StateIdle, "hook")

	// Its session goes on, and takes what it is to do from the terminal only.
	const more = "and then rest"
	if _, stderr, code := r.fleetdeck("restart", "--resume", member, "--task", more); code != 3 || !strings.Contains(stderr, "task") {
		t.Errorf("a resumption with a task: exit %d, %s, want it refused", code, stderr)
	}
	var out fleet.Outcome
	r.must(&out, "restart", "--resume", member, "--wait")
	r.awaitSlow("the session is shown", func() bool {
		screen, _, _ := r.fleetdeck("screen", out.Member)
		return strings.Contains(screen, lastWord)
	})
	r.must(nil, "send", out.Member, more)
	r.awaitSlow("the session and what is new reach the model", func() bool { return m.heard(theTask, lastWord, more) })
	m.answer(2)
	r.awaitState(out.Member, fleet.StateIdle, "hook")
	r.killed(out.Member)
}

// TestRealOpenCodeWithinAnotherIsNotHeardAsIt: what is started by hand within a member has its environment, and is not the member.
func TestRealOpenCodeWithinAnotherIsNotHeardAsIt(t *testing.T) {
	m := newModel(t, "bash", `{"command":"opencode run 'the other one' && touch ran","description":"run another"}`)
	r, member := openCode(t, m)
	var before, after api.Witnesses
	r.must(&before, "explain", member)
	m.answer(2)
	r.awaitSlow("the other one speaks", func() bool { return m.heard("the other one") && !m.heard(theTask, "the other one") })
	m.answer(100)
	r.awaitSlow("the turn ends", func() bool { return r.member(member).State == fleet.StateIdle })
	if _, err := os.Stat(filepath.Join(r.dir, "src", "api", "ran")); err != nil {
		t.Errorf("the other one did not run to its end: %v; last the model was told: %s", err, m.last())
	}
	if r.must(&after, "explain", member); after.Session != before.Session || before.Session == "" {
		t.Errorf("its session was %q, and now %q: another spoke for it", before.Session, after.Session)
	}
}

func TestRealGeminiIsDispatched(t *testing.T) {
	bin := installAgent(t, "@google/gemini-cli")
	m := newModel(t, "", "")
	r, _ := realAgent(t, "gemini", bin, m, []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=MODEL"}, "")
	r.write("home/.gemini/settings.json", `{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},
		"general":{"disableAutoUpdate":true},"privacy":{"usageStatisticsEnabled":false},"model":{"name":"gemini-2.5-flash"}}`)
	out, code := r.dispatch(r.repo("api"), "--profile", "real", "--task", theTask, "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	r.awaitSlow("charter and task reach the model", func() bool { return m.heard(theTask) && m.heard(strings.TrimSpace(theCharter)) })
	r.awaitState(out.Member, fleet.StateWorking, "title")
	m.answer(2)
	r.awaitState(out.Member, fleet.StateIdle, "title")
	r.must(&out, "restart", "--resume", out.Member, "--task", "and then rest", "--wait")
	r.awaitSlow("the session and what is new reach the model", func() bool { return m.heard("and then rest", lastWord, theTask) })
	m.answer(2)
	r.awaitState(out.Member, fleet.StateIdle, "title")
	r.killed(out.Member)
}
