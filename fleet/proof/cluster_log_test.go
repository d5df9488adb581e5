package proof_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet/proof"
)

// record is what etcd says of one fleet: each change of a key that a reservation takes, in order, from the first.
type record struct {
	events []*clientv3.Event
	// from and to bound the moment at which it was all.
	from, to int64
}

// readLog reads it by a watch from the beginning, up to a key that it writes itself.
func readLog(c *clientv3.Client, name string) (*record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	root, r := "/fleetdeck/v1/"+name+"/", &record{from: mono()}
	end := root + "end"
	for {
		if _, err := c.Put(ctx, end, ""); err == nil {
			break
		} else if ctx.Err() != nil {
			return nil, err
		}
	}
	r.to = mono()
	for res := range c.Watch(ctx, root, clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if err := res.Err(); err != nil {
			return nil, err
		}
		for _, e := range res.Events {
			switch key := string(e.Kv.Key); {
			case key == end:
				return r, nil
			case strings.HasPrefix(key, root+"hold/"), strings.HasPrefix(key, root+"tree/"), strings.HasPrefix(key, root+"slot/"):
				r.events = append(r.events, e)
			}
		}
	}
	return nil, fmt.Errorf("the history of fleet %s ends before its end: %w", name, ctx.Err())
}

// leased are the keys of reservations that are still to end by themselves.
func leased(c *clientv3.Client, name string) (keys []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, kind := range []string{"hold/", "tree/", "slot/"} {
		res, err := c.Get(ctx, "/fleetdeck/v1/"+name+"/"+kind, clientv3.WithPrefix())
		if err != nil {
			return nil, err
		}
		for _, kv := range res.Kvs {
			if kv.Lease != 0 {
				keys = append(keys, string(kv.Key))
			}
		}
	}
	return keys, nil
}

// standing is a key's value: whose it is, and what it says of that.
type standing struct {
	ID, State, Slot string
	fence           int64
}

// check holds what the dispatchers were told against what etcd says, and against the model.
func (r *record) check(ops []proof.Op, stays []proof.Stay) error {
	stands := map[string]standing{} // by key
	fences, slots := map[string]int64{}, map[string]string{}
	for i, e := range r.events {
		key := string(e.Kv.Key)
		_, kind, _ := strings.Cut(strings.TrimPrefix(key, "/fleetdeck/v1/"), "/")
		was := stands[key]
		if e.Type == clientv3.EventTypeDelete {
			delete(stands, key)
		} else {
			now := standing{fence: e.Kv.CreateRevision}
			if strings.HasPrefix(kind, "slot/") {
				now.ID = string(e.Kv.Value)
			} else if err := json.Unmarshal(e.Kv.Value, &now); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			if was.ID != "" && was.ID != now.ID {
				return fmt.Errorf("held twice: %s was given to %s while %s had it, at revision %d", key, now.ID, was.ID, e.Kv.ModRevision)
			}
			if stands[key] = now; strings.HasPrefix(kind, "hold/") {
				fences[now.ID], slots[now.ID] = now.fence, now.Slot
			}
		}
		if i+1 == len(r.events) || r.events[i+1].Kv.ModRevision != e.Kv.ModRevision {
			if err := whole(stands); err != nil {
				return fmt.Errorf("%w, at revision %d", err, e.Kv.ModRevision)
			}
		}
	}
	for i := range ops {
		if op := &ops[i]; op.Kind == proof.Reserve && op.Result == proof.Unknown {
			op.Slot = slots[op.ID] // it has one if it came to be
		}
	}
	for i, s := range stays {
		if id, ok := strings.CutPrefix(s.Place, "slot of "); ok {
			stays[i].Place = "slot " + slots[id]
		}
	}
	if err := proof.Alone(stays); err != nil {
		return fmt.Errorf("two worked at once: %w", err)
	}
	if err := proof.Fenced(stays, fences); err != nil {
		return fmt.Errorf("a fence shrank: %w", err)
	}
	names := []string{}
	for _, s := range clusterPool {
		names = append(names, s.Name)
	}
	return proof.Cluster{Trees: sixteen, Slots: map[string][]string{poolName: names}, Ops: append(ops, r.looks(stands)...)}.Check(patience)
}

// whole checks that trees and slots are held under a hold, and a hold with its tree and slot: all came and went at one revision.
func whole(stands map[string]standing) error {
	kinds := map[string]map[string]int64{"hold": {}, "tree": {}, "slot": {}}
	limited := map[string]bool{}
	for key, s := range stands {
		kind := strings.Split(key, "/")[4]
		kinds[kind][s.ID] = s.fence
		limited[s.ID] = limited[s.ID] || s.Slot != ""
	}
	for id, fence := range kinds["hold"] {
		if kinds["tree"][id] != fence || limited[id] && kinds["slot"][id] != fence {
			return fmt.Errorf("%s is held in part: tree and slot came at %d and %d, and the hold at %d", id, kinds["tree"][id], kinds["slot"][id], fence)
		}
	}
	for _, kind := range []string{"tree", "slot"} {
		for id := range kinds[kind] {
			if kinds["hold"][id] == 0 {
				return fmt.Errorf("%s has a %s and no hold", id, kind)
			}
		}
	}
	return nil
}

// looks are what stands at the end, as observations.
func (r *record) looks(stands map[string]standing) (ops []proof.Op) {
	look := func(id string, op proof.Op) {
		op.Kind, op.ID, op.Call, op.Return, op.Result = proof.Look, id, r.from, r.to, proof.Done
		for key, s := range stands {
			if s.ID == id && s.State == "member" && strings.Contains(key, "/hold/") {
				op.By = id
			}
		}
		ops = append(ops, op)
	}
	in, on := map[string]string{}, map[string]string{}
	for key, s := range stands {
		parts := strings.Split(key, "/")
		last := parts[len(parts)-1]
		switch parts[4] {
		case "tree":
			path, _ := base64.RawURLEncoding.DecodeString(last)
			in[parts[5]+":"+string(path)] = s.ID
		case "slot":
			on[last] = s.ID
		}
	}
	for _, tree := range sixteen {
		look(in[tree], proof.Op{Tree: tree})
	}
	for _, s := range clusterPool {
		look(on[s.Name], proof.Op{Pool: poolName, Slot: s.Name})
	}
	return ops
}
