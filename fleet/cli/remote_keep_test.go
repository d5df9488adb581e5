package cli_test

import (
	"os/exec"
	"syscall"
	"testing"

	"fleetdeck/fleet/cluster/etcdrun"
	"fleetdeck/fleet/keeper"
)

const leftToTests = `
[keeper]
in_daemon = false
interval = "200ms"
backoff = "200ms"
backoff_max = "200ms"
crashes = 1000
`

// keepOn starts a keeper on r, which ends with the test.
func keepOn(r *rig) *exec.Cmd {
	r.t.Helper()
	cmd := r.command("keep")
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

// keptBy is the process that keeps the fleet, by r's word.
func keptBy(r *rig) int {
	r.t.Helper()
	var s struct{ Keeper struct{ Pid int } }
	r.must(&s, "status")
	return s.Keeper.Pid
}

// staffRows are what the fleet's keeper keeps, by r's word.
func staffRows(r *rig) map[string]keeper.Row {
	r.t.Helper()
	var s keeper.Status
	r.must(&s, "keep", "--status")
	rows := map[string]keeper.Row{}
	for _, row := range s.Staff {
		rows[row.Tree] = row
	}
	return rows
}

func TestOneKeeperKeepsTheTreesOfAllHostsAndOneThatWasPausedChangesNothing(t *testing.T) {
	full(t)
	t.Parallel()
	etcd := etcdrun.Start(t, 1)
	staff := "[[staff]]\ntree = \"DIR/src/api\"\nprofile = \"worker\"\nrestart = \"always\"\n"
	kite := newHost(t, etcd, "kite", staff, leftToTests)
	crane := newHost(t, etcd, "crane", staff, leftToTests)
	api, web := "kite:"+kite.repo("api"), "crane:"+crane.repo("api")

	first := keepOn(kite)
	kite.await("kite's keeper is elected", func() bool { return keptBy(crane) == first.Process.Pid })
	second := keepOn(crane)
	kite.await("both hosts' trees are staffed", func() bool { return len(on(kite, "kite")) == 1 && len(on(crane, "crane")) == 1 })
	if got := keptBy(crane); got != first.Process.Pid {
		t.Fatalf("crane is staffed, and the keeper is %d, want kite's %d", got, first.Process.Pid)
	}
	attempt := staffRows(crane)[api].Reservation

	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	kite.await("crane's keeper is elected", func() bool { return keptBy(kite) == second.Process.Pid })
	crane.must(nil, "stop", on(crane, "crane")[0].ID)
	crane.await("the keeper that was elected goes on", func() bool { return len(crane.starts()) == 2 && len(on(crane, "crane")) == 1 })
	if row := staffRows(kite)[api]; row.Tree != "" {
		t.Errorf("kite's keeper is paused, and %+v is kept", row)
	}

	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	kite.await("kite stands for election again", func() bool { return staffRows(crane)[api].State == "running" })
	if got := keptBy(kite); got != second.Process.Pid {
		t.Errorf("once kite's is back the keeper is %d, want crane's %d", got, second.Process.Pid)
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	second.Wait()
	kite.await("kite's keeper is elected again", func() bool { return keptBy(crane) == first.Process.Pid })
	kite.must(nil, "stop", on(kite, "kite")[0].ID)
	kite.await("kite's keeper goes on", func() bool { return len(kite.starts()) == 2 })
	if n := len(crane.starts()); n != 2 {
		t.Errorf("crane's tree was staffed %d times, want twice", n)
	}
	if row := staffRows(kite)[api]; row.Reservation == attempt {
		t.Errorf("kite's member was stopped and staffed again, and its row is %+v", row)
	}
	if row := staffRows(kite)[web]; row.Tree != "" {
		t.Errorf("crane's keeper has ended, and %+v is kept", row)
	}
}
