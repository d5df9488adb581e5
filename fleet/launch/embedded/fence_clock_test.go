package embedded

import (
	"errors"
	"testing"
	"time"

	"fleetdeck/fleet/launch/process"
)

// TestAFenceThatIsOverByTheClockIsOver is the moment at which a holder wakes: it is told to go on before anybody in it has looked.
func TestAFenceThatIsOverByTheClockIsOver(t *testing.T) {
	now, ok := process.Awake()
	if !ok {
		t.Fatal("no clock tells how long this boot lasts")
	}
	h := &holder{fence: fence{set: true, until: now - 1}}
	if err := h.setFence(now + time.Hour); !errors.Is(err, errFenced) || h.fence.until != now-1 {
		t.Errorf("moved on: %v, to %s, want %v", err, h.fence.until, errFenced)
	}
}
