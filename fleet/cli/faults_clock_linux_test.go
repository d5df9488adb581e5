package cli_test

import (
	"encoding/json"
	"os/exec"
	"testing"

	"fleetdeck/fleet"
)

// TestAnotherTimeNamespaceChangesNoGrace runs commands where the monotonic clock is an hour ahead, or behind.
func TestAnotherTimeNamespaceChangesNoGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	tree := r.repo("api")
	r.must(nil, "reserve", tree, "--profile", "worker", "--grace", "10m")
	for _, offset := range []string{"3600", "-3600"} {
		elsewhere := func(args ...string) []byte {
			cmd := r.command(args...)
			cmd = exec.Command("unshare", append([]string{"--time", "--monotonic", offset, cmd.Path}, cmd.Args[1:]...)...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %v: %s", cmd.Args, err, out)
			}
			return out
		}
		if out, err := exec.Command("unshare", "--time", "--monotonic", offset, "true").CombinedOutput(); err != nil { // a kernel without them, or a user who may not make one
			t.Skipf("SKIPPED: no time namespaces here: %v: %s", err, out)
		}
		var report fleet.PruneReport
		if err := json.Unmarshal(elsewhere("prune", "--json"), &report); err != nil || report.Kept != 1 {
			t.Errorf("prune %s s away: %+v, %v, want the reservation kept", offset, report, err)
		}
		var rows []fleet.ReservationRow
		if err := json.Unmarshal(elsewhere("reservations", "--json"), &rows); err != nil || len(rows) != 1 || rows[0].RemainingS > 600 {
			t.Errorf("reservations %s s away: %+v, %v, want 600 s left at most", offset, rows, err)
		}
		if out, code := r.dispatch(tree, "--profile", "worker"); code != 3 || out.Code != fleet.CodeTreeReserved {
			t.Errorf("dispatch: exit %d, %+v, want 3, tree_reserved", code, out)
		}
		// And what is reserved there ends here when it should.
		other := r.repo("from" + offset)
		elsewhere("reserve", other, "--profile", "worker", "--grace", "10m")
		for _, row := range r.reservations() {
			if row.RemainingS <= 0 || row.RemainingS > 600 {
				t.Errorf("%s has %v s left, want between 0 and 600", row.Tree, row.RemainingS)
			}
		}
		r.must(nil, "release", other)
	}
}
