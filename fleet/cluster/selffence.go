package cluster

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// Renew has etcd keep what the member of reservation id holds for [fleet.FenceLease] more, counted from the call, and no longer: whoever asks
// makes sure that the agent has ended by then, unless it asked again. What hangs on no lease yet is put on one of its own,
// after fence was called and gave no error: from then on the agent ends by itself. A fence that is there already must not be moved on
// before Renew has returned, since an earlier one whose answer was lost may yet put the hold on an older lease.
//
// An error says that nobody knows how long it is held. It may be held on.
func (l *Ledger) Renew(ctx context.Context, id string, fence func(context.Context) error) error {
	h, err := l.find(ctx, id)
	switch {
	case err != nil:
	case h == nil || h.State != member:
		return fleet.Refuse(fleet.CodeReservationStale, "nothing is held for a member of reservation %s any more", id)
	case h.lease == clientv3.NoLease:
		if err = fence(ctx); err == nil {
			err = l.putOnLease(ctx, h)
		}
	default:
		_, err = once(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseKeepAliveResponse, error) {
			return c.KeepAliveOnce(ctx, h.lease)
		})
	}
	if err != nil {
		return fmt.Errorf("keep what is held under reservation %s: %w", id, err)
	}
	return nil
}

// putOnLease puts h, if it stands as it was read, on a lease of its own.
func (l *Ledger) putOnLease(ctx context.Context, h *hold) error {
	lease, err := once(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
		return c.Grant(ctx, int64(fleet.FenceLease.Seconds()))
	})
	if err != nil {
		return err
	}
	done, err := l.put(ctx, h, h, lease.ID)
	if err == nil && !done {
		err = errors.New("it has changed meanwhile")
	}
	if err != nil && !errors.Is(err, errLost) {
		l.revoke(ctx, lease.ID) // nothing hangs on it
	}
	return err
}
