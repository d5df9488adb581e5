package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// Loss is what stands in the name of a host that nothing is heard of, as it was seen at one moment.
type Loss struct {
	fleet.Node
	holds    []*hold
	revision int64
}

// Lost looks what stands in the name of node. One that is present is refused with [fleet.CodeNodePresent], one that nobody knows
// with [fleet.CodeNotFound].
func (l *Ledger) Lost(ctx context.Context, window time.Duration, node string) (Loss, error) {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	loss, err := l.standsOf(ctx, node)
	switch {
	case err != nil:
		return Loss{}, err
	case !loss.Node.Lost:
		return Loss{}, fleet.Refuse(fleet.CodeNodePresent, "node %s is present, on host %s: what its members hold is theirs", node, loss.Host).
			WithHint("end them there with 'fleetdeck stop'")
	case len(loss.Members) == 0 && len(loss.holds) == 0:
		return Loss{}, fleet.Refuse(fleet.CodeNotFound, "nothing stands in the name of a node %s in fleet %s", node, l.Fleet).
			WithHint("see 'fleetdeck cluster status' for the nodes")
	}
	return loss, nil
}

// standsOf reads all that stands in the name of node, at one revision.
func (l *Ledger) standsOf(ctx context.Context, node string) (Loss, error) {
	k := l.keys.of(node)
	loss := Loss{Node: fleet.Node{Name: node, Lost: true}}
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).Then(clientv3.OpGet(k.here()), clientv3.OpGet(k.members(node), clientv3.WithPrefix()),
			clientv3.OpGet(k.holds(), clientv3.WithPrefix())).Commit()
	})
	if err != nil {
		return loss, err
	}
	loss.revision = res.Header.Revision
	for i, r := range res.Responses {
		for _, kv := range r.GetResponseRange().Kvs {
			if err := tellOf(&loss.Node, i == 0, i == 1, kv); err != nil {
				return loss, err
			}
			if i < 2 {
				continue
			}
			h, err := decode(kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision, kv.Lease)
			if err != nil {
				return loss, err
			}
			loss.holds = append(loss.holds, h)
		}
	}
	return loss, nil
}

// ReleaseLost drops all that a loss names, if the host is still not heard of and nothing of it has changed. A host that comes back in
// between keeps everything: [fleet.CodeNodePresent].
func (l *Ledger) ReleaseLost(ctx context.Context, window time.Duration, loss Loss) error {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	return l.dropAll(ctx, loss, absent(l.keys.at(loss.Name)))
}

// dropAll drops all that stands in the name of a node, as long as cond holds. Where the slots are more than one transaction takes,
// some holds go before the rest does, each whole.
func (l *Ledger) dropAll(ctx context.Context, loss Loss, cond ...clientv3.Cmp) error {
	k := l.keys.of(loss.Name)
	ranges := []string{k.holds(), k.members(loss.Name), k.treesHere(), k.dirsHere()}
	loose := func(h *hold) (names []string) { // what is in none of the ranges
		for _, name := range k.names(h) {
			if !slices.ContainsFunc(ranges, func(r string) bool { return strings.HasPrefix(name, r) }) {
				names = append(names, name)
			}
		}
		return names
	}
	var then []clientv3.Op
	rest := loss.holds
	for len(rest) > 0 && len(then) < maxOps-len(ranges) {
		for _, name := range loose(rest[0]) {
			then = append(then, k.delete(rest[0], name))
		}
		rest = rest[1:]
	}
	for _, h := range rest {
		if err := l.commitDrop(ctx, loss.Name, append(cond[:len(cond):len(cond)], k.unchanged(h)), k.deletes(h)); err != nil {
			return err
		}
	}
	for _, r := range ranges {
		then = append(then, clientv3.OpDelete(r, clientv3.WithPrefix()))
		cond = append(cond, clientv3.Compare(clientv3.ModRevision(r), "<", loss.revision+1).WithPrefix())
	}
	return l.commitDrop(ctx, loss.Name, cond, then)
}

// commitDrop commits one transaction that drops what stands in the name of node. One that was carried out and whose answer was lost may
// be asked for again: it drops nothing more.
func (l *Ledger) commitDrop(ctx context.Context, node string, cond []clientv3.Cmp, then []clientv3.Op) error {
	for {
		res, err := l.txn(ctx, cond, then, nil)
		switch {
		case err == nil && res.Succeeded:
			return nil
		case err == nil:
			return l.notDropped(ctx, node)
		case !errors.Is(err, errLost):
			return err
		case !pause(ctx):
			return l.unknown("what node "+node+" held was dropped", err)
		}
	}
}

// notDropped says why nothing was dropped.
func (l *Ledger) notDropped(ctx context.Context, node string) error {
	now, err := l.standsOf(ctx, node)
	switch {
	case err != nil:
		return err
	case !now.Node.Lost:
		return fleet.Refuse(fleet.CodeNodePresent, "node %s has come back, on host %s: it keeps what its members hold", node, now.Host)
	case len(now.holds) == 0 && len(now.Members) == 0:
		return nil // somebody else has dropped it, or our own answer was lost
	}
	return fleet.Refuse(fleet.CodeNodePresent, "what node %s holds has changed meanwhile: nothing was dropped", node).WithHint("look again")
}
