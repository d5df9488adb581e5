package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// answerLease is how long an answer waits for who asked, in seconds.
const answerLease = 600

// Order is a dispatch that one host asks another for. The other host's daemon finds it by its watch and carries it out like one of
// its own, so that no host opens a port for another. Its id is that of its reservation: an order is carried out once at most.
//
//	        Send                 Serve                         Serve
//	(none) ──────► order written ─────► order claimed ─────► answer written
//	                    │  Send's patience is over
//	                    └──► order taken back: refused, provably
//
// An order that was claimed by a daemon that died before it answered is answered by the next one of that host, which finds out by its
// id what became of it. Until then it is unknown.
type Order struct {
	Order fleet.Order `json:"order"`
	// Wait says that the answer is to wait until the agent is listed.
	Wait bool             `json:"wait,omitempty"`
	From fleet.Dispatcher `json:"from"`
	// Ask makes it a question instead: what became of this reservation.
	Ask string `json:"ask,omitempty"`
	// Fences must stand when it is written and when its tree is reserved. Who carries it out finds the order's own among them: what its
	// sender has given up, or etcd has ended, reserves nothing.
	Fences []Fence `json:"fences,omitempty"`
	// Claim is set by who carries it out: it names one run of [Ledger.Serve].
	Claim string `json:"claim,omitempty"`
}

// answer is what an order came to.
type answer struct {
	Outcome fleet.Outcome  `json:"outcome"`
	Refusal *fleet.Refusal `json:"refusal,omitempty"`
	// Status answers a question.
	Status json.RawMessage `json:"status,omitempty"`
}

func answerOf(out fleet.Outcome, err error) answer {
	a := answer{Outcome: out}
	if err == nil {
		return a
	}
	a.Refusal = fleet.Refuse(fleet.CodeInternal, "%w", err)
	if r := fleet.RefusalOf(err); r != nil { // err may say more than it
		a.Refusal.Code, a.Refusal.Hint = r.Code, r.Hint
	}
	return a
}

func (a answer) result() (fleet.Outcome, error) {
	if a.Refusal != nil {
		return a.Outcome, a.Refusal
	}
	return a.Outcome, nil
}

// from has a refusal say whose paths and profiles it speaks of.
func (a *answer) from(node string) {
	if a.Refusal == nil {
		return
	}
	for _, message := range []*string{&a.Refusal.Message, &a.Outcome.Message} {
		if *message != "" && !strings.Contains(*message, "node "+node) {
			*message = "on node " + node + ": " + *message
		}
	}
}

// Send has o carried out by node, and waits for its answer as long as ctx lasts, but no longer than window for a cluster that does not
// take the order. The outcome is that of node's own dispatcher.
func (l *Ledger) Send(ctx context.Context, window time.Duration, node string, o Order) (fleet.Outcome, error) {
	if o.Order.ID == "" {
		o.Order.ID = ulid.Make().String()
	}
	id := o.Order.ID
	out := fleet.Outcome{Outcome: fleet.Refused, Tree: node + ":" + o.Order.Tree, Role: o.Order.Role, Profile: o.Order.Profile}
	mod, lease, err := l.post(ctx, window, node, o)
	if err != nil {
		if r := fleet.RefusalOf(err); r != nil {
			out.Code, out.Message, out.Hint = r.Code, r.Message, r.Hint
			if r.Code == fleet.CodeOutcomeUnknown {
				out.Outcome, out.Reservation = fleet.Unknown, id
			}
		}
		return out, err
	}
	a, err := l.hear(ctx, node, id)
	// Its order goes whatever came of it, and the caller may have turned away.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err == nil {
		l.revoke(after, lease)
		a.Outcome.Tree = node + ":" + a.Outcome.Tree
		a.from(node)
		return a.result()
	}
	res, terr := l.txn(after, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(l.keys.order(node, id)), "=", mod)},
		[]clientv3.Op{clientv3.OpDelete(l.keys.order(node, id))}, nil)
	if terr == nil && res.Succeeded {
		r := fleet.Refuse(fleet.CodeDaemonUnreachable, "node %s did not take the order in time: %w", node, err).
			WithHint("the order was taken back, and nothing was started")
		out.Code, out.Message, out.Hint = r.Code, r.Message, r.Hint
		return out, r
	}
	r := fleet.Refuse(fleet.CodeOutcomeUnknown, "nobody knows what became of the order to node %s (reservation %s): %w", node, id, err).
		WithHint("see 'fleetdeck members' and 'fleetdeck reservations' on that node")
	out.Outcome, out.Code, out.Message, out.Hint, out.Reservation = fleet.Unknown, r.Code, r.Message, r.Hint, id
	return out, r
}

// post writes the order, on a lease that lasts as long as its sender is patient. A cluster that gives no lease within window has taken nothing.
func (l *Ledger) post(ctx context.Context, window time.Duration, node string, o Order) (mod int64, lease clientv3.LeaseID, err error) {
	value, err := json.Marshal(o)
	if err != nil {
		return 0, 0, fmt.Errorf("encode the order: %w", err)
	}
	patient := answerLease * time.Second
	if end, ok := ctx.Deadline(); ok {
		patient = min(patient, time.Until(end))
	}
	asking, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	granted, err := read(asking, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
		return c.Grant(ctx, max(minLease, int64(patient/time.Second)+minLease))
	})
	if err != nil {
		return 0, 0, err
	}
	key := l.keys.order(node, o.Order.ID)
	conds := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(l.keys.at(node)), ">", 0), absent(key)}
	otherwise := []clientv3.Op{clientv3.OpGet(key)}
	for _, f := range o.Fences {
		conds, otherwise = append(conds, f.stands()), append(otherwise, clientv3.OpGet(f.Key, clientv3.WithKeysOnly()))
	}
	for {
		res, err := l.txn(ctx, conds, []clientv3.Op{clientv3.OpPut(key, string(value), clientv3.WithLease(granted.ID))}, otherwise)
		switch {
		case errors.Is(err, errLost):
			if !pause(ctx) {
				return 0, 0, l.unknown("node "+node+" has the order", err)
			}
		case err != nil:
			return 0, 0, err
		case res.Succeeded:
			return res.Header.Revision, granted.ID, nil
		default:
			if kvs := res.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 && kvs[0].Lease == int64(granted.ID) {
				return kvs[0].CreateRevision, granted.ID, nil // its answer was lost
			}
			l.revoke(ctx, granted.ID)
			for i, f := range o.Fences {
				if kvs := res.Responses[1+i].GetResponseRange().Kvs; len(kvs) == 0 || kvs[0].CreateRevision != f.Rev {
					return 0, 0, f.fallen()
				}
			}
			return 0, 0, fleet.Refuse(fleet.CodeDaemonUnreachable, "node %s: %w", node, errAbsent).
				WithHint("start it there with 'fleetdeck up'; nothing was ordered")
		}
	}
}

// hear waits for the answer.
func (l *Ledger) hear(ctx context.Context, node, id string) (a answer, err error) {
	ctx, heard := context.WithCancelCause(ctx)
	defer heard(nil)
	errHeard := errors.New("heard")
	take := func(kv *mvccpb.KeyValue) {
		if err = json.Unmarshal(kv.Value, &a); err != nil {
			err = fmt.Errorf("the answer %s is damaged: %w", kv.Key, err)
		}
		heard(errHeard)
	}
	l.mirror(ctx, l.keys.answer(node, id), func(kvs []*mvccpb.KeyValue) {
		for _, kv := range kvs {
			take(kv)
		}
	}, func(events []*clientv3.Event) {
		for _, e := range events {
			if e.Type == clientv3.EventTypePut {
				take(e.Kv)
			}
		}
	}, func() {})
	if context.Cause(ctx) != errHeard {
		return a, context.Cause(ctx)
	}
	return a, err
}

// Service is what a host does for others: it carries out a dispatch, finds out what came of one that an earlier [Ledger.Serve] had claimed and
// did not answer, and says what its daemon knows of a reservation. Without Recall such a dispatch stays unknown.
type Service struct {
	Carry, Recall func(context.Context, Order) (fleet.Outcome, error)
	Fate          func(ctx context.Context, id string) (json.RawMessage, error)
}

// Serve carries out what other hosts order of this one until ctx ends, and returns once all that it began is answered. What an earlier
// one made for orders that nobody waits for any more it recalls. Trouble is told of what could not be.
func (l *Ledger) Serve(ctx context.Context, s Service, trouble func(error)) {
	run := ulid.Make().String()
	var serving sync.WaitGroup
	defer serving.Wait()
	take := func(kv *mvccpb.KeyValue) {
		serving.Go(func() {
			if err := l.serve(ctx, run, kv, s); err != nil && ctx.Err() == nil {
				trouble(fmt.Errorf("order %s: %w", kv.Key, err))
			}
		})
	}
	if s.Recall != nil {
		left, err := l.leftMade(ctx) // before this run makes anything
		if err != nil && ctx.Err() == nil {
			trouble(fmt.Errorf("look what earlier orders left: %w", err))
		}
		for _, o := range left {
			serving.Go(func() {
				if _, err := s.Recall(ctx, o); err != nil && ctx.Err() == nil {
					trouble(fmt.Errorf("order %s, which nobody waits for any more: %w", o.Order.ID, err))
				}
			})
		}
	}
	l.mirror(ctx, l.keys.orders(), func(kvs []*mvccpb.KeyValue) {
		for _, kv := range kvs {
			take(kv)
		}
	}, func(events []*clientv3.Event) {
		for _, e := range events {
			if e.IsCreate() {
				take(e.Kv)
			}
		}
	}, func() {})
}

// answer is what o comes to, which reserves nothing once its own fence has fallen.
func (s Service) answer(ctx context.Context, o Order, own Fence, again bool) (a answer) {
	switch {
	case o.Ask != "":
		status, err := s.Fate(ctx, o.Ask)
		a = answerOf(fleet.Outcome{}, err)
		a.Status = status
		return a
	case again:
		return answerOf(s.Recall(ctx, o))
	}
	o.Fences = append(o.Fences, own)
	return answerOf(s.Carry(ctx, o))
}

// serve claims one order in the name of run, carries it out and answers it. One that run has claimed already, or that was taken back, is
// left alone.
func (l *Ledger) serve(ctx context.Context, run string, kv *mvccpb.KeyValue, s Service) error {
	var o Order
	if err := json.Unmarshal(kv.Value, &o); err != nil || o.Claim == run {
		return err
	}
	again := o.Claim != "" && o.Ask == ""
	if again && s.Recall == nil {
		return nil
	}
	key := string(kv.Key)
	o.Claim = run
	claimed, err := json.Marshal(o)
	if err != nil {
		return err
	}
	for mine := false; !mine; {
		res, err := l.txn(ctx, []clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision), absent(l.keys.answer(l.Node, o.Order.ID)),
		}, []clientv3.Op{clientv3.OpPut(key, string(claimed), clientv3.WithIgnoreLease())}, []clientv3.Op{clientv3.OpGet(key)})
		switch {
		case errors.Is(err, errLost) && pause(ctx):
			continue
		case err != nil:
			return err
		case !res.Succeeded:
			now := res.Responses[0].GetResponseRange().Kvs
			if len(now) == 0 || string(now[0].Value) != string(claimed) {
				return nil
			}
		}
		mine = true
	}
	value, err := json.Marshal(s.answer(ctx, o, Fence{Key: key, Rev: kv.CreateRevision, Of: "order " + o.Order.ID}, again))
	if err != nil {
		return err
	}
	// The daemon may be about to end: what was done is still said.
	saying, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLease*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(patience, cancel) })
	defer stop()
	_, err = read(saying, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.PutResponse, error) {
		lease, err := c.Grant(ctx, answerLease)
		if err != nil {
			return nil, err
		}
		return c.Put(ctx, l.keys.answer(l.Node, o.Order.ID), string(value), clientv3.WithLease(lease.ID))
	})
	return err
}
