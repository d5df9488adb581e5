package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/client"
)

// sessions are agents that write down with what they were started: a line each.
const sessions = `
grace = "20s"
lock_wait = "10s"
[roles.dev]
charter = "dev.md"
[roles.architect]
charter = "dev.md"
[[slots]]
name = "architect-1"
role = "architect"
profile = "named"
[profiles.named]
ready = "output"
command = ["DIR/agent", "new", "{session}", "{charter}", "{task}"]
resume = ["DIR/agent", "resumed", "{session}", "--more={task}"]
[profiles.anew]
ready = "output"
command = ["DIR/agent", "new", "{session}", "{charter}", "{task}"]
resume = ["DIR/agent", "resumed", "{session}", "{charter}"]
[profiles.typed]
ready = "output"
command = ["DIR/agent", "new"]
resume = ["DIR/agent", "again"]
charter = "typed"
[profiles.nothing]
ready = "output"
command = ["DIR/agent", "new", "{task}"]
[profiles.tells]
ready = "output"
agent = "claude"
command = ["DIR/agent", "new", "{session}", "{hooks}", "{charter}"]
resume = ["DIR/agent", "resumed", "{session}"]
[profiles.gone]
ready = "output"
command = ["DIR/agent", "new", "{session}"]
resume = ["no-such-program-anywhere", "{session}"]
`

func sessionRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, sessions)
	r.write("dev.md", "Keep to it.")
	r.write("agent", "#!/bin/sh\n"+`for a in "$@"; do printf '[%s]' "$a"; done >> "${0%agent}args"; echo >> "${0%agent}args"; echo up; exec cat`+"\n")
	if err := os.Chmod(filepath.Join(r.dir, "agent"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.must(nil, "up")
	return r
}

// started gives the arguments of the last start.
func (r *rig) started() string {
	lines := strings.Split(strings.TrimSpace(r.text("args")), "\n")
	return lines[len(lines)-1]
}

func TestAResumeTakesTheSessionUpAndSendsNoTaskAgain(t *testing.T) {
	full(t)
	t.Parallel()
	r := sessionRig(t)
	tree := r.repo("api")
	out, code := r.dispatch(tree, "--profile", "named", "--role", "architect", "--task", "plan it", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	first := r.member(out.Member)
	var w api.Witnesses
	r.must(&w, "explain", first.ID)
	session := strings.SplitN(strings.Trim(r.started(), "[]"), "][", 3)[1]
	if want := []string{filepath.Join(r.dir, "agent"), "resumed", session}; strings.Join(w.Resume, " ") != strings.Join(want, " ") {
		t.Errorf("explained as resumed by %q, want %q", w.Resume, want)
	}
	r.write("dev.md", "Another charter.") // the session is on the one that it began with

	r.must(&out, "restart", "--resume", first.ID, "--wait")
	if got, want := r.started(), "[resumed]["+session+"]"; got != want {
		t.Errorf("started with %s, want %s", got, want)
	}
	second := r.member(out.Member)
	if second.Slot != first.Slot || second.Role != first.Role || second.CharterSHA256 != first.CharterSHA256 || second.Task != "plan it" || first.Slot == "" {
		t.Errorf("resumed as %+v, was %+v", second, first)
	}
	// A resumed one that has ended is resumed again, after a crash of the daemon too, and told what is new.
	r.killed(second.ID)
	r.kill()
	r.must(nil, "up")
	r.must(&out, "restart", "--resume", second.ID, "--task", "-and \"that\"", "--wait")
	if got, want := r.started(), "[resumed]["+session+`][--more=-and "that"]`; got != want {
		t.Errorf("started with %s, want %s", got, want)
	}
	if third := r.member(out.Member); third.Task != "-and \"that\"" {
		t.Errorf("its task is %q", third.Task)
	}
}

func TestAPlainRestartOfAResumedMemberBeginsAnew(t *testing.T) {
	t.Parallel()
	r := sessionRig(t)
	out, code := r.dispatch(r.repo("api"), "--profile", "named", "--task", "mend it", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	begun := r.started()
	r.must(&out, "restart", "--resume", out.Member, "--wait")
	r.must(&out, "restart", out.Member, "--wait")
	if got := r.started(); !strings.HasPrefix(got, "[new][") || got == begun || !strings.HasSuffix(got, "[Keep to it.][mend it]") {
		t.Errorf("started with %s, after %s", got, begun)
	}
	r.must(&out, "restart", out.Member, "--wait", "--task", "mend that")
	if got := r.started(); !strings.HasSuffix(got, "[Keep to it.][mend that]") || r.member(out.Member).Task != "mend that" {
		t.Errorf("started with %s", got)
	}
}

func TestAResumeThatHandsTheCharterOverHasItsReceipt(t *testing.T) {
	full(t)
	t.Parallel()
	r := sessionRig(t)
	out, code := r.dispatch(r.repo("api"), "--profile", "anew", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	before := r.member(out.Member).CharterSHA256
	r.write("dev.md", "Another charter.")
	r.must(&out, "restart", "--resume", out.Member, "--wait")
	if now := r.member(out.Member).CharterSHA256; now == before || !strings.HasSuffix(r.started(), "[Another charter.]") {
		t.Errorf("started with %s, on charter %s, before %s", r.started(), now, before)
	}
	// Where the charter is typed, it is typed again, and a task with it.
	if out, code = r.dispatch(r.repo("web"), "--profile", "typed", "--task", "old", "--wait"); code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	r.must(&out, "restart", "--resume", out.Member, "--task", "new", "--wait")
	r.awaitScreen(out.Member, "new")
	shown, _, _ := r.fleetdeck("screen", out.Member)
	if !strings.Contains(shown, "Another charter.") || strings.Contains(shown, "old") || r.started() != "[again]" {
		t.Errorf("started with %s, and typed:\n%s", r.started(), shown)
	}
}

// TestNobodyIsEndedForASessionThatCannotBeTakenUp: the refusal says why, and the member goes on.
func TestNobodyIsEndedForASessionThatCannotBeTakenUp(t *testing.T) {
	full(t)
	t.Parallel()
	r := sessionRig(t)
	for _, tt := range []struct{ profile, task, want string }{
		{"nothing", "", "no command that takes a session up"},
		{"tells", "", "no session of"},
		{"gone", "", "executable file not found"},
		{"anew", "more", "takes no task"},
	} {
		t.Run(tt.profile, func(t *testing.T) {
			out, code := r.dispatch(r.repo(tt.profile), "--profile", tt.profile, "--wait")
			if code != 0 {
				t.Fatalf("dispatch: exit %d: %s", code, out.Message)
			}
			_, stderr, code := r.fleetdeck("restart", "--resume", out.Member, "--task", tt.task)
			if code != 3 || !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, "hint:") {
				t.Errorf("exit %d: %s, want 3, and %q", code, stderr, tt.want)
			}
			if m := r.member(out.Member); !m.Alive() {
				t.Errorf("it was ended: %+v", m)
			}
		})
	}
}

func TestASessionIsTakenUpOnlyByTheSame(t *testing.T) {
	t.Parallel()
	r := sessionRig(t)
	out, code := r.dispatch(r.repo("api"), "--profile", "named", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %s", code, out.Message)
	}
	r.must(nil, "stop", out.Member)
	web := r.repo("web")
	for name, spawn := range map[string]api.Spawn{
		"in another tree":    {Profile: "named", Resumes: out.Member},
		"on another profile": {Profile: "anew", Resumes: out.Member},
		"of nobody":          {Profile: "named", Resumes: "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
	} {
		var reserved fleet.Outcome
		r.must(&reserved, "reserve", web, "--profile", spawn.Profile)
		spawn.Tree, spawn.Reservation = web, reserved.Reservation
		if _, err := client.New(filepath.Join(r.state, "fleetd.sock"), "").Spawn(t.Context(), spawn); fleet.RefusalOf(err) == nil {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
		r.must(nil, "release", web)
	}
	if n := len(r.alive()); n != 0 {
		t.Errorf("%d members, want none", n)
	}
}
