package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// nodeLease is how long a host counts as alive of which nothing is heard, in seconds.
const nodeLease = 15

// lookEvery is how often a host makes sure that its key is there.
const lookEvery = 5 * time.Second

// Presence is what a host says of itself as long as its daemon runs.
type Presence struct {
	// Daemon tells the daemons of one state directory from all others.
	Daemon  string `json:"daemon"`
	Host    string `json:"host"`
	Boot    string `json:"boot"`
	Version string `json:"version"`
}

// errTwice means that another host goes by this node's name.
var errTwice = errors.New("another daemon goes by this node's name")

// Join makes sure that no other daemon goes by this node's name. A cluster that does not answer is no error: [Ledger.Attend] asks
// again.
func (l *Ledger) Join(ctx context.Context, p Presence) error {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := l.there(asking, p)
	if r := fleet.RefusalOf(err); r != nil && r.Code == fleet.CodeClusterUnreachable {
		return nil
	}
	return err
}

// there gives the revision of this node's key, 0 where there is none. One of another daemon is an error.
func (l *Ledger) there(ctx context.Context, p Presence) (mod int64, err error) {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.here())
	})
	if err != nil || len(res.Kvs) == 0 {
		return 0, err
	}
	var other Presence
	if json.Unmarshal(res.Kvs[0].Value, &other) == nil && other.Daemon != p.Daemon {
		return 0, fleet.Refuse(fleet.CodeBadRequest, "node %s of fleet %s: %w, on host %s", l.Node, l.Fleet, errTwice, other.Host).
			WithHint("give each host a name of its own in [cluster] node")
	}
	return res.Kvs[0].ModRevision, nil
}

// Attend keeps this host present until ctx ends, and takes it off then. Trouble is said once for each kind.
func (l *Ledger) Attend(ctx context.Context, p Presence, trouble func(error)) {
	told := ""
	for ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, patience)
		lease, err := l.appear(asking, p)
		cancel()
		if err == nil {
			told = ""
			err = l.keepAlive(ctx, lease)
		}
		if ctx.Err() != nil {
			leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			l.revoke(leaving, lease)
			cancel()
			return
		}
		if err.Error() != told {
			told = err.Error()
			trouble(fmt.Errorf("node %s is not to be seen in the cluster: %w", l.Node, err))
		}
		sleep(ctx, time.Second)
	}
}

// appear writes the host's key on a new lease, over one that this daemon, or one before it, left.
func (l *Ledger) appear(ctx context.Context, p Presence) (clientv3.LeaseID, error) {
	if err := l.declare(ctx); err != nil {
		return 0, err
	}
	value, err := json.Marshal(p)
	if err != nil {
		return 0, fmt.Errorf("encode the presence: %w", err)
	}
	lease, err := once(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
		return c.Grant(ctx, nodeLease)
	})
	if err != nil {
		return 0, err
	}
	for {
		was, err := l.there(ctx, p)
		if err != nil {
			l.revoke(ctx, lease.ID)
			return 0, err
		}
		res, err := l.txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(l.keys.here()), "=", was)},
			[]clientv3.Op{clientv3.OpPut(l.keys.here(), string(value), clientv3.WithLease(lease.ID))}, nil)
		if err != nil {
			return lease.ID, err // what it wrote, if it did, ends with the lease or is written over
		}
		if res.Succeeded {
			return lease.ID, nil
		}
	}
}

// keepAlive keeps lease alive until that fails, or ctx ends.
func (l *Ledger) keepAlive(ctx context.Context, lease clientv3.LeaseID) error {
	c, err := l.client()
	if err != nil {
		return err
	}
	alive, err := c.KeepAlive(ctx, lease)
	if err != nil {
		return err
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case _, ok := <-alive:
			if !ok {
				return errors.New("its lease has ended: nothing was heard of it for too long")
			}
		case <-look.C:
			if err := l.isHere(ctx); err != nil {
				return err
			}
		}
	}
}

// isHere reports a key of this node that somebody deleted. No answer is none.
func (l *Ledger) isHere(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res, err := once(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.here(), clientv3.WithCountOnly())
	})
	if err == nil && res.Count == 0 {
		return errors.New("its key was deleted")
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
