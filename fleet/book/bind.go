package book

import (
	"context"
	"time"

	"fleetdeck/fleet/ledger"
)

// Bind has nothing to do: a listed member keeps its tree by the roster of this host's daemon, which every dispatch asks.
func (b *Book) Bind(context.Context, string, string) error { return nil }

// Retake has nothing to do, for the same reason.
func (b *Book) Retake(context.Context, []ledger.Claim) ([]ledger.Retaken, error) { return nil, nil }

// Vacate drops what still stands under id: as a rule nothing, which costs no lock.
func (b *Book) Vacate(ctx context.Context, window time.Duration, id string) error {
	held, err := b.Held(ctx)
	if _, stands := held[id]; err == nil && !stands {
		return nil
	}
	return b.Settle(ctx, window, id)
}

// Held gives the ids of the entries. None is bound: members are the daemon's.
func (b *Book) Held(context.Context) (bound map[string]bool, err error) {
	entries, err := b.Read()
	if err != nil {
		return nil, err
	}
	bound = map[string]bool{}
	for _, e := range entries {
		bound[e.ID] = false
	}
	return bound, nil
}
