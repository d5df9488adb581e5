package cluster

import (
	"context"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// survey gives what stands for this host's trees, and under the other names of holds, by key.
func (l *Ledger) survey(ctx context.Context, holds []*hold) (map[string]*mvccpb.KeyValue, error) {
	ranges := []string{l.keys.holds(), l.keys.treesHere(), l.keys.dirsHere()}
	var ops []clientv3.Op
	for _, r := range ranges {
		ops = append(ops, clientv3.OpGet(r, clientv3.WithPrefix()))
	}
	for _, h := range holds {
		for _, name := range l.keys.names(h) {
			if !slices.ContainsFunc(ranges, func(r string) bool { return strings.HasPrefix(name, r) }) {
				ops = append(ops, clientv3.OpGet(name))
			}
		}
	}
	seen := map[string]*mvccpb.KeyValue{}
	for some := range slices.Chunk(ops, maxOps) { // the ranges are in the first, at one revision
		res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
			return c.Txn(ctx).Then(some...).Commit()
		})
		if err != nil {
			return nil, err
		}
		for _, r := range res.Responses {
			for _, kv := range r.GetResponseRange().Kvs {
				seen[string(kv.Key)] = kv
			}
		}
	}
	return seen, nil
}

// whole reports whether h stands as a member's hold by all of its keys.
func (l *Ledger) whole(h *hold, seen map[string]*mvccpb.KeyValue) bool {
	for _, name := range l.keys.names(h) {
		kv := seen[name]
		if kv == nil {
			return false
		}
		if id, state, err := l.says(kv); err != nil || id != h.ID || state != "" && state != member {
			return false
		}
	}
	return true
}

// says gives the id of the hold that a key belongs to, and its state where the key has that.
func (l *Ledger) says(kv *mvccpb.KeyValue) (id, state string, err error) {
	if !l.keys.holdsValue(string(kv.Key)) {
		return string(kv.Value), "", nil
	}
	h, err := decode(kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision, kv.Lease)
	if err != nil {
		return "", "", err
	}
	return h.ID, h.State, nil
}

// dropStray drops the keys of this host's trees and directories whose hold does not stand: they would bar those for good. What cannot be
// read is left to people.
func (l *Ledger) dropStray(ctx context.Context, seen map[string]*mvccpb.KeyValue) error {
	for name, kv := range seen {
		if !strings.HasPrefix(name, l.keys.treesHere()) && !strings.HasPrefix(name, l.keys.dirsHere()) {
			continue
		}
		id, _, err := l.says(kv)
		if err != nil || seen[l.keys.hold(id)] != nil {
			continue
		}
		conds := []clientv3.Cmp{absent(l.keys.hold(id)), clientv3.Compare(clientv3.ModRevision(name), "=", kv.ModRevision)}
		if _, err := l.txn(ctx, conds, []clientv3.Op{clientv3.OpDelete(name)}, nil); err != nil {
			return err
		}
	}
	return nil
}
