package cluster

import (
	"testing"
	"time"

	"fleetdeck/fleet"
)

// A lease is told in whole seconds: who went by that alone would call a grace over up to a second before it is.
func TestTheEndOfAGraceIsExactToTheHostThatReserved(t *testing.T) {
	now := fleet.Instant{Wall: time.Unix(1000, 0), Mono: time.Minute, Boot: "one"}
	for _, c := range []struct {
		name            string
		own, left, want time.Duration
		boot            string
	}{
		{"less than a whole second", 900 * time.Millisecond, 0, 900 * time.Millisecond, "one"},
		{"between two seconds", 1700 * time.Millisecond, time.Second, 1700 * time.Millisecond, "one"},
		{"a lease that was kept longer", 900 * time.Millisecond, 3 * time.Second, 900 * time.Millisecond, "one"},
		{"a grace that is over", -time.Millisecond, 0, -time.Millisecond, "one"},
		{"a host that stood still", 5 * time.Second, time.Second, time.Second, "one"},
		{"another boot", 900 * time.Millisecond, 0, 0, "another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &hold{ID: "r", Deadline: fleet.DeadlineAfter(fleet.Instant{Wall: now.Wall, Mono: now.Mono, Boot: c.boot}, c.own)}
			e := h.entry(fleet.Tree{Path: "/src/api"}, now, c.left)
			if got := e.Remaining(now); got != c.want {
				t.Errorf("%s remain, want %s", got, c.want)
			}
		})
	}
}
