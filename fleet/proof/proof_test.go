package proof_test

import (
	"errors"
	"testing"
)

// TestEveryAnswerOfTheLedgerHasAnOrder is the short form of TestLong.
func TestEveryAnswerOfTheLedgerHasAnOrder(t *testing.T) {
	ops := 8000
	if testing.Short() {
		ops = 2000 // the race detector slows each process down
	}
	newHistories(t, seedOf(t), 6).run(t, ops)
}

// TestLong makes as many operations as -ops says.
func TestLong(t *testing.T) {
	if *opsFlag == 0 {
		t.Skip("long: it runs with -ops 10000000")
	}
	newHistories(t, seedOf(t), *workersFlag).run(t, *opsFlag)
}

// TestEveryAnswerOfTheProgramHasAnOrder is the short form of TestLongOfPrograms.
func TestEveryAnswerOfTheProgramHasAnOrder(t *testing.T) {
	t.Parallel()
	ops := 50
	if testing.Short() {
		ops = 20
	}
	t.Run("while the daemon is killed and started again", func(t *testing.T) { t.Parallel(); programsRun(t, ops, true) })
	// A daemon that starts counts its slots anew, and would forget that one was not given back.
	t.Run("of one daemon", func(t *testing.T) { t.Parallel(); programsRun(t, ops, false) })
}

// TestLongOfPrograms runs as many processes of the program as -programs says, a thousand at a time.
func TestLongOfPrograms(t *testing.T) {
	if *programsFlag == 0 {
		t.Skip("long: it runs with -programs 10000")
	}
	for made := 0; made < *programsFlag && !t.Failed(); made += 1000 {
		programsRun(t, min(1000, *programsFlag-made), made%2000 == 0)
	}
}

func programsRun(t *testing.T, ops int, killDaemon bool) {
	t.Helper()
	p := newPrograms(t, 4)
	began := mono()
	p.rampage(seedOf(t), 5, ops, killDaemon)
	if t.Failed() {
		return
	}
	if err := errors.Join(p.rest(), p.account(began)); err != nil {
		draw(t, err)
		t.Fatal(err)
	}
}
