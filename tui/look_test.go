package tui

import (
	"os"
	"testing"
	"time"

	"fleetdeck/fleet"
)

// TestLook shows the console over the example fleet on the terminal, for a person to look at: it runs only where
// FLEETDECK_LOOK is set.
func TestLook(t *testing.T) {
	if os.Getenv("FLEETDECK_LOOK") == "" {
		t.Skip("set FLEETDECK_LOOK=1 and run the compiled test on a terminal to look at the console")
	}
	start := time.Now()
	now := func() fleet.Instant {
		return fleet.Instant{Wall: time.Now(), Mono: time.Since(start), Boot: testBoot, Host: "kite"}
	}
	f := newFake(example(now()))
	f.now = now
	f.screens["01JEABCD0001"] = apiScreen()
	f.plan = examplePlan()
	if err := Run(t.Context(), f, Options{Home: home}); err != nil {
		t.Fatal(err)
	}
}

func examplePlan() fleet.PruneReport {
	return fleet.PruneReport{Kept: 2, Pruned: []fleet.Pruned{{Tree: home + "/src/old", ID: "r4-01JEZZ", Reason: fleet.VerdictExpired}}}
}
