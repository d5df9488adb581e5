package book_test

import (
	"testing"

	"fleetdeck/fleet/book"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/ledger/ledgertest"
)

func TestTheBookIsALedger(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) (ledger.Ledger, string) {
		dir := t.TempDir()
		b, err := book.Open(dir, process.Now)
		if err != nil {
			t.Fatal(err)
		}
		return b, dir
	})
}
