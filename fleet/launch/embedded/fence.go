package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
)

// fenceLook is how often the clock is looked at: timers stand still while the machine sleeps, and that clock does not.
const fenceLook = 100 * time.Millisecond

var (
	errFenced  = errors.New("the agent's fence is over")
	errNoClock = errors.New("no clock of this system tells when a fence is over")
)

// fence is until when the agent may go on without another word. It is kept in memory only: an agent never outlives its holder
// for long, and no disk is waited for where it must end.
//
//	none ──set──► standing ──its moment──► over
//	               └─ moved ─┘
//
// Over is final: whoever comes late finds the agent ended.
type fence struct {
	set, over bool
	until     time.Duration
}

// setFence fences the agent, or moves the fence on. One that is over by the clock is over, even where nobody has looked yet.
func (h *holder) setFence(until time.Duration) error {
	now, ok := process.Awake()
	if !ok {
		return errNoClock
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ending, h.rec.Exit != nil:
		return errEnded
	case h.fence.set && now >= h.fence.until:
		return errFenced
	case now >= until:
		return fmt.Errorf("a fence of %s ago is none", now-until)
	}
	h.fence.until = max(h.fence.until, until)
	if !h.fence.set {
		h.fence.set = true
		go h.keepFence()
	}
	return nil
}

// keepFence ends the agent once its fence is over. It does that by itself: nothing that another end of the agent waits for, be it a
// disk or its patience, is waited for.
func (h *holder) keepFence() {
	for {
		left := h.fenceLeft()
		if left <= 0 {
			break
		}
		select {
		case <-h.recorded:
			return
		case <-time.After(min(left, fenceLook)):
		}
	}
	self := h.status().Holder
	for {
		err := process.EndTree(context.Background(), self, marker(h.spec.ID), fleet.FencePatience)
		if err == nil {
			return
		}
		fmt.Fprintf(os.Stderr, "fleetdeck holder: the fence is over: %v\n", err)
		time.Sleep(100 * time.Millisecond)
	}
}

// fenceLeft is what is left of the fence. With nothing left it is over, and nothing confirms the agent any more. A clock that tells nothing
// ends it too.
func (h *holder) fenceLeft() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, ok := process.Awake()
	if left := h.fence.until - now; ok && left > 0 {
		return left
	}
	h.ending = true
	select {
	case <-h.agentEnded: // by itself: only what it left behind is ended
	default:
		h.fence.over = true
	}
	return 0
}

// fenceOver reports whether it was the fence that ended the agent.
func (h *holder) fenceOver() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fence.over
}
