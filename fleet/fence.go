package fleet

import (
	"fmt"
	"time"
)

// The spans of a fence. A member that fills a slot can be fenced: its terminal ends it by itself once nobody has confirmed for a span that
// the slot is held, and only after that does the ledger give the slot away.
//
//	asked ───────── span ─────────► TERM ── FencePatience ──► KILL ──► gone    free
//	  └───────────────────────── FenceLease, or more ────────────────────────────┘
const (
	// FenceLease is how long what is held stays held after the ledger was last asked to keep it, at the least.
	FenceLease = 15 * time.Second
	// FencePatience is what a fenced agent has between TERM and KILL, FenceEnd what its end may take in all.
	FencePatience = time.Second
	FenceEnd      = 2 * time.Second
	// FenceMargin is what must be left when the agent is gone: for a machine that is slow, and clocks that do not run alike.
	FenceMargin = 2 * time.Second
	// FenceLeast is the shortest span: etcd chooses a new leader in less.
	FenceLeast = 3 * time.Second
	// FenceUsual is the span of those that are fenced and whose fleet fences nobody any more.
	FenceUsual = 5 * time.Second
)

// CheckFence says why a span cannot be that of a fence.
func CheckFence(span time.Duration) error {
	switch all := span + FenceEnd + FenceMargin; {
	case span < FenceLeast:
		return fmt.Errorf("%s is shorter than %s: a change of etcd's leader would end members", span, FenceLeast)
	case all >= FenceLease:
		return fmt.Errorf("%s is too long: with %s to end the agent and a margin of %s that is %s, and etcd gives the slot away after %s: use less than %s",
			span, FenceEnd, FenceMargin, all, FenceLease, FenceLease-FenceEnd-FenceMargin)
	}
	return nil
}
