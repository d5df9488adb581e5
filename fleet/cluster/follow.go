package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

const (
	// gather is how long what changes together is waited for.
	gather = 5 * time.Millisecond
	// infoEvery is how often the servers are asked how they are, infoPause the least time between two of those questions.
	infoEvery = 3 * time.Second
	infoPause = 250 * time.Millisecond
)

// roster is the keys that tell of hosts: hold/…, member/… and node/… lie side by side, so that one list and one watch, at one
// revision, cover them. What else lies between them is passed over.
func (k keys) roster() span { return span{k.allHolds(), clientv3.GetPrefixRangeEnd(k.at(""))} }

// Follow tells of the hosts of the fleet, by name, with their members and what they hold, and of how the cluster is, until ctx ends:
// at once, and again whenever that changes. A change that the connection hid is told once it is back. While etcd is not heard the
// hosts stay as they were, and info says why and since when; they are nil until it was heard once. tell is called by one goroutine, and
// what it is given is never changed again. A damaged key is left out here: who decides by it is refused.
func (l *Ledger) Follow(ctx context.Context, tell func(nodes []fleet.Node, info fleet.ClusterInfo)) {
	f := follower{
		Ledger: l, info: fleet.ClusterInfo{Fleet: l.Fleet, Node: l.Node},
		changed: make(chan struct{}, 1), doubt: make(chan struct{}, 1),
	}
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { l.mirrorOf(ctx, l.keys.roster(), f.list, f.change, func() { token(f.doubt) }) })
	others.Go(func() { f.ask(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
		}
		if sleep(ctx, gather); ctx.Err() == nil {
			tell(f.view())
		}
	}
}

// follower is what Follow knows.
type follower struct {
	*Ledger
	changed chan struct{} // there is something to tell
	doubt   chan struct{} // the cluster may be another than info says

	mu    sync.Mutex // guards all below
	hosts map[string]*host
	info  fleet.ClusterInfo
}

// host is a node in pieces: what each of its keys says of it.
type host struct {
	parts map[string]fleet.Node
	whole *fleet.Node // nil where it is to be put together anew
}

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// list takes what stands in place of all that was known.
func (f *follower) list(kvs []*mvccpb.KeyValue) {
	f.mu.Lock()
	f.hosts = map[string]*host{}
	for _, kv := range kvs {
		f.put(kv)
	}
	f.info.HeardAt = time.Now()
	f.mu.Unlock()
	token(f.changed)
	token(f.doubt) // it may have been away
}

func (f *follower) change(events []*clientv3.Event) {
	f.mu.Lock()
	for _, e := range events {
		if e.Type == clientv3.EventTypeDelete {
			f.drop(string(e.Kv.Key))
		} else {
			f.put(e.Kv)
		}
	}
	f.info.HeardAt = time.Now()
	f.mu.Unlock()
	token(f.changed)
}

// parse says what a key below the root tells of, and of which node.
func (f *follower) parse(key string) (kind, node string, ok bool) {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(key, f.keys.root()), "/")
	node, _, _ = strings.Cut(rest, "/")
	return kind, node, node != "" && (kind == "hold" || kind == "member" || kind == "node")
}

func (f *follower) put(kv *mvccpb.KeyValue) {
	kind, node, ok := f.parse(string(kv.Key))
	if !ok {
		return
	}
	part := fleet.Node{Name: node, Lost: true}
	if tellOf(&part, kind == "node", kind == "member", kv) != nil {
		f.drop(string(kv.Key))
		return
	}
	h := f.hosts[node]
	if h == nil {
		h = &host{parts: map[string]fleet.Node{}}
		f.hosts[node] = h
	}
	h.parts[string(kv.Key)], h.whole = part, nil
}

func (f *follower) drop(key string) {
	_, node, _ := f.parse(key)
	h := f.hosts[node]
	if h == nil {
		return
	}
	delete(h.parts, key)
	if h.whole = nil; len(h.parts) == 0 {
		delete(f.hosts, node)
	}
}

// view is everything, with only those hosts put together anew that are others by now.
func (f *follower) view() ([]fleet.Node, fleet.ClusterInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts == nil {
		return nil, f.info
	}
	nodes := make([]fleet.Node, 0, len(f.hosts))
	for _, name := range slices.Sorted(maps.Keys(f.hosts)) {
		h := f.hosts[name]
		if h.whole == nil {
			h.whole = h.assemble(name)
		}
		nodes = append(nodes, *h.whole)
	}
	return nodes, f.info
}

func (h *host) assemble(name string) *fleet.Node {
	n := &fleet.Node{Name: name, Lost: true}
	for _, key := range slices.Sorted(maps.Keys(h.parts)) {
		part := h.parts[key]
		if !part.Lost {
			n.Lost, n.Host, n.Boot, n.Version = false, part.Host, part.Boot, part.Version
		}
		n.Members, n.Held = append(n.Members, part.Members...), append(n.Held, part.Held...)
	}
	addUnlisted(n)
	return n
}

// ask asks the servers how they are, again and again.
func (f *follower) ask(ctx context.Context) {
	tick := time.NewTicker(infoEvery)
	defer tick.Stop()
	for {
		info := f.Info(ctx)
		if ctx.Err() != nil {
			return
		}
		f.mu.Lock()
		if info.HeardAt.Before(f.info.HeardAt) {
			info.HeardAt = f.info.HeardAt
		}
		f.info = info
		f.mu.Unlock()
		token(f.changed)
		sleep(ctx, infoPause)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-f.doubt:
		}
	}
}
