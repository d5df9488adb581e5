package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/client"
)

func TestAnAgentOverSeveralTreesHoldsAllOfThemOrNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, "roots = [\"src\"]\n"+agents+`
[profiles.tells]
command = ["sh", "-c", "echo \"$FLEETDECK_ALSO\" > also; exec sleep 600"]
`)
	r.must(nil, "up")
	main, lib, web := r.repo("main"), r.repo("lib"), r.repo("web")
	out, code := r.dispatch(main, "--profile", "tells", "--also", filepath.Join(lib, "sub"), "--also", web, "--wait")
	if code != 0 {
		t.Fatalf("exit %d, %+v", code, out)
	}
	for _, path := range []string{main, lib, web} {
		if row := r.tree(path); row.Occupancy != fleet.Taken || row.Member != out.Member {
			t.Errorf("%+v, want held by %s", row, out.Member)
		}
		if got, code := r.dispatch(path, "--profile", "worker"); code != 3 || got.Code != fleet.CodeTreeOccupied {
			t.Errorf("dispatch to %s: exit %d, %+v", path, code, got)
		}
	}
	r.await("the agent knows its trees", func() bool {
		told, _ := os.ReadFile(filepath.Join(main, "also"))
		return string(told) == lib+"\n"+web+"\n"
	})
	r.kill() // the next daemon knows it too
	r.must(nil, "up")
	if row := r.tree(lib); row.Member != out.Member {
		t.Errorf("after another daemon: %+v", row)
	}
	r.await("no reservation is left", func() bool { return len(r.reservations()) == 0 })

	free := r.repo("free")
	if got, code := r.dispatch(free, "--profile", "worker", "--also", web); code != 3 || got.Code != fleet.CodeTreeOccupied || !strings.Contains(got.Message, web) {
		t.Errorf("one of them taken: exit %d, %+v", code, got)
	}
	if row := r.tree(free); row.Occupancy != fleet.Free || len(r.reservations()) > 0 {
		t.Errorf("after that: %+v, %+v", row, r.reservations())
	}
	if stdout, stderr, code := r.fleetdeck("dispatch", free, "--profile", "worker", "--also", filepath.Join(free, "sub")); code != 2 {
		t.Errorf("the same tree twice: exit %d: %s%s", code, stdout, stderr)
	}

	r.must(&out, "restart", out.Member)
	r.awaitOccupancy(lib, fleet.Taken)
	r.must(nil, "stop", out.Member)
	for _, path := range []string{main, lib, web} {
		if row := r.tree(path); row.Occupancy != fleet.Free {
			t.Errorf("after its end: %+v", row)
		}
	}
}

func TestAFailedLaunchOverSeveralTreesGivesAllBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	main, lib := r.repo("main"), r.repo("lib")
	for _, profile := range []string{"dies", "missing"} {
		if out, code := r.dispatch(main, "--profile", profile, "--also", lib, "--wait"); code != 3 || out.Code != fleet.CodeLaunchFailed {
			t.Errorf("%s: exit %d, %+v", profile, code, out)
		}
		r.await("all is given back", func() bool { return len(r.reservations()) == 0 && !r.anyReserved() })
	}
}

func TestTheDaemonAdmitsNobodyOfWhomOneReservationIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	main, lib := r.repo("main"), r.repo("lib")
	var out fleet.Outcome
	r.must(&out, "reserve", main, "--profile", "worker")
	c := client.New(filepath.Join(r.state, "fleetd.sock"), "")
	req := api.Spawn{Reservation: out.Reservation, Tree: main, Role: "dev", Profile: "worker", Also: []string{lib}}
	if _, err := c.Spawn(t.Context(), req); fleet.RefusalOf(err) == nil || fleet.RefusalOf(err).Code != fleet.CodeReservationStale {
		t.Errorf("spawn: %v", err)
	}
	r.must(&out, "reserve", lib, "--profile", "worker") // another's
	if _, err := c.Spawn(t.Context(), req); fleet.RefusalOf(err) == nil || fleet.RefusalOf(err).Code != fleet.CodeReservationStale {
		t.Errorf("spawn: %v", err)
	}
	if got := r.starts(); len(got) > 0 {
		t.Errorf("%v were started", got)
	}
}

func TestOfManyDispatchesOverTheSameTreesOneHasThemAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, "roots = [\"src\"]\n"+strings.Replace(agents, `lock_wait = "10s"`, `lock_wait = "25s"`, 1))
	r.must(nil, "up")
	trees := []string{r.repo("a"), r.repo("b"), r.repo("c")}
	codes := make([]int, 9)
	var all sync.WaitGroup
	for i := range codes { // each begins with another of them
		cmd := r.command("dispatch", trees[i%3], "--profile", "worker", "--also", trees[(i+1)%3], "--also", trees[(i+2)%3])
		all.Go(func() {
			out, _ := cmd.CombinedOutput()
			if codes[i] = cmd.ProcessState.ExitCode(); codes[i] != 0 && codes[i] != 3 {
				t.Errorf("exit %d: %s", codes[i], out)
			}
		})
	}
	all.Wait()
	if count(codes, 0) != 1 {
		t.Errorf("exit codes %v, want one 0", codes)
	}
	r.await("it is listed", func() bool { return len(r.alive()) == 1 })
	var holders []string
	for _, path := range trees {
		holders = append(holders, r.tree(path).Member)
	}
	if len(slices.Compact(holders)) != 1 || holders[0] == "" {
		t.Errorf("the trees are held by %q", holders)
	}
}
