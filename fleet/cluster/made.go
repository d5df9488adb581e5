package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// madeLease is how long it is noted what was made for an order, in seconds: no longer than a daemon remembers what became of a launch, so
// that a note without a launch is one of an order that came to none.
const madeLease = 3600

// madeNote is what was made for an order before it was admitted. A daemon that dies in between leaves it to the next one.
type madeNote struct {
	Order fleet.Order        `json:"order"`
	Tree  fleet.Tree         `json:"tree"`
	Made  fleet.MadeWorktree `json:"made"`
}

// NoteMade notes that the worktree t was made for order, under its id. Only who carries out another host's order does: of a command here
// nobody can tell that it has died.
func (l fenced) NoteMade(ctx context.Context, window time.Duration, order fleet.Order, t fleet.Tree, m *fleet.MadeWorktree) error {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	value, err := json.Marshal(madeNote{order, t, *m})
	if err != nil {
		return fmt.Errorf("encode what was made for order %s: %w", order.ID, err)
	}
	_, err = read(ctx, l.Ledger, func(ctx context.Context, c *clientv3.Client) (*clientv3.PutResponse, error) { // once more is no harm
		lease, err := c.Grant(ctx, madeLease)
		if err != nil {
			return nil, err
		}
		return c.Put(ctx, l.keys.made(order.ID), string(value), clientv3.WithLease(lease.ID))
	})
	return err
}

// Made tells what was noted under id: nil where nothing is.
func (l *Ledger) Made(ctx context.Context, window time.Duration, id string) (fleet.Tree, *fleet.MadeWorktree, error) {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.made(id))
	})
	if err != nil || len(res.Kvs) == 0 {
		return fleet.Tree{}, nil, err
	}
	var n madeNote
	if err := json.Unmarshal(res.Kvs[0].Value, &n); err != nil {
		return fleet.Tree{}, nil, fmt.Errorf("key %s is damaged: %w", res.Kvs[0].Key, err)
	}
	return n.Tree, &n.Made, nil
}

// ForgetMade drops what was noted under id.
func (l *Ledger) ForgetMade(ctx context.Context, window time.Duration, id string) error {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.DeleteResponse, error) {
		return c.Delete(ctx, l.keys.made(id), clientv3.WithPrevKV())
	})
	if err == nil && len(res.PrevKvs) > 0 {
		l.revoke(ctx, clientv3.LeaseID(res.PrevKvs[0].Lease))
	}
	return err
}

// leftMade are the orders that something was made for and that nobody waits for any more. Asked for by a daemon that starts they are those
// of an earlier one.
func (l *Ledger) leftMade(ctx context.Context) (left []Order, err error) {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).Then(clientv3.OpGet(l.keys.allMade(), clientv3.WithPrefix()),
			clientv3.OpGet(l.keys.orders(), clientv3.WithPrefix(), clientv3.WithKeysOnly())).Commit()
	})
	if err != nil {
		return nil, err
	}
	waited := map[string]bool{}
	for _, kv := range res.Responses[1].GetResponseRange().Kvs {
		waited[string(kv.Key)] = true
	}
	for _, kv := range res.Responses[0].GetResponseRange().Kvs {
		var n madeNote
		if err := json.Unmarshal(kv.Value, &n); err != nil {
			return left, fmt.Errorf("key %s is damaged: %w", kv.Key, err)
		}
		if !waited[l.keys.order(l.Node, n.Order.ID)] {
			left = append(left, Order{Order: n.Order})
		}
	}
	return left, nil
}
