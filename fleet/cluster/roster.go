package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// Node is a host of the fleet as the cluster knows it.
type Node struct {
	Name string `json:"node"`
	// Lost says that nothing was heard of its daemon for a while. Whether its members still run nobody knows: they keep their trees.
	Lost bool `json:"lost"`
	Presence
	// Members are those that its daemon listed last.
	Members []fleet.Member `json:"members"`
}

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

// Nodes gives the hosts of the fleet with their members, by name, at one revision.
func (l *Ledger) Nodes(ctx context.Context) ([]Node, error) {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).Then(clientv3.OpGet(l.keys.at(""), clientv3.WithPrefix()), clientv3.OpGet(l.keys.members(""), clientv3.WithPrefix())).Commit()
	})
	if err != nil {
		return nil, err
	}
	nodes := map[string]*Node{}
	for _, kv := range res.Responses[0].GetResponseRange().Kvs {
		n := &Node{Name: strings.TrimPrefix(string(kv.Key), l.keys.at(""))}
		if err := json.Unmarshal(kv.Value, &n.Presence); err != nil {
			return nil, fmt.Errorf("key %s is damaged: %w", kv.Key, err)
		}
		nodes[n.Name] = n
	}
	for _, kv := range res.Responses[1].GetResponseRange().Kvs {
		name, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), l.keys.members("")), "/")
		if nodes[name] == nil {
			nodes[name] = &Node{Name: name, Lost: true}
		}
		var m fleet.Member
		if err := json.Unmarshal(kv.Value, &m); err != nil {
			return nil, fmt.Errorf("key %s is damaged: %w", kv.Key, err)
		}
		nodes[name].Members = append(nodes[name].Members, m)
	}
	all := []Node{}
	for _, n := range nodes {
		all = append(all, *n)
	}
	slices.SortFunc(all, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
