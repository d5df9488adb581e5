package cluster

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
)

// Fence is a key that must still be the one that was made at a revision: a term of office, or an order that its sender still stands by.
type Fence struct {
	Key string `json:"key"`
	Rev int64  `json:"rev"`
	// Of says what it is, for who is refused.
	Of string `json:"of"`
}

func (f Fence) stands() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(f.Key), "=", f.Rev)
}

// fallen words that f does not stand.
func (f Fence) fallen() error {
	return fleet.Refuse(fleet.CodeReservationStale, "%s is over", f.Of).WithHint("nothing was reserved")
}

// Under is l, with reservations that are made only while all fences stand: each is compared in the transaction that reserves. Who was
// paused meanwhile, or comes late, reserves nothing.
func (l *Ledger) Under(fences ...Fence) ledger.Ledger { return fenced{l, fences} }

type fenced struct {
	*Ledger
	fences []Fence
}

func (l fenced) Reserve(ctx context.Context, window time.Duration, draft ledger.Draft, view ledger.View) (fleet.Entry, error) {
	return l.reserve(ctx, window, draft, view, l.fences)
}
