package fleet_test

import (
	"testing"
	"time"

	"fleetdeck/fleet"
)

// TestAFencedAgentIsGoneBeforeItsSlotIs takes every span of whole tenths of a second.
func TestAFencedAgentIsGoneBeforeItsSlotIs(t *testing.T) {
	taken := 0
	for span := time.Duration(0); span <= 20*time.Second; span += 100 * time.Millisecond {
		if fleet.CheckFence(span) != nil {
			continue
		}
		taken++
		if left := fleet.FenceLease - span - fleet.FenceEnd; left <= fleet.FenceMargin {
			t.Errorf("a span of %s leaves %s until the slot is given away, want more than %s", span, left, fleet.FenceMargin)
		}
		if span < fleet.FenceLeast {
			t.Errorf("a span of %s was taken", span)
		}
	}
	if taken == 0 || fleet.CheckFence(fleet.FenceUsual) != nil || fleet.FencePatience >= fleet.FenceEnd {
		t.Errorf("%d spans can be, and the usual one: %v", taken, fleet.CheckFence(fleet.FenceUsual))
	}
}
