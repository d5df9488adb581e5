package cluster

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// Read gives the reservations of this host's trees: what members hold is in the roster. What is left of a grace is the lease's word.
func (l *Ledger) Read() ([]fleet.Entry, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	holds, err := l.all(ctx)
	if err != nil {
		return nil, err
	}
	entries := []fleet.Entry{}
	for _, h := range holds {
		if h.State == member {
			continue
		}
		left, err := l.left(ctx, h)
		if err != nil {
			return nil, err
		}
		if left.least < 0 {
			continue // it ended meanwhile, or was bound
		}
		left.least += time.Second // what is shown as over is over
		for _, t := range h.Trees {
			entries = append(entries, h.entry(t, left))
		}
	}
	return entries, nil
}

// Held gives the ids of this host's holds.
func (l *Ledger) Held(ctx context.Context) (bound map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	holds, err := l.all(ctx)
	if err != nil {
		return nil, err
	}
	bound = map[string]bool{}
	for _, h := range holds {
		bound[h.ID] = h.State == member
	}
	return bound, nil
}

// all gives this host's holds, at one revision.
func (l *Ledger) all(ctx context.Context) ([]*hold, error) {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.holds(), clientv3.WithPrefix())
	})
	if err != nil {
		return nil, err
	}
	var holds []*hold
	for _, kv := range res.Kvs {
		h, err := decode(kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision, kv.Lease)
		if err != nil {
			return nil, err
		}
		holds = append(holds, h)
	}
	return holds, nil
}

// Plan has nothing to drop: a reservation ends with its lease, and one whose worker is listed has become the member's.
func (l *Ledger) Plan(fleet.Roster) (fleet.PruneReport, error) {
	report := fleet.PruneReport{Pruned: []fleet.Pruned{}, Lock: "free"}
	entries, err := l.Read()
	report.Kept = len(entries)
	return report, err
}

// Prune is Plan: nothing is left for it to do.
func (l *Ledger) Prune(_ context.Context, _ time.Duration, roster fleet.Roster) (fleet.PruneReport, error) {
	return l.Plan(roster)
}

// Watch sends a token for each change of this host's holds, and whenever the connection is lost or found again. It misses nothing
// that happened in between.
func (l *Ledger) Watch(ctx context.Context) <-chan struct{} {
	tokens := make(chan struct{}, 1)
	say := func() {
		select {
		case tokens <- struct{}{}:
		default:
		}
	}
	go func() {
		defer close(tokens)
		l.mirror(ctx, l.keys.holds(), func([]*mvccpb.KeyValue) { say() }, func([]*clientv3.Event) { say() }, say)
	}()
	return tokens
}
