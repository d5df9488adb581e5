package cli_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet/cluster/etcdrun"
)

// remoteShells are those that a user may have on the other host; each takes a command with -c, as sshd calls it.
var remoteShells = []string{"sh", "bash", "dash", "zsh", "fish", "csh", "tcsh", "ksh"}

// lone is a host of a fleet of many whose cluster and daemon are away: what needs neither can be done there. ssh is a program in place
// of ssh, a script of sh.
func lone(t *testing.T, ssh, more string) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, dir: dir, state: filepath.Join(dir, "state"), config: filepath.Join(dir, "fleetdeck.toml")}
	r.script("ssh", ssh)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("lock_wait = \"1s\"\n[cluster]\nendpoints = [\"http://127.0.0.1:1\"]\nnode = \"kite\"\nssh = [%q, \"-F\", \"some file\"]\nssh_fleetdeck = %q\n%s",
		filepath.Join(dir, "ssh"), exe, more)
	if err := os.WriteFile(r.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// script writes an executable script of sh to the rig's directory.
func (r *rig) script(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte("#!/bin/sh\n"+strings.ReplaceAll(text, "DIR", r.dir)+"\n"), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func TestAnArgumentReachesAnotherHostByteForByteThroughWhateverShellIsThere(t *testing.T) {
	t.Parallel()
	for _, shell := range remoteShells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("SKIPPED: no %s here", shell)
			}
			r := lone(t, "shift 3\ncd DIR/there && FLEETDECK_STATE=DIR/there exec "+path+" -c \"$*\"", "")
			if err := os.Mkdir(filepath.Join(r.dir, "there"), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, text := range append(hostileTasks, "\xff\xfe not UTF-8", "!history !! ^a^b", "a\\'b\\\\'c") {
				name := "/nowhere/" + strings.ReplaceAll(text, "DIR", r.dir)
				stdout, stderr, code := r.fleetdeck("diff", "--json", "crane:"+name)
				// The other host says of which path it knows nothing.
				if code != 7 || !strings.Contains(stdout, "no such") {
					t.Errorf("%q: exit %d, %s%s", name, code, stdout, stderr)
				}
			}
			repo := r.repo("it's $(touch DIR) `x` \"q\" \\ !\n;")
			if err := os.WriteFile(filepath.Join(repo, "new"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if stdout, stderr, code := r.fleetdeck("diff", "crane:"+repo); code != 0 || !strings.Contains(stdout, "new") {
				t.Errorf("diff of %q: exit %d, %s%s, want the other host's answer", repo, code, stdout, stderr)
			}
			if _, err := os.Stat(filepath.Join(r.dir, "owned")); err == nil {
				t.Error("a shell ran a part of a path")
			}
		})
	}
}

func TestWhatSshComesToIsTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, ssh, more string
		wantCode        int
		want            string
	}{
		{"the other host's exit code", "exit 3", "", 3, ""},
		{"a host that is not reached", "echo no route >&2; exit 255", "", 6, "node crane was not reached by ssh"},
		{"a call that a signal ended", "kill -KILL $$", "", 137, ""},
		{"the name that a node has for ssh", "echo \"to $3\"", "[cluster.hosts]\ncrane = \"kim@crane.lan\"", 0, "to kim@crane.lan"},
		{"the node's own name without one", "echo \"to $3 after $1 $2\"", "", 0, "to crane after -F some file"},
		{"one word for the shell, of plain letters", "case \"$4\" in *[!A-Za-z0-9_./\\ -]*) exit 9;; esac; echo $# words", "", 0, "4 words"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := lone(t, tt.ssh, tt.more).fleetdeck("diff", "crane:/src/$(x) y")
			if code != tt.wantCode || !strings.Contains(stdout+stderr, tt.want) {
				t.Errorf("exit %d, %s%s, want exit %d with %q", code, stdout, stderr, tt.wantCode, tt.want)
			}
		})
	}
}

func TestACommandFromAnotherHostGoesNoFurther(t *testing.T) {
	t.Parallel()
	r := lone(t, "echo gone", "")
	if stdout, stderr, code := r.fleetdeck("diff", "--here", "crane:/src/api"); code != 7 || strings.Contains(stdout, "gone") {
		t.Errorf("exit %d, %s%s, want that it is not found here", code, stdout, stderr)
	}
	r = lone(t, "printf %s \"$4\" > DIR/sent", "")
	r.fleetdeck("diff", "crane:/src/api")
	sent, err := os.ReadFile(filepath.Join(r.dir, "sent"))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(sent))
	if args, err := base64.RawURLEncoding.DecodeString(words[len(words)-1]); err != nil || string(args) != "diff\x00--here\x00--\x00/src/api" {
		t.Errorf("sent %q, %v, want diff with --here", args, err)
	}
	r = lone(t, "exit 0", "")
	if err := os.Remove(filepath.Join(r.dir, "ssh")); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := r.fleetdeck("diff", "crane:/src/api"); code != 6 || !strings.Contains(stderr, "was not reached") {
		t.Errorf("without ssh: exit %d, %s, want exit 6", code, stderr)
	}
}

func TestMembersOfAnotherHostAreSeenToldAndEndedBySsh(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ssh := fmt.Sprintf("ssh = [\"DIR/ssh\"]\nssh_fleetdeck = %q\n", exe) + `
[roles.architect]
may = []
[profiles.types]
command = ["sh", "-c", "stty -echo; echo ready; while read -r line; do printf '%s\\n' \"$line\" >> DIR/typed; echo \"got $line\"; done"]
ready = "pattern:ready"
[profiles.astray]
command = ["sh", "-c", "$FLEETDECK_EXE stop \"$(cat DIR/victim)\" 2> DIR/said; echo $? > DIR/code; exec sleep 600"]
env = ["FLEETDECK_EXE"]
`
	kite, crane := newHost(t, etcd, "kite", ssh), newHost(t, etcd, "crane", ssh)
	to := func(r *rig) string {
		return fmt.Sprintf("[ \"$1\" = -t ] && shift\nexport FLEETDECK_STATE=%s FLEETDECK_CONFIG=%s\nshift\nexec sh -c \"$*\"", r.state, r.config)
	}
	kite.script("ssh", to(crane))
	crane.script("ssh", to(kite))

	tree := crane.repo("it's api")
	out, code := kite.dispatch("crane:"+tree, "--profile", "types", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, out)
	}
	kite.await("kite knows crane's member", func() bool { return len(on(kite, "crane")) == 1 })
	for _, name := range []string{out.Member, out.Member[len(out.Member)-8:], "crane:" + tree} {
		if stdout, stderr, code := kite.fleetdeck("screen", name); code != 0 || !strings.Contains(stdout, "ready") {
			t.Errorf("screen %s: exit %d, %s%s", name, code, stdout, stderr)
		}
	}
	var typed []string
	for i, text := range []string{"$(touch DIR/owned) `touch DIR/owned`; touch DIR/owned", "it's \"so\" \\n -- --help", "-"} {
		text = strings.ReplaceAll(text, "DIR", crane.dir)
		cmd := kite.command("send", out.Member, text)
		if text == "-" {
			text = "from stdin 'quoted'"
			cmd.Stdin = strings.NewReader(text)
		}
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("send: %v: %s", err, said)
		}
		typed = append(typed, text)
		crane.await("the agent got it", func() bool {
			got, _ := os.ReadFile(filepath.Join(crane.dir, "typed"))
			return strings.Count(string(got), "\n") > i
		})
	}
	if got, _ := os.ReadFile(filepath.Join(crane.dir, "typed")); string(got) != strings.Join(typed, "\n")+"\n" {
		t.Errorf("typed %q, want %q", got, typed)
	}
	if stdout, stderr, code := kite.fleetdeck("logs", out.Member); code != 0 || !strings.Contains(stdout, "got from stdin") {
		t.Errorf("logs: exit %d, %s%s", code, stdout, stderr)
	}
	for _, args := range [][]string{{"explain", out.Member}, {"explain", "crane:" + tree}, {"diff", "crane:" + tree}} {
		if stdout, stderr, code := kite.fleetdeck(args...); code != 0 {
			t.Errorf("%v: exit %d, %s%s", args, code, stdout, stderr)
		}
	}
	if stdout, stderr, code := kite.fleetdeck("restart", "--json", "--wait", "--task", "it's $(touch "+crane.dir+"/owned)", out.Member); code != 0 {
		t.Errorf("restart: exit %d, %s%s", code, stdout, stderr)
	}
	again := on(crane, "crane")
	if len(again) != 1 || again[0].ID == out.Member || again[0].Task != "it's $(touch "+crane.dir+"/owned)" {
		t.Fatalf("after its restart crane has %+v, want another with the task", again)
	}
	kite.await("kite knows the new member", func() bool { m := on(kite, "crane"); return len(m) == 1 && m[0].ID == again[0].ID })

	// An agent may do there what it may do here, and no more: not even where ssh lets it in.
	if err := os.WriteFile(filepath.Join(kite.dir, "victim"), []byte(again[0].ID), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := kite.dispatch(kite.repo("astray"), "--profile", "astray", "--wait"); code != 0 {
		t.Fatalf("dispatch on kite: exit %d, %+v", code, out)
	}
	kite.await("the agent has tried", func() bool {
		got, _ := os.ReadFile(filepath.Join(kite.dir, "code"))
		return len(got) > 0
	})
	if got, _ := os.ReadFile(filepath.Join(kite.dir, "code")); string(got) != "3\n" || len(on(crane, "crane")) != 1 {
		said, _ := os.ReadFile(filepath.Join(kite.dir, "said"))
		t.Errorf("an agent that may not stop ended with %q, %q, and crane has %d members", got, said, len(on(crane, "crane")))
	}
	kite.must(nil, "stop", again[0].ID)
	if m := on(crane, "crane"); len(m) != 0 {
		t.Errorf("after its stop from kite crane has %+v", m)
	}
	if _, err := os.Stat(filepath.Join(crane.dir, "owned")); err == nil {
		t.Error("a shell ran a part of a text")
	}
}
