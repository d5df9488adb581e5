package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"fleetdeck/fleet/launch/process"
)

func init() {
	roles["awake"] = func() {
		now, ok := process.Awake()
		fmt.Println(int64(now), ok)
		os.Exit(0)
	}
}

func TestAllProcessesOfAHostAgreeHowLongItIsAwake(t *testing.T) {
	for _, offset := range []string{"3600", "-600"} {
		ns := func(argv ...string) ([]byte, error) {
			cmd := exec.Command("unshare", append([]string{"--time", "--boottime", offset}, argv...)...)
			cmd.Env = append(os.Environ(), roleEnv+"=awake")
			return cmd.CombinedOutput()
		}
		if out, err := ns("true"); err != nil {
			t.Skipf("SKIPPED: no time namespaces here: %v: %s", err, out)
		}
		before, known := process.Awake()
		out, err := ns(os.Args[0])
		after, _ := process.Awake()
		var there int64
		var ok bool
		if _, serr := fmt.Sscan(string(out), &there, &ok); err != nil || serr != nil || !ok || !known {
			t.Fatalf("%s: %v, %v", out, err, serr)
		}
		if at := time.Duration(there); at < before || at > after {
			t.Errorf("%s s away it is awake for %s, want between %s and %s", offset, at, before, after)
		}
	}
}

func TestSleepCountsAsTimeAwake(t *testing.T) {
	mono := process.Now().Mono
	if awake, ok := process.Awake(); !ok || awake < mono {
		t.Errorf("awake for %s, %t, want at least %s, which leaves sleep out", awake, ok, mono)
	}
}
