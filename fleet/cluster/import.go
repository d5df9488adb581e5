package cluster

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
)

// Moving is a tree, or several, that a host of its own holds and that is to be held in the cluster under the same id.
type Moving struct {
	ledger.Claim
	// Member says that it is a member's. Otherwise it is a launch or a reservation, whose grace ends at Deadline.
	Member, Launching bool
	Deadline          fleet.Deadline
	Dispatcher        fleet.Dispatcher
}

// Import holds all of moving for this host, or changes nothing and says what is in the way. An error of
// [fleet.CodeOutcomeUnknown] is the exception: asked for again it finishes. What this host holds already stays, if moving or
// known names its id: by that an import that was cut off is told from another host of the same name. With dry nothing is
// held, and an error says what would be in the way.
func (l *Ledger) Import(ctx context.Context, window time.Duration, moving []Moving, known func(id string) bool, dry bool) error {
	asking, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	if err := l.declare(asking); err != nil {
		return err
	}
	before, err := l.standsOf(asking, l.Node)
	if err != nil {
		return err
	}
	stood := map[string]bool{}
	for _, h := range before.holds {
		stood[h.ID] = h.State == member
		if !known(h.ID) && !slices.ContainsFunc(moving, func(m Moving) bool { return m.ID == h.ID }) {
			return fleet.Refuse(fleet.CodeNodePresent, "node %s of fleet %s holds %s for reservation %s, which nobody here knows of", l.Node, l.Fleet, h.Trees[0].Path, h.ID).
				WithHint("is another host of that name lost? give this one a name of its own in [cluster] node")
		}
	}
	holds, err := l.moved(asking, moving)
	if err != nil {
		return err
	}
	chunks := l.chunks(holds)
	for _, some := range chunks { // whatever is in the way is found before anything is written
		if _, err := l.vacant(asking, some); err != nil {
			return err
		}
	}
	if dry {
		return nil
	}
	for i, some := range chunks {
		if err := l.lease(asking, some); err != nil {
			return l.undo(ctx, window, chunks[:i], stood, err)
		}
		if err := l.retake(asking, some...); err != nil {
			return l.undo(ctx, window, chunks[:i+1], stood, err)
		}
	}
	return nil
}

// moved makes the holds of moving. A reservation of a role that needs a slot gets one that nobody has.
func (l *Ledger) moved(ctx context.Context, moving []Moving) ([]*hold, error) {
	res, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, l.keys.allSlots(), clientv3.WithPrefix())
	})
	if err != nil {
		return nil, err
	}
	by := map[string]string{}
	for _, kv := range res.Kvs {
		by[string(kv.Key)] = string(kv.Value)
	}
	var holds []*hold
	for _, m := range moving {
		h := l.claimed(m.Claim)
		h.Dispatcher, h.Deadline = m.Dispatcher, m.Deadline
		switch {
		case m.Launching:
			h.State = launching
		case !m.Member:
			h.State = reserved
		}
		if h.Slot != "" {
			by[l.keys.slot(h.Role, h.Profile, h.Slot)] = h.ID
		}
		holds = append(holds, h)
	}
	for _, h := range holds {
		if h.State != reserved || h.Slot != "" || !l.limited(h.Role) {
			continue
		}
		for _, owner := range []string{h.ID, ""} { // its own from an import that was cut off, else a free one
			for _, s := range l.Slots {
				key := l.keys.slot(s.Role, s.Profile, s.Name)
				if h.Slot == "" && s.Role == h.Role && s.Profile == h.Profile && by[key] == owner {
					h.Slot, by[key] = s.Name, h.ID
				}
			}
		}
		if h.Slot == "" {
			return nil, fleet.Refuse(fleet.CodeSlotUnavailable, "%s is reserved for %s on %s, and no slot of the fleet is left for it", h.Trees[0].Path, h.Role, h.Profile).
				WithHint("wait until its grace is over, or drop it with 'fleetdeck release'")
		}
	}
	return holds, nil
}

// limited reports whether a role needs a slot.
func (l *Ledger) limited(role fleet.Role) bool {
	return role != fleet.RoleDev || slices.ContainsFunc(l.Slots, func(s fleet.Slot) bool { return s.Role == role })
}

// chunks are holds in as few portions as transactions can take.
func (l *Ledger) chunks(holds []*hold) (chunks [][]*hold) {
	room := 0
	for _, h := range holds {
		n := len(l.keys.names(h))
		if room < n || len(chunks) == 0 {
			chunks, room = append(chunks, nil), maxOps-1 // the slot table is looked at too
		}
		chunks[len(chunks)-1] = append(chunks[len(chunks)-1], h)
		room -= n
	}
	return chunks
}

// lease gives those of holds that are no member's a lease as long as is left of their grace. One that is over ends soon.
func (l *Ledger) lease(ctx context.Context, holds []*hold) error {
	for _, h := range holds {
		if h.State == member {
			continue
		}
		left := int64(math.Ceil(h.Deadline.Remaining(l.Now()).Seconds()))
		granted, err := read(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
			return c.Grant(ctx, max(minLease, left))
		})
		if err != nil {
			return err
		}
		h.lease = granted.ID
	}
	return nil
}

// undo drops what an import has held so far, which then has changed nothing.
func (l *Ledger) undo(ctx context.Context, window time.Duration, chunks [][]*hold, stood map[string]bool, why error) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), window)
	defer cancel()
	for _, h := range slices.Concat(chunks...) {
		if _, ok := stood[h.ID]; ok {
			continue
		}
		if _, err := l.drop(after, window, h.ID, func(*hold) bool { return true }); err != nil {
			return fleet.Refuse(fleet.CodeOutcomeUnknown, "some of this host's trees may be held in the cluster by now: %w", errors.Join(why, err)).
				WithHint("run the import again once etcd answers: it finishes, or takes back what it did")
		}
	}
	return why
}

// Leaving is what this host holds, for the way back out of the cluster: what its members hold is in the loss, and reservations and
// launches are entries. It is refused where a member would take along a slot of a fleet that has other hosts, unless finish says
// that a move is to be finished that has begun: it has been asked before, or takes back what an import had not completed.
func (l *Ledger) Leaving(ctx context.Context, window time.Duration, finish bool) (Loss, []fleet.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	loss, err := l.standsOf(ctx, l.Node)
	if err != nil {
		return loss, nil, err
	}
	nodes, err := l.Nodes(ctx)
	if err != nil {
		return loss, nil, err
	}
	others := ""
	for _, n := range nodes {
		if n.Name != l.Node && (!n.Lost || len(n.Held) > 0) {
			others = n.Name
		}
	}
	var entries []fleet.Entry
	for _, h := range loss.holds {
		if h.Slot != "" && others != "" && !finish {
			return loss, nil, fleet.Refuse(fleet.CodeNodePresent, "%s holds slot %s of a fleet that has other hosts, such as %s: it would be given away there while the agent here goes on", h.Trees[0].Path, h.Slot, others).
				WithHint("end that agent with 'fleetdeck stop' first; members without a slot may stay")
		}
		if h.State == member && h.lease != clientv3.NoLease && !finish {
			return loss, nil, fleet.Refuse(fleet.CodeBadRequest, "the member in %s is fenced: it would end as soon as nobody asks etcd for it any more", h.Trees[0].Path).
				WithHint("end that agent with 'fleetdeck stop' first; members without a slot may stay")
		}
		if h.State == member {
			continue
		}
		left, err := l.left(ctx, h)
		if err != nil {
			return loss, nil, err
		}
		if left.least < 0 {
			continue
		}
		for _, t := range h.Trees {
			entries = append(entries, h.entry(t, left))
		}
	}
	return loss, entries, nil
}

// Leave drops all that this host holds, if nothing of it has changed since it was looked at.
func (l *Ledger) Leave(ctx context.Context, window time.Duration, loss Loss) error {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	return l.dropAll(ctx, loss)
}
