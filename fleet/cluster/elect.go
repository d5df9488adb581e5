package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"fleetdeck/fleet"
)

// Candidate is a host that would be the fleet's keeper, with what its configuration asks for. It stands as long as its keeper runs,
// elected or not, so that the one who is knows what all of them want.
type Candidate struct {
	Node  string  `json:"node"`
	Host  string  `json:"host"`
	Pid   int     `json:"pid"`
	Staff []Staff `json:"staff"`
}

// Staff is a tree that is to be kept staffed: NODE:PATH, or a path of the host that asks for it.
type Staff struct {
	Tree    string `json:"tree"`
	Role    string `json:"role"`
	Profile string `json:"profile"`
	Task    string `json:"task"`
	Restart string `json:"restart"`
}

// Wanted is Staff by its whole name, and the fence of who asks for it: once that host takes it back, no order for it is carried out.
type Wanted struct {
	Staff
	By Fence
}

// Term is the time in which a host is the fleet's keeper. It is for one goroutine. Whatever is done in it compares the creation of its
// key, so that a keeper that was paused past its end changes nothing.
type Term struct {
	Fence
	l       *Ledger
	lease   clientv3.LeaseID
	session *concurrency.Session
	known   map[string]int64 // the revision of each memory as it was read or written last
}

// Campaign stands for election until the fleet's keeper is this host, which etcd decides, or ctx ends.
func (l *Ledger) Campaign(ctx context.Context, c Candidate) (*Term, error) {
	value, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode the candidate: %w", err)
	}
	client, err := l.client()
	if err != nil {
		return nil, err
	}
	lease, err := once(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
		return c.Grant(ctx, nodeLease)
	})
	if err != nil {
		return nil, err
	}
	// The session outlasts ctx: it ends with the term.
	session, err := concurrency.NewSession(client, concurrency.WithLease(lease.ID), concurrency.WithContext(context.WithoutCancel(ctx)))
	if err != nil {
		return nil, err
	}
	t := &Term{l: l, lease: lease.ID, session: session, known: map[string]int64{}}
	standing, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a candidate whose lease ended is none, and would wait for nothing
		select {
		case <-session.Done():
			cancel()
		case <-standing.Done():
		}
	}()
	e := concurrency.NewElection(session, strings.TrimSuffix(l.keys.keeper(), "/"))
	// A candidate that is called off takes its key away first, however long etcd does not answer. That is not waited for: the key goes with
	// the lease.
	decided := make(chan error, 1)
	go func() { decided <- e.Campaign(standing, string(value)) }()
	select {
	case err = <-decided:
	case <-standing.Done():
		err = standing.Err()
	}
	if err != nil {
		t.End(ctx)
		if ctx.Err() == nil && standing.Err() != nil {
			err = errors.New("its lease ended while it stood for election")
		}
		return nil, fmt.Errorf("stand for election as the fleet's keeper: %w", err)
	}
	t.Fence = Fence{Key: e.Key(), Rev: e.Rev(), Of: "the keeper's term of node " + c.Node}
	return t, nil
}

// Context is ctx until the term is over.
func (t *Term) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-t.session.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// End gives the office up at once, though ctx has ended.
func (t *Term) End(ctx context.Context) {
	t.session.Orphan()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	t.l.revoke(ctx, t.lease)
}

// Elected says who the fleet's keeper is: nil while there is none.
func (l *Ledger) Elected(ctx context.Context) (*Candidate, error) {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.keeper(), clientv3.WithFirstCreate()...)
	})
	if err != nil || len(res.Kvs) == 0 {
		return nil, err
	}
	c := new(Candidate)
	if err := json.Unmarshal(res.Kvs[0].Value, c); err != nil {
		return nil, fmt.Errorf("key %s is damaged: %w", res.Kvs[0].Key, err)
	}
	return c, nil
}

// Wanted gives what all candidates ask for, by name. Where two ask for one tree, the host that it is on decides, then the one whose
// name comes first.
func (l *Ledger) Wanted(ctx context.Context) ([]Wanted, error) {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.keeper(), clientv3.WithPrefix())
	})
	if err != nil {
		return nil, err
	}
	type asked struct {
		Wanted
		by string
	}
	var all []asked
	for _, kv := range res.Kvs {
		var c Candidate
		if err := json.Unmarshal(kv.Value, &c); err != nil {
			return nil, fmt.Errorf("key %s is damaged: %w", kv.Key, err)
		}
		for _, s := range c.Staff {
			if strings.HasPrefix(s.Tree, "/") {
				s.Tree = c.Node + ":" + s.Tree
			}
			all = append(all, asked{Wanted{s, Fence{string(kv.Key), kv.CreateRevision, "what node " + c.Node + " asks its keeper for"}}, c.Node})
		}
	}
	slices.SortFunc(all, func(a, b asked) int {
		if c := strings.Compare(a.Tree, b.Tree); c != 0 {
			return c
		}
		own := func(s asked) int {
			if strings.HasPrefix(s.Tree, s.by+":") {
				return 0
			}
			return 1
		}
		if c := own(a) - own(b); c != 0 {
			return c
		}
		return strings.Compare(a.by, b.by)
	})
	var wanted []Wanted
	for _, s := range all {
		if n := len(wanted); n == 0 || wanted[n-1].Tree != s.Tree {
			wanted = append(wanted, s.Wanted)
		}
	}
	return wanted, nil
}

// errMemory means that another wrote what a keeper was about to: a later keeper, or who reset it.
var errMemory = errors.New("it was changed meanwhile, or the keeper's term is over")

// Memories gives what the fleet's keepers remember of each tree.
func (l *Ledger) Memories(ctx context.Context) (map[string][]byte, error) {
	memories, _, err := l.memories(ctx)
	return memories, err
}

func (l *Ledger) memories(ctx context.Context) (memories map[string][]byte, mods map[string]int64, err error) {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.memories(), clientv3.WithPrefix())
	})
	if err != nil {
		return nil, nil, err
	}
	memories, mods = map[string][]byte{}, map[string]int64{}
	for _, kv := range res.Kvs {
		tree, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(string(kv.Key), l.keys.memories()))
		if err != nil {
			return nil, nil, fmt.Errorf("key %s is damaged: %w", kv.Key, err)
		}
		memories[string(tree)], mods[string(tree)] = kv.Value, kv.ModRevision
	}
	return memories, mods, nil
}

// Recall gives what was remembered, and begins anew from there.
func (t *Term) Recall(ctx context.Context) (memories map[string][]byte, err error) {
	memories, t.known, err = t.l.memories(ctx)
	return memories, err
}

// Remember writes what is known of tree, if the term stands and nobody wrote there since it was read.
func (t *Term) Remember(ctx context.Context, tree string, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key := t.l.keys.memory(tree)
	res, err := t.l.txn(ctx, []clientv3.Cmp{t.stands(), clientv3.Compare(clientv3.ModRevision(key), "=", t.known[tree])},
		[]clientv3.Op{clientv3.OpPut(key, string(raw))}, nil)
	if err != nil {
		return fmt.Errorf("remember %s: %w", tree, err)
	}
	if !res.Succeeded {
		return fmt.Errorf("remember %s: %w", tree, errMemory)
	}
	t.known[tree] = res.Header.Revision
	return nil
}

// Amend changes what is remembered of tree, by hand, and reports whether there was anything.
func (l *Ledger) Amend(ctx context.Context, tree string, change func([]byte) ([]byte, error)) (bool, error) {
	key := l.keys.memory(tree)
	for {
		res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) { return c.Get(ctx, key) })
		if err != nil || len(res.Kvs) == 0 {
			return false, err
		}
		now, err := change(res.Kvs[0].Value)
		if err != nil {
			return false, err
		}
		done, err := l.txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", res.Kvs[0].ModRevision)},
			[]clientv3.Op{clientv3.OpPut(key, string(now))}, nil)
		switch {
		case err != nil && !errors.Is(err, errLost):
			return false, err
		case err == nil && done.Succeeded:
			return true, nil
		case !pause(ctx): // an answer that was lost: the same again does no harm
			return false, l.gaveUp(ctx, err)
		}
	}
}

// ErrStands means that what became of a reservation is not to be asked yet: it is on its way.
var ErrStands = errors.New("it stands")

// Fate asks node what became of the reservation id, which an order of its keeper's had: the answer is node's daemon's own. One that is
// not found was never accepted, and never will be: its order is gone, without which nothing is reserved, and then its hold is.
func (l *Ledger) Fate(ctx context.Context, node, id string) (json.RawMessage, error) {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).Then(clientv3.OpGet(l.keys.order(node, id)), clientv3.OpGet(l.keys.of(node).hold(id))).Commit()
	})
	if err != nil {
		return nil, err
	}
	if len(res.Responses[0].GetResponseRange().Kvs) > 0 {
		return nil, fmt.Errorf("node %s has the order of reservation %s: %w", node, id, ErrStands)
	}
	if len(res.Responses[1].GetResponseRange().Kvs) > 0 {
		return nil, fmt.Errorf("node %s holds the tree of reservation %s: %w", node, id, ErrStands)
	}
	return l.ask(ctx, node, id)
}

// ask has node say what its daemon knows of the reservation id.
func (l *Ledger) ask(ctx context.Context, node, id string) (json.RawMessage, error) {
	o := Order{Ask: id}
	o.Order.ID = "ask-" + ulid.Make().String()
	_, lease, err := l.post(ctx, patience, node, o)
	if err != nil {
		return nil, err
	}
	a, err := l.hear(ctx, node, o.Order.ID)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	l.revoke(after, lease)
	switch {
	case err != nil:
		return nil, fleet.Refuse(fleet.CodeDaemonUnreachable, "node %s does not say what became of reservation %s: %w", node, id, err)
	case a.Refusal != nil:
		return nil, a.Refusal
	}
	return a.Status, nil
}
