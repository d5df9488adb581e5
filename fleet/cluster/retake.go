package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
)

// Retake makes what members of this host hold held again. One claim is one transaction. Keys of this host's trees whose hold is gone, as
// only a hand can have it, are dropped.
func (l *Ledger) Retake(ctx context.Context, claims []ledger.Claim) ([]ledger.Retaken, error) {
	holds := make([]*hold, len(claims))
	for i, c := range claims {
		holds[i] = l.claimed(c)
	}
	looking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seen, err := l.survey(looking, holds)
	if err == nil {
		err = l.dropStray(looking, seen)
	}
	if err != nil {
		return nil, err
	}
	var retaken []ledger.Retaken
	for i, c := range claims {
		if l.whole(holds[i], seen) {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, patience)
		err := l.retake(asking, holds[i])
		cancel()
		if taken := (*takenError)(nil); err != nil && !errors.As(err, &taken) {
			return retaken, err
		}
		retaken = append(retaken, ledger.Retaken{ID: c.ID, Err: err})
	}
	return retaken, nil
}

// claimed is the hold that a claim stands for.
func (l *Ledger) claimed(c ledger.Claim) *hold {
	h := &hold{ID: c.ID, State: member, Member: c.Member, Node: l.Node, Trees: c.Trees, Role: c.Role, Profile: c.Profile, Slot: c.Slot, ReservedAt: c.Since.UTC()}
	l.share(h)
	return h
}

// takenError is why a hold cannot be had: somebody else has something of it.
type takenError struct{ *fleet.Refusal }

func (e *takenError) Unwrap() error { return e.Refusal }

// retake holds all of holds in one transaction, each on its own lease, or says who is in the way. What of them is held already is
// written anew.
func (l *Ledger) retake(ctx context.Context, holds ...*hold) error {
	for {
		conds, err := l.vacant(ctx, holds)
		if err != nil {
			return err
		}
		var ops []clientv3.Op
		for _, h := range holds {
			puts, err := l.keys.puts(h, h.lease)
			if err != nil {
				return err
			}
			ops = append(ops, puts...)
		}
		res, err := l.txn(ctx, conds, ops, nil)
		switch {
		case err == nil && res.Succeeded:
			return nil
		case err != nil && !errors.Is(err, errLost):
			return err
		case err != nil && !pause(ctx): // else the next look tells what became of it
			return l.gaveUp(ctx, err)
		}
	}
}

// vacant looks whether all that holds are to have is free, or their own already, and gives the conditions under which it still is.
func (l *Ledger) vacant(ctx context.Context, holds []*hold) (conds []clientv3.Cmp, err error) {
	names, of := []string{l.keys.slots()}, []*hold{nil}
	for _, h := range holds {
		for _, name := range l.keys.names(h) {
			names, of = append(names, name), append(of, h)
		}
	}
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		var gets []clientv3.Op
		for _, name := range names {
			gets = append(gets, clientv3.OpGet(name))
		}
		return c.Txn(ctx).Then(gets...).Commit()
	})
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		var mod int64
		for _, kv := range res.Responses[i].GetResponseRange().Kvs {
			mod = kv.ModRevision
			if i == 0 {
				err = l.inTable(holds, kv.Value)
			} else {
				err = l.owned(ctx, of[i], name, kv.Value)
			}
			if err != nil {
				return nil, err
			}
		}
		conds = append(conds, clientv3.Compare(clientv3.ModRevision(name), "=", mod))
	}
	return conds, nil
}

// inTable refuses slots that the fleet's table has no more: others may stand in their place.
func (l *Ledger) inTable(holds []*hold, table []byte) error {
	var rows []string
	if err := json.Unmarshal(table, &rows); err != nil {
		return fleet.Refuse(fleet.CodeSlotsDiffer, "the slot table of fleet %s is damaged: %w", l.Fleet, err)
	}
	for _, h := range holds {
		if h.Slot != "" && !slices.Contains(rows, row(h.Role, h.Profile, h.Slot)) {
			return &takenError{fleet.Refuse(fleet.CodeSlotUnavailable, "slot %s (%s on %s) is not in the slot table of fleet %s", h.Slot, h.Role, h.Profile, l.Fleet)}
		}
	}
	return nil
}

// owned says whose the key name of h is, where it is not h's own.
func (l *Ledger) owned(ctx context.Context, h *hold, name string, value []byte) error {
	id := string(value)
	if l.keys.holdsValue(name) {
		other, err := decode([]byte(name), value, 0, 0, 0)
		if err != nil {
			return err
		}
		id = other.ID
	}
	if id == h.ID {
		return nil
	}
	if h.Slot != "" && name == l.keys.slot(h.Role, h.Profile, h.Slot) {
		return &takenError{fleet.Refuse(fleet.CodeSlotUnavailable, "slot %s of the member in %s is held by reservation %s%s", h.Slot, h.Trees[0].Path, id, l.whose(ctx, id))}
	}
	return &takenError{fleet.Refuse(fleet.CodeTreeOccupied, "%s is held by reservation %s%s", h.Trees[0].Path, id, l.whose(ctx, id))}
}

// whose says on which host the reservation id is, where that can be found out: for people.
func (l *Ledger) whose(ctx context.Context, id string) string {
	nodes, err := l.Nodes(ctx)
	if err != nil {
		return ""
	}
	for _, n := range nodes {
		for _, t := range n.Held {
			if t.ID == id {
				return ", " + t.State + " in " + n.Name + ":" + t.Tree
			}
		}
	}
	return ""
}
