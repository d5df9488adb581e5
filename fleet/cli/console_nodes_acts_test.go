package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet/cluster/etcdrun"
)

// typist is the profile of an agent that writes down each line that it is told, and answers it.
const typist = `
[profiles.types]
command = ["sh", "-c", "stty -echo; echo ready; while read -r line; do printf '%s\\n' \"$line\" >> DIR/typed; echo \"got $line\"; done"]
ready = "pattern:ready"
`

// besides are two hosts of one fleet, of which the first reaches the other: its ssh runs what it is given with the other's state.
func besides(t *testing.T, etcd *etcdrun.Cluster) (kite, crane *rig) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("ssh = [\"DIR/ssh\"]\nssh_fleetdeck = %q\n", exe) + typist
	kite, crane = newHost(t, etcd, "kite", more), newHost(t, etcd, "crane", more)
	kite.script("ssh", fmt.Sprintf("[ \"$1\" = -t ] && shift\nexport FLEETDECK_STATE=%s FLEETDECK_CONFIG=%s\nshift\nexec sh -c \"$*\"", crane.state, crane.config))
	return kite, crane
}

func TestTheConsoleActsOnAMemberOfAnotherHost(t *testing.T) {
	full(t)
	t.Parallel()
	kite, crane := besides(t, etcdrun.Start(t, 1))
	web := crane.committed("web")
	if err := os.WriteFile(filepath.Join(web, "file"), []byte("two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	sent, code := crane.dispatch(web, "--profile", "types", "--wait")
	if code != 0 {
		t.Fatalf("dispatch on crane: exit %d, %+v", code, sent)
	}
	c := kite.open(160, 40)
	typed := func(want string) {
		t.Helper()
		kite.await("the agent got "+want, func() bool {
			got, _ := os.ReadFile(filepath.Join(crane.dir, "typed"))
			return string(got) == want
		})
	}
	done := func(want string) {
		t.Helper()
		c.keys("7")
		c.untilShown("that it is kept", want)
		c.keys("2")
	}
	kite.step("its screen is seen", func(t *testing.T) {
		c.keys("2")
		c.untilShown("the member", `web +crane +`)
		c.untilShown("its screen", `│ ready`)
	})
	kite.step("it is told", func(t *testing.T) {
		c.keys("m")
		c.shows("to dev in crane:")
		c.keys("it's $(not) a shell\r")
		typed("it's $(not) a shell\n")
		c.untilShown("how it ended", `told dev in crane:\S*web: it's`)
		c.untilShown("its answer", `│ got it's`)
		done(`✓ \S+ +send +done`)
	})
	kite.step("it is attached to", func(t *testing.T) {
		c.keys("\r")
		c.shows("ctrl-] detaches")
		c.keys("by hand\r")
		typed("it's $(not) a shell\nby hand\n")
		c.shows("got by hand")
		c.keys("\x1d")
		c.untilShown("the console again", `Members 1 `)
	})
	kite.step("the diff of its tree is shown, both ways", func(t *testing.T) {
		c.keys("d")
		c.shows("Diff of crane:")
		c.shows("+two")
		c.keys("d")
		c.untilShown("why there is no other", `since its branch began[^\n]*\n[^\n]*the branch of \S*web has no upstream`)
		c.keys("\x1b")
		c.untilGone("the diff", "Diff of crane:")
	})
	kite.step("it is explained, and so is its tree", func(t *testing.T) {
		c.keys("x")
		c.untilShown("who says what", `member +`+sent.Member)
		c.keys("x")
		c.untilShown("why its tree is as it is", `is occupied: member `+sent.Member)
		c.keys("\x1b")
		c.untilGone("the explanation", "is occupied: member")
	})
	kite.step("it is restarted, and what that comes to is known", func(t *testing.T) {
		c.keys("T")
		c.shows("Restart this member?")
		c.confirms("Restart this member?")
		c.untilShown("how it ended", `dispatched dev on types to crane:\S*web: it is booting`)
		kite.await("crane has another", func() bool { m := on(kite, "crane"); return len(m) == 1 && m[0].ID != sent.Member })
		done(`(?s)✓ \S+ +restart +done .* tree +crane:\S*web`)
		c.untilShown("the new member", `Members 1 `)
		c.untilShown("its screen", `│ ready`)
		if text := c.text(); strings.Contains(text, "came to nothing") {
			t.Errorf("a restart that came to something is said to have come to nothing:\n%s", text)
		}
	})
	kite.step("it is ended", func(t *testing.T) {
		member := on(kite, "crane")
		if len(member) != 1 {
			t.Fatalf("crane has %+v, want one member", member)
		}
		c.keys("X")
		c.shows("Stop this member?")
		c.confirms("Stop this member?")
		c.untilShown("how it ended", `stopped `+member[0].ID+` in crane:`)
		done(`✓ \S+ +stop +done`)
		if alive := on(crane, "crane"); len(alive) != 0 {
			t.Errorf("crane has %+v, want nobody", alive)
		}
	})
	c.quits()
	c.untouched()
}

func TestAHostThatIsNotReachedIsSaidToBeAndNothingIsDone(t *testing.T) {
	full(t)
	t.Parallel()
	kite, crane := besides(t, etcdrun.Start(t, 1))
	sent, code := crane.dispatch(crane.repo("web"), "--profile", "types", "--wait")
	if code != 0 {
		t.Fatalf("dispatch on crane: exit %d, %+v", code, sent)
	}
	kite.script("ssh", "echo no route >&2; exit 255")
	c := kite.open(160, 40)
	c.keys("2")
	c.untilShown("why there is no screen", `its screen cannot be shown: node crane was not reached`)
	for _, act := range []struct{ key, dialog, want string }{
		{"X", "Stop this member?", `stop ` + sent.Member + `: node crane was not reached by ssh`},
		{"T", "Restart this member?", `refused: node crane was not reached by ssh`},
	} {
		c.keys(act.key)
		c.shows(act.dialog)
		c.confirms(act.dialog)
		c.untilShown("why nothing was done", act.want)
	}
	c.keys("m")
	c.shows("to dev in crane:")
	c.keys("hello\r")
	c.untilShown("why nothing was sent", `message to[^\n]*: node crane was not reached by ssh`)
	c.keys("d")
	c.untilShown("why there is no diff", `Diff of crane:[^\n]*\n[^\n]*node crane was not reached by ssh`)
	c.keys("\x1b")
	if alive := on(crane, "crane"); len(alive) != 1 || alive[0].ID != sent.Member {
		t.Errorf("crane has %+v, want the one member", alive)
	}
	if _, err := os.Stat(filepath.Join(crane.dir, "typed")); err == nil {
		t.Error("the agent was told something")
	}
	c.quits()
	c.untouched()
}

func TestALostHostIsReleasedOnlyByItsNameTypedOnATerminal(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	kite, crane := newHost(t, etcd, "kite"), newHost(t, etcd, "crane")
	sent, code := kite.dispatch(kite.repo("api"), "--role", "architect", "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch on kite: exit %d, %+v", code, sent)
	}
	kite.must(nil, "down")
	crane.await("kite is lost", func() bool { return crane.clusterStatus("kite").State == "lost" })
	console := crane.open(120, 40)
	console.untilShown("how to release it", "HOST LOST · kite · 1 member and 1 tree stay taken · 8 shows them · `fleetdeck release --lost kite`")

	for _, answer := range []struct {
		name, keys string
		wantCode   int
		want       string
	}{
		{"nothing", "\r", 2, "that was not kite: nothing was released"},
		{"yes", "yes\r", 2, "that was not kite: nothing was released"},
		{"another name", "crane\r", 2, "that was not kite: nothing was released"},
		{"a part of the name", "kit\r", 2, "that was not kite: nothing was released"},
		{"the end of the input", "\x04", 2, "that was not kite: nothing was released"},
		{"ctrl+c", "\x03", 2, "nobody typed kite: nothing was released"},
		{"the name", "kite\r", 0, "members of node kite: released"},
	} {
		crane.step(answer.name, func(t *testing.T) {
			c := crane.open(120, 30, "release", "--lost", "kite")
			c.shows("Type the node's name to release all of this:")
			for _, want := range []string{"kite:" + kite.repo("api"), "slot architect-1", "others can be sent beside them"} {
				if !strings.Contains(c.text(), want) {
					t.Errorf("it asks without having said %q:\n%s", want, c.text())
				}
			}
			c.keys(answer.keys)
			c.shows(answer.want)
			<-c.ends // its terminal
			c.cmd.Wait()
			if got := c.cmd.ProcessState.ExitCode(); got != answer.wantCode || !strings.Contains(c.text(), answer.want) {
				t.Errorf("exit %d, want %d with %q:\n%s", got, answer.wantCode, answer.want, c.text())
			}
			wantTrees := 1
			if answer.wantCode == 0 {
				wantTrees = 0
			}
			if n := crane.clusterStatus("kite").Trees; n != wantTrees {
				t.Errorf("kite holds %d trees, want %d", n, wantTrees)
			}
		})
	}
	console.untilGone("what is lost", "HOST LOST")
	console.quits()
}
