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
		name                   string
		own, least, took, want time.Duration
		boot                   string
	}{
		{"less than a whole second", 900 * time.Millisecond, 0, 0, 900 * time.Millisecond, "one"},
		{"between two seconds", 1700 * time.Millisecond, time.Second, 0, 1700 * time.Millisecond, "one"},
		{"an answer that took its time", 1050 * time.Millisecond, 0, 100 * time.Millisecond, 1050 * time.Millisecond, "one"},
		{"a lease that was kept longer", 900 * time.Millisecond, 3 * time.Second, 0, 900 * time.Millisecond, "one"},
		{"a grace that is over", -time.Millisecond, 0, 0, -time.Millisecond, "one"},
		{"a host that stood still", 5 * time.Second, time.Second, 0, time.Second, "one"},
		{"another boot", 900 * time.Millisecond, 0, 0, 0, "another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &hold{ID: "r", Deadline: fleet.DeadlineAfter(fleet.Instant{Wall: now.Wall, Mono: now.Mono, Boot: c.boot}, c.own)}
			e := h.entry(fleet.Tree{Path: "/src/api"}, remains{now, c.least, c.least + time.Second + c.took})
			if got := e.Remaining(now); got != c.want {
				t.Errorf("%s remain, want %s", got, c.want)
			}
		})
	}
}
