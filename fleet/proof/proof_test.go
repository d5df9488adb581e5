package proof_test

import (
	"errors"
	"testing"
)

// TestEveryAnswerOfTheLedgerHasAnOrder is the short form of TestLong.
func TestEveryAnswerOfTheLedgerHasAnOrder(t *testing.T) {
	newLedger(t, seedOf(t), 6).run(t, 8000)
}

// TestLong makes as many operations as -ops says.
func TestLong(t *testing.T) {
	if *opsFlag == 0 {
		t.Skip("long: it runs with -ops 10000000")
	}
	newLedger(t, seedOf(t), *workersFlag).run(t, *opsFlag)
}

// TestEveryAnswerOfTheProgramHasAnOrder is the short form of TestLongOfPrograms.
func TestEveryAnswerOfTheProgramHasAnOrder(t *testing.T) {
	programsRun(t, 120)
}

// TestLongOfPrograms runs as many processes of the program as -programs says, a thousand at a time.
func TestLongOfPrograms(t *testing.T) {
	if *programsFlag == 0 {
		t.Skip("long: it runs with -programs 10000")
	}
	for made := 0; made < *programsFlag && !t.Failed(); made += 1000 {
		programsRun(t, min(1000, *programsFlag-made))
	}
}

func programsRun(t *testing.T, ops int) {
	t.Helper()
	p := newPrograms(t, 3)
	began := mono()
	p.rampage(seedOf(t), 5, ops, true)
	if err := errors.Join(p.rest(), p.account(began)); err != nil {
		draw(t, err)
		t.Fatal(err)
	}
}
