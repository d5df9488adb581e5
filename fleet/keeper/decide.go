package keeper

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
)

// steady is how long an agent must have lived for its failure to be the first in a row again.
const steady = time.Minute

// memory is what the keeper remembers of one [[staff]] entry: a line of keeper.json.
//
//	           id written        accepted            it ended well
//	open ──────────────────► sent ─────────► running ──────────────► open, or done
//	 ▲   ◄──────────────────  │                 │ failed
//	 │    provably not sent   │ refused         ▼
//	 └────────────────────────┴────────────► waiting ──(crashes in a row)──► broken
//	                 back-off is over                       reset by hand ──► open
//
// An attempt stands from before anybody is asked until it is known what became of it, so that a crash forgets none.
type memory struct {
	// Order is the fingerprint of what is asked for. A changed order begins anew.
	Order string `json:"order"`
	// Attempt is the id of the reservation that the last dispatch used, empty once it is over.
	Attempt     string    `json:"attempt,omitempty"`
	AttemptedAt time.Time `json:"attempted_at,omitzero"`
	// Accepted says that the daemon took the attempt: it was started, whatever is remembered of it later.
	Accepted bool `json:"accepted,omitempty"`
	// Ran says that an agent was started for this order; EndedWell that the last one exited with 0.
	Ran       bool `json:"ran,omitempty"`
	EndedWell bool `json:"ended_well,omitempty"`
	// Failures counts those in a row; NotBefore ends the back-off after the last.
	Failures  int            `json:"failures,omitempty"`
	NotBefore fleet.Deadline `json:"not_before,omitzero"`
	// Broken says that there were too many: nothing is tried until somebody resets it.
	Broken bool `json:"broken,omitempty"`
	// Last is why the last attempt failed, for people.
	Last string `json:"last,omitempty"`
}

// fate is what became of an attempt.
type fate int

const (
	unsent    fate = iota // there was none, or it was provably never accepted and never will be
	pending               // its reservation stands, and the daemon has not accepted it yet
	running               // it is a launch, or a live member
	ended                 // it was a member
	failed                // it was a launch and never a member
	forgotten             // it is too long ago for anybody to know
)

// outcome is the fate of an attempt with what decisions need of it.
type outcome struct {
	fate fate
	// code is the exit code of an ended member, nil where nobody knows.
	code *int
	// lived is how long it ran, or runs.
	lived time.Duration
	why   string
}

// action is what is to be done about an entry.
type action string

const (
	actStart   action = "start"
	actHold    action = "hold"   // somebody of ours is there, or on the way
	actWait    action = "wait"   // the back-off is not over
	actBroken  action = "broken" // it failed too often
	actDone    action = "done"   // its policy asks for no other
	actCapped  action = "capped" // enough launches are under way
	actTaken   action = "taken"  // somebody else is in the tree
	actRefused action = "refused"
	actUnknown action = "unknown" // nobody knows yet whether it was started
	actGiveUp  action = "give_up"
)

// limits are what decisions keep to.
type limits struct {
	crashes    int
	backoff    time.Duration
	backoffMax time.Duration
	// rand gives a number in [0, 1).
	rand func() float64
}

// decide says what to do about an entry: given what is asked for, what is remembered, and what became of the attempt that
// m names. It returns what is to be remembered from now on. It is pure but for the jitter.
func decide(want config.Staff, m memory, last outcome, now fleet.Instant, lim limits) (memory, action) {
	if order := fingerprint(want); m.Order != order {
		if last.fate == pending || last.fate == running {
			return m, actHold // the old order, to its end
		}
		m, last = memory{Order: order}, outcome{} // how that ended says nothing of the new one
	}
	switch last.fate {
	case pending:
		return m, actHold
	case running:
		m.Accepted, m.Ran, m.EndedWell = true, true, false
		if last.lived >= steady {
			m.Failures, m.Last = 0, ""
		}
		return m, actHold
	case unsent:
		m = m.over()
	default:
		m = m.over()
		m.Ran = true
		if last.fate == ended && last.code != nil && *last.code == 0 {
			m.EndedWell, m.Failures, m.Last = true, 0, ""
			m.NotBefore = fleet.DeadlineAfter(now, lim.pause(1)) // one that always ends at once does not spin
			break
		}
		if last.lived >= steady {
			m.Failures = 0
		}
		m = m.failed(last.why, now, lim)
	}
	switch {
	case m.Ran && want.Restart == "never", m.EndedWell && want.Restart == "on-failure":
		return m, actDone
	case m.Broken:
		return m, actBroken
	case m.waits(now, lim) > 0:
		return m, actWait
	}
	return m, actStart
}

// over is m without an attempt.
func (m memory) over() memory {
	m.Attempt, m.AttemptedAt, m.Accepted = "", time.Time{}, false
	return m
}

// failed counts a failure, and opens the breaker at the last one that is allowed.
func (m memory) failed(why string, now fleet.Instant, lim limits) memory {
	m.Failures++
	m.Last, m.EndedWell = why, false
	m.Broken = m.Failures >= lim.crashes
	m.NotBefore = fleet.DeadlineAfter(now, lim.pause(m.Failures))
	return m
}

// waits is what is left of the back-off.
func (m memory) waits(now fleet.Instant, lim limits) time.Duration {
	return waits(m.NotBefore, now, lim)
}

// waits is the time until d. One that is farther away than any back-off comes of a clock that was set back.
func waits(d fleet.Deadline, now fleet.Instant, lim limits) time.Duration {
	if d.Wall.IsZero() {
		return 0
	}
	left := d.Remaining(now)
	if left < 0 || left > lim.backoffMax {
		return 0
	}
	return left
}

// pause is the back-off after so many failures in a row: doubled with each, and somewhere in the upper half, so that what
// failed together does not come back together.
func (lim limits) pause(failures int) time.Duration {
	d := lim.backoff
	for range failures - 1 {
		if d *= 2; d >= lim.backoffMax {
			d = lim.backoffMax
			break
		}
	}
	return d/2 + time.Duration(lim.rand()*float64(d/2))
}

// fingerprint names what is asked for, so that a mended entry is not held to the failures of the broken one.
func fingerprint(want config.Staff) string {
	h := sha256.New()
	for _, s := range []string{want.Role, want.Profile, want.Task} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
