package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/mutant"
)

// Admit makes the reservation id a launch, by its fence, before it calls admit. The entry's deadline goes by this host's clock and by
// what etcd says is left of the lease, counted from before it was asked: early, never late, whatever other hosts' clocks say.
func (l *Ledger) Admit(ctx context.Context, window time.Duration, tree, id string, admit func(fleet.Entry) error, also ...fleet.Tree) error {
	l.admitting.Lock()
	defer l.admitting.Unlock()
	asking, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	for {
		h, err := l.standing(asking, tree, id, also)
		if err != nil {
			return err
		}
		left, err := l.left(asking, h)
		if err != nil {
			return err
		}
		t, _ := h.in(tree)
		e := h.entry(t, left)
		if e.Expired(l.Now()) {
			return overdue(id, tree)
		}
		if h.State == launching {
			return l.admitted(asking, e, admit) // asked again, or its answer was lost
		}
		next := *h
		next.State = launching
		done, err := l.put(asking, h, &next, h.lease)
		switch {
		case noLease(err):
			return overdue(id, tree)
		case err != nil && !errors.Is(err, errLost):
			return err
		case err == nil && done:
			return l.admitted(asking, e, admit)
		case err != nil && !pause(asking):
			return l.gaveUp(asking, err) // a launch that nobody starts: the reservation ends it
		}
	}
}

// admitted calls admit, and makes sure that the reservation still stands once that has returned. Who drops it before that moment is
// right to say that nothing was started, and who drops it later finds on record what admit has done.
func (l *Ledger) admitted(ctx context.Context, e fleet.Entry, admit func(fleet.Entry) error) error {
	if err := admit(e); err != nil {
		return err
	}
	h, err := l.find(ctx, e.ID)
	if err != nil {
		return err
	}
	if h == nil {
		return stale(e.ID, e.Tree)
	}
	return nil
}

// standing gives the hold id if it stands for tree and also, not bound yet.
func (l *Ledger) standing(ctx context.Context, tree, id string, also []fleet.Tree) (*hold, error) {
	h, err := l.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if h == nil || h.State == member {
		return nil, stale(id, tree)
	}
	if h.Trees[0].Path != tree {
		return nil, fleet.Refuse(fleet.CodeReservationStale, "reservation %s is for %s, not for %s", id, h.Trees[0].Path, tree)
	}
	for _, t := range also {
		other, ok := h.in(t.Path)
		if !ok {
			return nil, stale(id, t.Path)
		}
		if other.File != "" && other.File != t.File {
			return nil, fleet.Refuse(fleet.CodeReservationStale, "%s is another directory than the one that was reserved", t.Path)
		}
	}
	return h, nil
}

func stale(id, tree string) error {
	return fleet.Refuse(fleet.CodeReservationStale, "reservation %s for %s does not stand any more", id, tree).
		WithHint("dispatch again: the tree may have been given away meanwhile")
}

func overdue(id, tree string) error {
	return fleet.Refuse(fleet.CodeReservationStale, "the grace of reservation %s for %s has run out", id, tree).
		WithHint("dispatch again")
}

// left says what is left of h's lease, which etcd tells in whole seconds. It is negative once the lease has ended.
func (l *Ledger) left(ctx context.Context, h *hold) (r remains, err error) {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseTimeToLiveResponse, error) {
		r.at = l.Now() // before etcd counts
		return c.TimeToLive(ctx, h.lease)
	})
	if err != nil {
		return r, err
	}
	r.least = time.Duration(res.TTL) * time.Second
	r.most = r.least + time.Second + l.Now().Mono - r.at.Mono
	return r, nil
}

// put changes h to next, with all its keys on lease, if it stands as it was read, and reports whether it did.
func (l *Ledger) put(ctx context.Context, h, next *hold, lease clientv3.LeaseID) (bool, error) {
	ops, err := l.keys.puts(next, lease)
	if err != nil {
		return false, err
	}
	conds := []clientv3.Cmp{l.keys.unchanged(h)}
	if mutant.ClusterPutWithoutFence {
		conds = nil
	}
	res, err := l.txn(ctx, conds, ops, nil)
	return err == nil && res.Succeeded, err
}

// Bind takes what is held under id off its lease, and says whose it is. It asks as long as ctx lasts: a launch that cannot be told to be bound in its
// time is none.
func (l *Ledger) Bind(ctx context.Context, id, agent string) error {
	for {
		h, err := l.find(ctx, id)
		switch {
		case err != nil:
			return fmt.Errorf("bind reservation %s: %w", id, err)
		case h == nil:
			return fleet.Refuse(fleet.CodeReservationStale, "reservation %s does not stand any more: it was released, or its grace is over", id)
		case h.State == member:
			return nil
		}
		next := *h
		next.State, next.Member = member, agent
		done, err := l.put(ctx, h, &next, clientv3.NoLease)
		switch {
		case err != nil && !errors.Is(err, errLost):
			return fmt.Errorf("bind reservation %s: %w", id, err)
		case err == nil && done:
			l.revoke(ctx, h.lease)
			return nil
		case err != nil && !pause(ctx):
			return fmt.Errorf("bind reservation %s: %w", id, l.gaveUp(ctx, err))
		}
	}
}

// Settle drops the reservation id, unless it is bound by now.
func (l *Ledger) Settle(ctx context.Context, window time.Duration, id string) error {
	_, err := l.drop(ctx, window, id, func(h *hold) bool { return h.State != member })
	return err
}

// Vacate gives back what is held under id, bound or not.
func (l *Ledger) Vacate(ctx context.Context, window time.Duration, id string) error {
	_, err := l.drop(ctx, window, id, func(*hold) bool { return true })
	return err
}

// Release drops the reservation of tree by hand. What a member holds is no reservation: it goes with the member.
func (l *Ledger) Release(ctx context.Context, window time.Duration, tree, id string) (fleet.Entry, bool, error) {
	asking, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	res, err := read(asking, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.tree(tree))
	})
	if err != nil || len(res.Kvs) == 0 {
		return fleet.Entry{}, false, err
	}
	kv := res.Kvs[0]
	h, err := decode(kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision, kv.Lease)
	if err != nil || h.State == member {
		return fleet.Entry{}, false, err
	}
	t, _ := h.in(tree)
	now := l.Now()
	e := h.entry(t, exactly(now, h.Deadline.Remaining(now)))
	if id != "" && id != h.ID {
		return e, false, nil
	}
	dropped, err := l.drop(asking, window, h.ID, func(h *hold) bool { return h.State != member })
	return e, dropped, err
}

// drop deletes what is held under id if it is to be, and reports whether it was there. Whether or not an answer was lost, the
// next look tells.
func (l *Ledger) drop(ctx context.Context, window time.Duration, id string, goes func(*hold) bool) (dropped bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	sent := false
	for {
		h, err := l.find(ctx, id)
		switch {
		case err != nil && sent:
			return false, l.unknown("reservation "+id+" was dropped", err)
		case err != nil:
			return false, err
		case h == nil || !goes(h):
			return sent && h == nil, nil
		}
		conds := []clientv3.Cmp{l.keys.unchanged(h)}
		if mutant.ClusterDropWithoutFence {
			conds = nil
		}
		res, err := l.txn(ctx, conds, l.keys.deletes(h), nil)
		switch {
		case err == nil && res.Succeeded:
			if h.lease != clientv3.NoLease {
				l.revoke(ctx, h.lease)
			}
			return true, nil
		case err != nil && !errors.Is(err, errLost):
			return false, err
		case err != nil:
			sent = true
			if !pause(ctx) {
				return false, l.unknown("reservation "+id+" was dropped", err)
			}
		}
	}
}
