package cluster

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/mutant"
)

// errAbsent means that nobody keeps the node's key alive.
var errAbsent = errors.New("its daemon has not reached the cluster, or is not heard of any more")

// minLease is the shortest lease that etcd grants.
const minLease = 2

// Reserve takes the draft's trees, and a slot where its role needs one, in one transaction. The roster only ever adds reasons to
// refuse: who holds a tree is decided by etcd.
func (l *Ledger) Reserve(ctx context.Context, window time.Duration, draft ledger.Draft, view ledger.View) (fleet.Entry, error) {
	return l.reserve(ctx, window, draft, view, nil)
}

func (l *Ledger) reserve(ctx context.Context, window time.Duration, draft ledger.Draft, view ledger.View, fences []Fence) (fleet.Entry, error) {
	asking, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	w, err := l.want(draft)
	if err != nil {
		return fleet.Entry{}, err
	}
	w.fences = fences
	seen, err := w.look(asking)
	if err != nil {
		return fleet.Entry{}, err
	}
	roster, err := view(ctx)
	if err != nil {
		return fleet.Entry{}, err
	}
	for _, m := range roster.Members {
		w.ended[m.Reservation] = !m.Alive()
	}
	for _, t := range w.hold.Trees {
		if h := fleet.Occupancy(t, nil, roster, l.Now()); !h.Free(draft.BesideForeign) {
			return fleet.Entry{}, h.Refusal(t, l.Now())
		}
	}
	// From here on the caller's leaving must not leave anything half known.
	deciding, cancel := context.WithTimeout(context.WithoutCancel(ctx), window)
	defer cancel()
	return l.take(deciding, w, seen)
}

// Foresee gives the refusal that etcd would answer to a reservation of draft now, or nil. It changes nothing.
func (l *Ledger) Foresee(ctx context.Context, window time.Duration, draft ledger.Draft) error {
	asking, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	w, err := l.want(draft)
	if err != nil {
		return err
	}
	seen, err := w.look(asking)
	if err != nil {
		return err
	}
	_, err = w.judge(seen)
	return err
}

// SlotsDiffer says so where the fleet goes by another slot table than this host, which is refused then.
func (l *Ledger) SlotsDiffer(ctx context.Context) error {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.slots())
	})
	if err == nil && len(res.Kvs) > 0 {
		_, err = l.sameSlots(res)
	}
	return err
}

// want is a reservation that is to be made.
type want struct {
	l     *Ledger
	hold  hold
	grace time.Duration
	renew bool
	// slots are the places that its role can have, in the order in which they are tried. limited says that it needs one.
	slots   []string
	limited bool
	// fences must stand when it is made.
	fences []Fence
	// ended is the reservations of this host's members that have ended: what they still hold is on its way back.
	ended map[string]bool
}

// leavingError is a refusal that will not stand for long: who is in the way has ended.
type leavingError struct{ error }

func (e leavingError) Unwrap() error { return e.error }

func (l *Ledger) want(draft ledger.Draft) (*want, error) {
	w := &want{l: l, ended: map[string]bool{}, grace: draft.Grace, renew: draft.Renew, hold: hold{
		ID: draft.ID, State: reserved, Node: l.Node, Role: draft.Role, Profile: draft.Profile, Dispatcher: draft.Dispatcher,
	}}
	if w.hold.ID == "" {
		w.hold.ID = ulid.Make().String()
	}
	for _, t := range append([]fleet.Tree{draft.Tree}, draft.Also...) {
		if slices.ContainsFunc(w.hold.Trees, t.Same) {
			return nil, fleet.Refuse(fleet.CodeBadRequest, "%s is named twice: each tree is reserved once", t.Path)
		}
		w.hold.Trees = append(w.hold.Trees, t)
	}
	l.share(&w.hold)
	for _, s := range l.Slots {
		w.limited = w.limited || s.Role == draft.Role
		if s.Role == draft.Role && s.Profile == draft.Profile {
			w.slots = append(w.slots, s.Name)
		}
	}
	w.limited = w.limited || draft.Role != fleet.RoleDev
	if w.limited && len(w.slots) == 0 {
		return nil, fleet.Refuse(fleet.CodeSlotUnconfigured, "no slot of role %s carries profile %s", draft.Role, draft.Profile).
			WithHint("add a [[slots]] entry for it to fleetdeck.toml, or choose another profile")
	}
	return w, nil
}

// looks read all that decides on w, at one revision: the slot table, the host, the hold of its id, the slots, then the fences, then each
// tree and its directory, and what it is to all hosts.
func (w *want) looks() []clientv3.Op {
	k := w.l.keys
	ops := []clientv3.Op{
		clientv3.OpGet(k.slots()), clientv3.OpGet(k.here(), clientv3.WithKeysOnly()), clientv3.OpGet(k.hold(w.hold.ID)),
		clientv3.OpGet(k.slotsOf(w.hold.Role, w.hold.Profile), clientv3.WithPrefix()),
	}
	for _, f := range w.fences {
		ops = append(ops, clientv3.OpGet(f.Key, clientv3.WithKeysOnly()))
	}
	for _, t := range w.hold.Trees {
		ops = append(ops, clientv3.OpGet(k.tree(t.Path)))
		if t.File != "" {
			ops = append(ops, clientv3.OpGet(k.dir(t.File)))
		}
	}
	for _, s := range w.hold.Shared {
		ops = append(ops, s.looks(k)...)
	}
	return ops
}

// look reads it, and changes nothing.
func (w *want) look(ctx context.Context) (*clientv3.TxnResponse, error) {
	return read(ctx, w.l, func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).Then(w.looks()...).Commit()
	})
}

// ready is what a look found in favour of a reservation: what the transaction goes by.
type ready struct {
	table int64 // the revision of the slot table
	slot  string
	mine  *hold // what stands under its id already, where it is to begin anew
}

// judge says what looks found: how w can be had, or who is in the way.
func (w *want) judge(seen *clientv3.TxnResponse) (r ready, err error) {
	at := 0
	next := func() *clientv3.GetResponse {
		at++
		return (*clientv3.GetResponse)(seen.Responses[at-1].GetResponseRange())
	}
	if r.table, err = w.l.sameSlots(next()); err != nil {
		return r, err
	}
	if next().Count == 0 {
		return r, fleet.Refuse(fleet.CodeDaemonUnreachable, "node %s: %w", w.hold.Node, errAbsent).
			WithHint("see 'fleetdeck events' there for what keeps it from the cluster; nothing was reserved")
	}
	for _, kv := range next().Kvs {
		if r.mine, err = decode(kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision, kv.Lease); err != nil {
			return r, err
		}
		if !w.renew || r.mine.State != reserved {
			return r, fleet.Refuse(fleet.CodeTreeReserved, "reservation %s stands already, for %s", r.mine.ID, r.mine.Trees[0].Path)
		}
	}
	taken := next()
	for _, f := range w.fences {
		if kvs := next().Kvs; len(kvs) == 0 || kvs[0].CreateRevision != f.Rev {
			return r, f.fallen()
		}
	}
	for _, t := range w.hold.Trees {
		held := next().Kvs
		if t.File != "" {
			if dir := next().Kvs; len(held) == 0 && len(dir) > 0 && string(dir[0].Value) != w.hold.ID {
				return r, fleet.Refuse(fleet.CodeTreeReserved, "the directory of %s is held under another path, by reservation %s", t.Path, dir[0].Value).
					WithHint("see 'fleetdeck reservations' and 'fleetdeck members' for it")
			}
		}
		for _, kv := range held {
			h, err := decode(kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision, kv.Lease)
			if err != nil {
				return r, err
			}
			switch {
			case w.ended[h.ID]:
				return r, leavingError{h.inTheWay(t, w.l.Now())}
			case h.ID != w.hold.ID:
				return r, h.inTheWay(t, w.l.Now())
			}
		}
	}
	for _, s := range w.hold.Shared {
		if err := s.taken(w, next); err != nil {
			return r, err
		}
	}
	if w.limited {
		r.slot, err = w.choose(taken, r.mine)
	}
	return r, err
}

// choose picks the first slot that nobody holds; one that stands under w's own id stays.
func (w *want) choose(taken *clientv3.GetResponse, mine *hold) (string, error) {
	if mine != nil && mine.Slot != "" {
		return mine.Slot, nil
	}
	by := map[string]string{}
	for _, kv := range taken.Kvs {
		by[string(kv.Key)] = string(kv.Value)
	}
	var holders []string
	leaving := false
	for _, name := range w.slots {
		id, isTaken := by[w.l.keys.slot(w.hold.Role, w.hold.Profile, name)]
		if !isTaken {
			return name, nil
		}
		holders, leaving = append(holders, name+" by reservation "+id), leaving || w.ended[id]
	}
	err := slotsTaken(w.hold.Role, w.hold.Profile, holders)
	if leaving {
		err = leavingError{err}
	}
	return "", err
}

// take carries w out, from what was seen last until etcd has decided: held, refused, or, with the window over, unknown.
func (l *Ledger) take(ctx context.Context, w *want, seen *clientv3.TxnResponse) (fleet.Entry, error) {
	for {
		r, err := w.judge(seen)
		if (errors.As(err, new(leavingError)) || errors.Is(err, errAbsent)) && pause(ctx) { // the host answers its socket, so it may be here in a moment
			again, lerr := w.look(ctx)
			if lerr == nil {
				seen = again
				continue
			}
			if ctx.Err() == nil { // else the window is over, and what was seen last is the answer
				err = lerr
			}
		}
		if err != nil {
			return fleet.Entry{}, err
		}
		// The grace begins before the lease does, so that it is over first: etcd ends a lease late, never early.
		began := l.Now()
		lease, err := once(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
			return c.Grant(ctx, max(minLease, int64(math.Ceil(w.grace.Seconds()))))
		})
		if errors.Is(err, errLost) { // at worst a lease that nothing hangs on
			if !pause(ctx) {
				return fleet.Entry{}, l.unreachable(err)
			}
			continue
		}
		if err != nil {
			return fleet.Entry{}, err
		}
		h := w.hold
		h.Slot, h.ReservedAt, h.Deadline = r.slot, began.Wall.UTC().Truncate(time.Millisecond), fleet.DeadlineAfter(began, w.grace)
		entry := h.entry(h.Trees[0], exactly(began, w.grace))
		conds, then, err := w.change(r, &h, lease.ID)
		if err != nil {
			return fleet.Entry{}, err
		}
		res, err := l.txn(ctx, conds, then, w.looks())
		if err == nil && res.Succeeded {
			if r.mine != nil {
				l.revoke(ctx, r.mine.lease)
			}
			return entry, nil
		}
		if mutant.ClusterLostIsRefused && errors.Is(err, errLost) {
			w.hold.ID = ulid.Make().String()
			if seen, err = w.look(ctx); err != nil {
				return fleet.Entry{}, err
			}
			continue
		}
		if errors.Is(err, errLost) {
			held, rerr := l.wasHeld(ctx, &h, lease.ID)
			switch {
			case rerr != nil:
				return entry, l.unknown("reservation "+h.ID+" of "+entry.Tree+" stands, which ends by itself with its grace", rerr)
			case held:
				return entry, nil
			}
			if seen, err = w.look(ctx); err != nil {
				return fleet.Entry{}, err
			}
			continue
		}
		l.revoke(ctx, lease.ID)
		if noLease(err) { // the answer took as long as the grace
			err = l.unreachable(err)
		}
		if err != nil {
			return fleet.Entry{}, err
		}
		seen = res
	}
}

// change is the transaction: nothing that was seen is another by now, and all keys are written.
func (w *want) change(r ready, h *hold, lease clientv3.LeaseID) (conds []clientv3.Cmp, then []clientv3.Op, err error) {
	k := w.l.keys
	conds = []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(k.slots()), "=", r.table),
		clientv3.Compare(clientv3.CreateRevision(k.here()), ">", 0),
	}
	for _, f := range w.fences {
		conds = append(conds, f.stands())
	}
	names := k.names(h)
	var mine []string
	if r.mine != nil {
		conds = append(conds, k.unchanged(r.mine))
		mine = k.names(r.mine)
	}
	for _, name := range names {
		if !slices.Contains(mine, name) && !(mutant.ClusterSlotNotCompared && strings.HasPrefix(name, k.root()+"slot/")) {
			conds = append(conds, absent(name))
		}
	}
	if then, err = k.puts(h, lease); err != nil {
		return nil, nil, err
	}
	for _, name := range mine {
		if !slices.Contains(names, name) {
			then = append(then, clientv3.OpDelete(name))
		}
	}
	return conds, then, nil
}

// wasHeld finds out what became of a transaction that got no answer. It is held, or it never will be: what does not stand yet
// cannot come late, since its lease is revoked before the answer is no.
func (l *Ledger) wasHeld(ctx context.Context, h *hold, lease clientv3.LeaseID) (bool, error) {
	stands := func() (bool, error) {
		now, err := l.find(ctx, h.ID)
		return now != nil && now.lease == lease, err
	}
	if held, err := stands(); held || err != nil {
		return held, err
	}
	_, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseRevokeResponse, error) {
		res, err := c.Revoke(ctx, lease)
		if noLease(err) {
			err = nil
		}
		return res, err
	})
	return false, err
}

// revoke ends a lease that nothing hangs on any more. Where that fails it ends by itself.
func (l *Ledger) revoke(ctx context.Context, lease clientv3.LeaseID) {
	once(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseRevokeResponse, error) {
		return c.Revoke(ctx, lease)
	})
}

// find gives the hold of id as it stands, or nil.
func (l *Ledger) find(ctx context.Context, id string) (*hold, error) {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.hold(id))
	})
	if err != nil || len(res.Kvs) == 0 {
		return nil, err
	}
	kv := res.Kvs[0]
	return decode(kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision, kv.Lease)
}
