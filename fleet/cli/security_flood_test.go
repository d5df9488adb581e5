package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
)

// peak is the most memory that a process has had resident, in bytes.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("the system tells no memory of a process: %v", err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(string(status))
	if m == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kb, _ := strconv.Atoi(m[1])
	return kb << 10
}

// A member that prints without end costs a bounded amount of memory and disk, also where somebody looks at it and somebody else has
// stopped reading its log, and the others are served.
func TestAFloodOfOutputCostsBoundedMemoryAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, agents+`
[profiles.flood]
command = ["yes", "a line of output that is as long as such lines are, with some \u001b[31mcolour\u001b[m in it \u001b]0;title\u0007"]
`)
	r.must(nil, "up")
	flood, code := r.dispatch(r.repo("flood"), "--profile", "flood", "--wait")
	other, code2 := r.dispatch(r.repo("other"), "--profile", "worker", "--wait")
	if code != 0 || code2 != 0 {
		t.Fatalf("exits %d and %d", code, code2)
	}
	// One who follows its log and does not read.
	deaf := r.command("logs", flood.Member, "-f", "--raw")
	if _, err := deaf.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := deaf.Start(); err != nil {
		t.Fatal(err)
	}
	defer deaf.Wait()
	defer deaf.Process.Kill()

	dir := filepath.Join(r.state, "members", flood.Member)
	term, err := embedded.New("").Find(t.Context(), flood.Member, dir)
	if err != nil {
		t.Fatal(err)
	}
	const much = 64 << 20
	var status launch.Status
	looks := 0
	r.await("64 MB are printed", func() bool {
		if looks++; looks%10 == 1 {
			for _, args := range [][]string{{"screen", flood.Member}, {"screen", other.Member}, {"members"}} {
				if _, stderr, code := r.fleetdeck(args...); code != 0 {
					t.Fatalf("%v during the flood: exit %d: %s", args, code, stderr)
				}
			}
		}
		if status, err = term.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		return status.Output > much
	})
	if who, code := r.as(r.identity(other.Member), "whoami", "--json"); code != 0 || !strings.Contains(who, other.Member) {
		t.Errorf("whoami during the flood: exit %d: %s", code, who)
	}
	// Race detectors and busy machines blow these up some times; without a bound they would be as much as was printed, and more.
	if holder := peak(t, status.Holder.Pid); holder > much {
		t.Errorf("the holder took %d MB", holder>>20)
	}
	if daemon := peak(t, r.daemonPid()); daemon > 5*much {
		t.Errorf("the daemon took %d MB", daemon>>20)
	}
	t.Logf("after %d MB: holder %d MB, daemon %d MB", status.Output>>20, peak(t, status.Holder.Pid)>>20, peak(t, r.daemonPid())>>20)
	size := int64(0)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
	}
	if size > 10<<20 {
		t.Errorf("the member's directory holds %d MB", size>>20)
	}
	r.must(nil, "stop", flood.Member)
}
