package daemon

import (
	"context"
	"errors"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/process"
)

// Fencing ends members that fill a slot before the ledger gives the slot away, whatever becomes of this daemon.
//
//	t: the clock is read ──► Renew: held until t + fleet.FenceLease, or longer ──► the holder is told t + Span
//	▲                                                                                       │
//	└───────────────────────────────────── a part of Span later ────────────────────────────┘
//
// A holder that is told nothing more ends its agent at the last t + Span. Where Renew fails it is told nothing, so that a daemon that
// was killed, paused or cut off all come to the same.
type Fencing struct {
	// Span is for how long an agent goes on without another word from the ledger. Zero fences nobody who is not fenced.
	Span time.Duration
	// Renew has the ledger keep what is held under a reservation for [fleet.FenceLease] from the call on, and calls fence before it puts a
	// limit to what had none. It is nil where the ledger gives nothing away.
	Renew func(ctx context.Context, id string, fence func(context.Context) error) error
}

// parts is into how many parts a span is cut: one between two words, the more the shorter the absence of etcd that is survived.
const parts = 5

// keepFenced moves a member's fence on for as long as the ledger says that its slot is held. status is what its terminal said.
func (t *tender) keepFenced(ctx context.Context, term launch.Terminal, status launch.Status) {
	f, rec := t.d.Fencing, t.record()
	if f.Span == 0 && status.Fenced {
		f.Span = fleet.FenceUsual // since nothing takes a fence away
	}
	fencer, ok := term.(launch.Fencer)
	if !ok || f.Renew == nil || f.Span == 0 || rec.Slot == "" {
		return
	}
	told := ""
	for fenced := status.Fenced; ; {
		err := t.renew(ctx, f, fencer, rec.Reservation, &fenced)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			told = ""
		} else if err.Error() != told {
			told = err.Error()
			t.d.Log("fence of member %s: %v", rec.ID, err)
		}
		if !sleep(ctx, f.Span/parts) {
			return
		}
	}
}

// renew moves the fence on once. What is not fenced is fenced before the ledger puts a limit to what it holds. What is fenced is only moved
// on by the ledger's word: an earlier request to it may be carried out late.
func (t *tender) renew(ctx context.Context, f Fencing, fencer launch.Fencer, id string, fenced *bool) error {
	began, ok := process.Awake()
	if !ok {
		return errors.New("no clock of this system tells when a fence is over")
	}
	ctx, cancel := context.WithTimeout(ctx, f.Span/2) // then a new try is worth more
	defer cancel()
	err := f.Renew(ctx, id, func(ctx context.Context) error {
		if *fenced {
			return nil
		}
		err := fencer.Fence(ctx, began+f.Span)
		*fenced = err == nil
		return err
	})
	if err == nil {
		err = fencer.Fence(ctx, began+f.Span)
	}
	return err
}
