package keeper

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
)

var (
	now   = fleet.Instant{Wall: time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC), Mono: time.Hour, Boot: "b1", Host: "kite"}
	early = limits{crashes: 3, backoff: time.Second, backoffMax: time.Minute, rand: func() float64 { return 0 }}
)

func after(d time.Duration) fleet.Instant {
	at := now
	at.Wall, at.Mono = at.Wall.Add(d), at.Mono+d
	return at
}

func wanting(restart string) config.Staff {
	return config.Staff{Tree: "/src/api", Role: "dev", Profile: "shell", Task: "work", Restart: restart}
}

// remembered is the memory of an entry as it is wanted here, with edits.
func remembered(edit func(*memory)) memory {
	m := memory{Order: fingerprint(wanting(""))}
	edit(&m)
	return m
}

func code(n int) *int { return &n }

func TestDecideStartsWhatIsAskedForAndNothingElse(t *testing.T) {
	sent := remembered(func(m *memory) { m.Attempt = "r1" })
	accepted := remembered(func(m *memory) { m.Attempt, m.Accepted, m.Ran = "r1", true, true })
	twice := remembered(func(m *memory) { m.Attempt, m.Accepted, m.Ran, m.Failures = "r1", true, true, 2 })
	well := outcome{fate: ended, code: code(0), lived: time.Second}
	badly := outcome{fate: ended, code: code(9), lived: time.Second, why: "9"}
	for _, tt := range []struct {
		name    string
		m       memory
		last    outcome
		never   action
		onFail  action
		always  action
		failing int // failures in a row afterwards
	}{
		{"never tried", memory{}, outcome{}, actStart, actStart, actStart, 0},
		{"provably not sent", sent, outcome{}, actStart, actStart, actStart, 0},
		{"its reservation stands", sent, outcome{fate: pending}, actHold, actHold, actHold, 0},
		{"it runs", sent, outcome{fate: running}, actHold, actHold, actHold, 0},
		{"it runs after failures", twice, outcome{fate: running, lived: time.Second}, actHold, actHold, actHold, 2},
		{"it runs steadily after failures", twice, outcome{fate: running, lived: steady}, actHold, actHold, actHold, 0},
		{"it ended well", accepted, well, actDone, actDone, actWait, 0},
		{"it ended well after failures", twice, well, actDone, actDone, actWait, 0},
		{"it ended badly", accepted, badly, actDone, actWait, actWait, 1},
		{"nobody knows its code", accepted, outcome{fate: ended}, actDone, actWait, actWait, 1},
		{"it failed to launch", sent, outcome{fate: failed}, actDone, actWait, actWait, 1},
		{"nobody remembers", sent, outcome{fate: forgotten}, actDone, actWait, actWait, 1},
		{"the last failure that is allowed", twice, badly, actDone, actBroken, actBroken, 3},
		{"a failure after a long life", twice, outcome{fate: ended, code: code(9), lived: steady}, actDone, actWait, actWait, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for restart, want := range map[string]action{"never": tt.never, "on-failure": tt.onFail, "always": tt.always} {
				m, got := decide(wanting(restart), tt.m, tt.last, now, early)
				if got != want {
					t.Errorf("%s: decide = %s, want %s", restart, got, want)
				}
				if m.Failures != tt.failing {
					t.Errorf("%s: %d failures, want %d", restart, m.Failures, tt.failing)
				}
				if over := tt.last.fate != pending && tt.last.fate != running; over != (m.Attempt == "") {
					t.Errorf("%s: attempt %q is remembered, of one that is over: %t", restart, m.Attempt, over)
				}
				if _, again := decide(wanting(restart), m, outcome{}, now, early); m.Attempt == "" && again != got {
					t.Errorf("%s: a pass later decide = %s, want %s still", restart, again, got)
				}
			}
		})
	}
}

func TestBackoffDoublesUpToItsLimitAndEnds(t *testing.T) {
	lim := early
	lim.crashes = 100
	for _, jitter := range []float64{0, 0.999} {
		lim.rand = func() float64 { return jitter }
		m, at := remembered(func(*memory) {}), now
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			want *= time.Second
			m.Attempt = "r"
			next, act := decide(wanting("always"), m, outcome{fate: failed}, at, lim)
			m = next
			got := m.waits(at, lim)
			if act != actWait || got < want/2 || got > want {
				t.Fatalf("after failure %d: %s for %s, want a wait between %s and %s", i+1, act, got, want/2, want)
			}
			at.Wall, at.Mono = at.Wall.Add(got), at.Mono+got
			if _, act := decide(wanting("always"), m, outcome{}, at, lim); act != actStart {
				t.Fatalf("after the back-off: %s, want %s", act, actStart)
			}
		}
	}
}

func TestBackoffIsDeafToTheWallClock(t *testing.T) {
	m := remembered(func(m *memory) { m.NotBefore = fleet.DeadlineAfter(now, 30*time.Second) })
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		at := after(10 * time.Second)
		at.Wall = at.Wall.Add(step)
		if got, want := m.waits(at, early), 20*time.Second; got != want {
			t.Errorf("clock stepped by %s: %s are left, want %s", step, got, want)
		}
		at.Boot = "b2"
		if got := m.waits(at, early); got != 0 {
			t.Errorf("clock stepped by %s over a boot: %s are left, want none", step, got)
		}
	}
}

func TestChangedOrderBeginsAnewOnceTheOldOneIsOver(t *testing.T) {
	old := memory{Order: "old", Attempt: "r1", Accepted: true, Ran: true, Failures: 3, Broken: true, Last: "9"}
	for _, f := range []fate{pending, running} {
		if m, act := decide(wanting("never"), old, outcome{fate: f}, now, early); act != actHold || m != old {
			t.Errorf("while the old one is there: %s and %+v, want it held as it was", act, m)
		}
	}
	for _, f := range []fate{unsent, ended, failed, forgotten} {
		m, act := decide(wanting("never"), old, outcome{fate: f}, now, early)
		if diff := cmp.Diff(remembered(func(*memory) {}), m); act != actStart || diff != "" {
			t.Errorf("after the old one: %s, want %s (-want +got):\n%s", act, actStart, diff)
		}
	}
}
