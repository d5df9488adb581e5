package proof_test

import "testing"

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
