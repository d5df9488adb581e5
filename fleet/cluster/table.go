package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// What Init found of the slot table, or made of it.
const (
	TableWritten  = "written"
	TableSame     = "same"
	TableReplaced = "replaced"
)

// Checked is what Init came to.
type Checked struct {
	Table string `json:"table"`
	Rows  int    `json:"slots"`
	// Added and Removed are what this host's table has more than the fleet's had, and less.
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	// LeaseAsked is how long a lease was asked for, LeaseLasted how long it held its key.
	LeaseAsked  float64 `json:"lease_asked_s"`
	LeaseLasted float64 `json:"lease_lasted_s"`
}

// Init makes sure that the cluster serves a fleet: it answers, this host may write below the fleet's prefix, and leases end in time. Then
// it makes the slot table of this host the fleet's. Another one is replaced only where replace is set, and no slot is held that
// would vanish; show is given the difference first.
func (l *Ledger) Init(ctx context.Context, window time.Duration, replace bool, show func(Checked)) (Checked, error) {
	c, err := l.compare(ctx, window)
	if err != nil {
		return c, l.diagnosed(err)
	}
	if c.Table == TableReplaced {
		show(c)
		if !replace {
			return c, fleet.Refuse(fleet.CodeSlotsDiffer, "fleet %s has another slot table than this host: nothing was changed", l.Fleet).
				WithHint("make fleetdeck.toml the same on every host; where this one is right, 'fleetdeck cluster init --slots' replaces it")
		}
	}
	if err := l.tryLease(ctx, window, &c); err != nil {
		return c, l.diagnosed(err)
	}
	asking, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	if c.Table == TableReplaced {
		err = l.replaceTable(asking)
	} else {
		err = l.declare(asking)
	}
	return c, l.diagnosed(err)
}

// compare says how this host's table differs from the fleet's, and what is to be done with it.
func (l *Ledger) compare(ctx context.Context, window time.Duration) (Checked, error) {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	c := Checked{Table: TableSame, Rows: len(l.Slots), Added: []string{}, Removed: []string{}}
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.slots())
	})
	if err != nil {
		return c, err
	}
	if len(res.Kvs) == 0 {
		c.Table = TableWritten
		return c, nil
	}
	if string(res.Kvs[0].Value) == l.table() {
		return c, nil
	}
	c.Table = TableReplaced
	var theirs, ours []string
	json.Unmarshal(res.Kvs[0].Value, &theirs) // a damaged one has no rows
	json.Unmarshal([]byte(l.table()), &ours)
	c.Added, c.Removed = without(ours, theirs), without(theirs, ours)
	return c, nil
}

func without(rows, others []string) []string {
	return slices.DeleteFunc(append([]string{}, rows...), func(r string) bool { return slices.Contains(others, r) })
}

// replaceTable makes this host's table the fleet's, as long as each slot that is held is in it.
func (l *Ledger) replaceTable(ctx context.Context) error {
	prefix := l.keys.allSlots()
	for {
		res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
			return c.Get(ctx, prefix, clientv3.WithPrefix())
		})
		if err != nil {
			return err
		}
		var kept []string
		json.Unmarshal([]byte(l.table()), &kept)
		for _, kv := range res.Kvs {
			if held := rowOf(strings.TrimPrefix(string(kv.Key), prefix)); !slices.Contains(kept, held) {
				id := string(kv.Value)
				return fleet.Refuse(fleet.CodeSlotUnavailable, "the slot %q would vanish, and is held by reservation %s%s: nothing was changed", held, id, l.whose(ctx, id)).
					WithHint("end that member first, or leave the slot in the table")
			}
		}
		still := clientv3.Compare(clientv3.ModRevision(prefix), "<", res.Header.Revision+1).WithPrefix()
		put, err := l.txn(ctx, []clientv3.Cmp{still}, []clientv3.Op{clientv3.OpPut(l.keys.slots(), l.table())}, nil)
		switch {
		case err == nil && put.Succeeded:
			return nil
		case err != nil && !errors.Is(err, errLost):
			return err
		case !pause(ctx):
			return l.unknown("the slot table was replaced", ctx.Err())
		}
	}
}

// rowOf is the row of the table that ROLE/PROFILE/NAME, as a key has it, stands for.
func rowOf(key string) string {
	parts := strings.Split(key, "/")
	for i, p := range parts {
		if plain, err := url.PathUnescape(p); err == nil {
			parts[i] = plain
		}
	}
	if len(parts) != 3 {
		return key
	}
	return row(parts[0], parts[1], parts[2])
}

// leaseLate is how much later than asked for a lease may end until it is no lease.
const leaseLate = 15 * time.Second

// tryLease writes a key on the shortest lease, and waits until that takes it away.
func (l *Ledger) tryLease(ctx context.Context, window time.Duration, c *Checked) error {
	asking, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	key := l.keys.probe()
	began := time.Now()
	granted, err := read(asking, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
		lease, err := c.Grant(ctx, minLease)
		if err == nil {
			_, err = c.Put(ctx, key, began.UTC().Format(time.RFC3339Nano), clientv3.WithLease(lease.ID))
		}
		return lease, err
	})
	if err != nil {
		return err
	}
	asked := time.Duration(granted.TTL) * time.Second
	waiting, cancel := context.WithTimeout(ctx, asked+leaseLate)
	defer cancel()
	for {
		res, err := read(waiting, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
			return c.Get(ctx, key)
		})
		lasted := time.Since(began)
		switch {
		case err != nil:
			return err
		case len(res.Kvs) > 0 && res.Kvs[0].Lease != int64(granted.ID): // another init has its own there
			return nil
		case len(res.Kvs) == 0 && lasted < asked:
			return fmt.Errorf("a lease of %s ended after %s: the clock of etcd's leader runs too fast for any grace to hold", asked, lasted.Round(time.Millisecond))
		case len(res.Kvs) == 0:
			c.LeaseAsked, c.LeaseLasted = asked.Seconds(), lasted.Seconds()
			return nil
		case !pause(waiting):
			return fmt.Errorf("a lease of %s has not ended after %s: no reservation would ever end by itself; look at etcd's leader", asked, lasted.Round(time.Second))
		}
	}
}

// diagnosed says of an error what is to be mended, where that can be told.
func (l *Ledger) diagnosed(err error) error {
	if err == nil {
		return nil
	}
	r, said := fleet.RefusalOf(err), err.Error()
	if s := (silent{}); errors.As(err, &s) {
		said += ": " + s.err.Error()
	}
	if r == nil || r.Code != fleet.CodeClusterUnreachable {
		return err
	}
	switch {
	case strings.Contains(said, "handshake failed"):
		r.Hint = "look at ca, cert and key in [cluster], at the name in the servers' certificates, and whether the end points speak https://"
	case strings.Contains(said, "server preface"):
		r.Hint = "the end points speak something else than http://: do they want https://?"
	}
	return r
}
