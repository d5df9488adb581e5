package cli_test

import (
	"os/exec"
	"testing"
)

// TestAConsoleThatIsToldNothingLooksByItself uses up what a machine has of inotify: for a user namespace it can be made nothing.
func TestAConsoleThatIsToldNothingLooksByItself(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"max_inotify_instances", "max_inotify_watches"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			limit := `echo 0 > /proc/sys/user/` + what + ` && exec "$@"`
			if out, err := exec.Command("unshare", "--user", "--map-root-user", "sh", "-c", limit, "sh", "true").CombinedOutput(); err != nil {
				t.Skipf("SKIPPED: no user namespace with a limit of its own here: %v: %s", err, out)
			}
			r := newRig(t, agents)
			r.must(nil, "up")
			cmd := r.command("--no-color")
			c := r.in(120, 40, exec.Command("unshare", append([]string{"--user", "--map-root-user", "sh", "-c", limit, "sh", cmd.Path}, cmd.Args[1:]...)...))
			c.shows("daemon up")
			tree := r.repo("written-elsewhere")
			r.must(nil, "reserve", tree, "--profile", "worker")
			c.shows("written-elsewhere")
			if out, code := r.dispatch(r.repo("staffed-elsewhere"), "--profile", "worker", "--wait"); code != 0 {
				t.Errorf("dispatch: exit %d, %+v", code, out)
			}
			c.shows("staffed-elsewhere")
			c.quits()
			c.whole()
		})
	}
}
