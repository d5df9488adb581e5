package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// maxOps bounds the changes of one transaction: etcd takes 128.
const maxOps = 100

// Publish makes members what other hosts see of this one. Only what is another by now is written.
func (l *Ledger) Publish(ctx context.Context, members []fleet.Member) error {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.members(l.Node), clientv3.WithPrefix())
	})
	if err != nil {
		return err
	}
	old := map[string]string{}
	for _, kv := range res.Kvs {
		old[string(kv.Key)] = string(kv.Value)
	}
	var ops []clientv3.Op
	for _, m := range members {
		value, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("encode member %s: %w", m.ID, err)
		}
		key := l.keys.members(l.Node) + m.ID
		if old[key] != string(value) {
			ops = append(ops, clientv3.OpPut(key, string(value)))
		}
		delete(old, key)
	}
	for key := range old {
		ops = append(ops, clientv3.OpDelete(key))
	}
	for some := range slices.Chunk(ops, maxOps) {
		if _, err := l.txn(ctx, nil, some, nil); err != nil {
			return err
		}
	}
	return nil
}

// Unlist takes this host's members off what other hosts see, if it holds nothing: a host whose daemon has ended them all and is gone is
// not lost.
func (l *Ledger) Unlist(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := l.txn(ctx, []clientv3.Cmp{absent(l.keys.holds()).WithPrefix()},
		[]clientv3.Op{clientv3.OpDelete(l.keys.members(l.Node), clientv3.WithPrefix())}, nil)
	return err
}

// Nodes gives the hosts of the fleet with their members and what they hold, by name, at one revision.
func (l *Ledger) Nodes(ctx context.Context) ([]fleet.Node, error) {
	prefixes := []string{l.keys.at(""), l.keys.members(""), l.keys.allHolds()}
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		var gets []clientv3.Op
		for _, p := range prefixes {
			gets = append(gets, clientv3.OpGet(p, clientv3.WithPrefix()))
		}
		return c.Txn(ctx).Then(gets...).Commit()
	})
	if err != nil {
		return nil, err
	}
	nodes := map[string]*fleet.Node{}
	for i, prefix := range prefixes {
		for _, kv := range res.Responses[i].GetResponseRange().Kvs {
			name, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), prefix), "/")
			if nodes[name] == nil {
				nodes[name] = &fleet.Node{Name: name, Lost: true}
			}
			if err := tellOf(nodes[name], prefix == prefixes[0], prefix == prefixes[1], kv); err != nil {
				return nil, err
			}
		}
	}
	all := []fleet.Node{}
	for _, n := range nodes {
		addUnlisted(n)
		all = append(all, *n)
	}
	slices.SortFunc(all, func(a, b fleet.Node) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// tellOf adds to n what a key says of it: its presence, a member, or else a hold.
func tellOf(n *fleet.Node, isPresence, isMember bool, kv *mvccpb.KeyValue) error {
	switch {
	case isPresence:
		var p Presence
		if err := json.Unmarshal(kv.Value, &p); err != nil {
			return fmt.Errorf("key %s is damaged: %w", kv.Key, err)
		}
		n.Lost, n.Host, n.Boot, n.Version = false, p.Host, p.Boot, p.Version
	case isMember:
		var m fleet.Member
		if err := json.Unmarshal(kv.Value, &m); err != nil {
			return fmt.Errorf("key %s is damaged: %w", kv.Key, err)
		}
		n.Members = append(n.Members, m)
	default:
		h, err := decode(kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision, kv.Lease)
		if err != nil {
			return err
		}
		n.Held = append(n.Held, h.rows()...)
	}
	return nil
}

// addUnlisted adds to the members of n those that hold something and that its daemon has not listed yet: it does so within a second,
// and may have died in that.
func addUnlisted(n *fleet.Node) {
	listed, added := map[string]bool{"": true}, map[string]int{}
	for _, m := range n.Members {
		listed[m.ID] = true
	}
	for _, t := range n.Held {
		if listed[t.Member] {
			continue
		}
		if i, ok := added[t.Member]; ok {
			n.Members[i].Also = append(n.Members[i].Also, fleet.Tree{Path: t.Tree})
			continue
		}
		added[t.Member] = len(n.Members)
		n.Members = append(n.Members, fleet.Member{
			ID: t.Member, Tree: t.Tree, Role: t.Role, RequestedRole: t.Role, Profile: t.Profile, Slot: t.Slot,
			State: fleet.StateUnknown, StateSource: "launch", StartedAt: t.ReservedAt, Reservation: t.ID,
		})
	}
}

// rows are the trees of h as other hosts see them.
func (h *hold) rows() (rows []fleet.NodeTree) {
	for _, t := range h.Trees {
		rows = append(rows, fleet.NodeTree{
			Tree: t.Path, ID: h.ID, State: h.State, Member: h.Member, Role: h.Role, Profile: h.Profile, Slot: h.Slot, ReservedAt: h.ReservedAt,
			ExpiresAt: h.Deadline.Wall.UTC().Truncate(time.Millisecond), Dispatcher: h.Dispatcher, Fence: h.fence,
		})
	}
	return rows
}
