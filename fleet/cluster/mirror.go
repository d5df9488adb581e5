package cluster

import (
	"context"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// rewindEvery is how often a watch is held against etcd's own revision.
const rewindEvery = 5 * time.Second

// span is the keys from the first on, up to another and without that.
type span struct{ from, to string }

// below is the keys that begin with prefix.
func below(prefix string) span { return span{prefix, clientv3.GetPrefixRangeEnd(prefix)} }

// mirror tells of all keys below prefix: see mirrorOf.
func (l *Ledger) mirror(ctx context.Context, prefix string, list func([]*mvccpb.KeyValue), change func([]*clientv3.Event), broken func()) {
	l.mirrorOf(ctx, below(prefix), list, change, broken)
}

// mirrorOf tells of all keys of a span until ctx ends: list is given those that stand, change each change after that. What happens while
// the connection is lost is not missed: it goes on behind the last revision that it saw, or, where etcd keeps that no more or has not come as
// far, having lost its data, lists anew. broken is told whenever the connection is lost.
func (l *Ledger) mirrorOf(ctx context.Context, keys span, list func([]*mvccpb.KeyValue), change func([]*clientv3.Event), broken func()) {
	var next int64 // the revision to go on with; 0 where there is none to go by
	for ctx.Err() == nil {
		var err error
		if next == 0 {
			if next, err = l.listOf(ctx, keys, list); err == nil {
				next++
			}
		}
		if err == nil {
			next = l.follow(ctx, keys, next, change)
		}
		broken()
		pause(ctx)
	}
}

// list gives what stands below prefix, and at which revision it does.
func (l *Ledger) list(ctx context.Context, prefix string, give func([]*mvccpb.KeyValue)) (revision int64, err error) {
	return l.listOf(ctx, below(prefix), give)
}

func (l *Ledger) listOf(ctx context.Context, keys span, give func([]*mvccpb.KeyValue)) (revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res, err := once(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, keys.from, clientv3.WithRange(keys.to))
	})
	if err != nil {
		return 0, err
	}
	give(res.Kvs)
	return res.Header.Revision, nil
}

// follow tells of each change from the revision from on, until the watch ends, and gives the revision to go on with.
func (l *Ledger) follow(ctx context.Context, keys span, from int64, change func([]*clientv3.Event)) (next int64) {
	c, err := l.client()
	if err != nil {
		return from
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	next = from
	var seen atomic.Int64 // the last revision that was told of
	seen.Store(from - 1)
	var rewound atomic.Bool
	go func() { // a watch would wait in silence until an etcd that was begun anew comes as far
		for sleep(ctx, rewindEvery); ctx.Err() == nil; sleep(ctx, rewindEvery) {
			then := seen.Load()
			res, err := once(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
				return c.Get(ctx, keys.from, clientv3.WithRange(keys.to), clientv3.WithCountOnly())
			})
			if err == nil && res.Header.Revision < then {
				rewound.Store(true)
				cancel()
			}
		}
	}()
	for res := range c.Watch(ctx, keys.from, clientv3.WithRange(keys.to), clientv3.WithRev(from), clientv3.WithProgressNotify()) {
		if res.CompactRevision > 0 {
			return 0
		}
		if res.Err() != nil {
			break
		}
		next = res.Header.Revision + 1
		seen.Store(res.Header.Revision)
		if len(res.Events) > 0 {
			change(res.Events)
		}
	}
	if rewound.Load() {
		return 0
	}
	return next
}
