package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fleetdeck/fleet"
)

// table is the slot table of this host as it stands in etcd: "ROLE on PROFILE: NAME" each, sorted, so that the same table is the same text.
func (l *Ledger) table() string {
	rows := []string{}
	for _, s := range l.Slots {
		rows = append(rows, row(s.Role, s.Profile, s.Name))
	}
	slices.Sort(rows)
	text, _ := json.Marshal(rows) // strings always can be
	return string(text)
}

// row is one slot in the table.
func row(role fleet.Role, profile, name string) string {
	return fmt.Sprintf("%s on %s: %s", role, profile, name)
}

// sameSlots makes sure that the fleet goes by the slot table of this host, and gives the revision at which it does.
func (l *Ledger) sameSlots(got *clientv3.GetResponse) (revision int64, err error) {
	if len(got.Kvs) == 0 {
		return 0, fleet.Refuse(fleet.CodeSlotsDiffer, "fleet %s has no slot table in the cluster yet", l.Fleet).
			WithHint("the first daemon of the fleet writes it: start it with 'fleetdeck up'")
	}
	kv := got.Kvs[0]
	if theirs := string(kv.Value); theirs != l.table() {
		return 0, l.slotsDiffer(theirs)
	}
	return kv.ModRevision, nil
}

func (l *Ledger) slotsDiffer(theirs string) error {
	return fleet.Refuse(fleet.CodeSlotsDiffer, "this host's [[slots]] are %s, and those of fleet %s are %s", l.table(), l.Fleet, theirs).
		WithHint("make fleetdeck.toml the same on every host; where this one is right, run 'fleetdeck cluster init --slots' here, then 'fleetdeck down' and 'fleetdeck up'")
}

// declare makes the slot table of this host the fleet's, where it has none, and refuses where it has another.
func (l *Ledger) declare(ctx context.Context) error {
	key := l.keys.slots()
	for {
		res, err := l.txn(ctx, []clientv3.Cmp{absent(key)}, []clientv3.Op{clientv3.OpPut(key, l.table())}, []clientv3.Op{clientv3.OpGet(key)})
		switch {
		case errors.Is(err, errLost): // it stands, or it does not: the same question tells
			if !pause(ctx) {
				return l.gaveUp(ctx, err)
			}
			continue
		case err != nil || res.Succeeded:
			return err
		}
		_, err = l.sameSlots((*clientv3.GetResponse)(res.Responses[0].GetResponseRange()))
		return err
	}
}

func slotsTaken(role fleet.Role, profile string, holders []string) error {
	return fleet.Refuse(fleet.CodeSlotUnavailable, "every %s slot on profile %s is taken: %s", role, profile, strings.Join(holders, ", ")).
		WithHint("stop one of them, or wait until one ends")
}

// inTheWay words why t cannot be had while h stands.
func (h *hold) inTheWay(t fleet.Tree, now fleet.Instant) error {
	if h.State == member {
		return fleet.Refuse(fleet.CodeTreeOccupied, "%s on node %s is occupied by the member of reservation %s (%s on %s)", t.Path, h.Node, h.ID, h.Role, h.Profile).
			WithHint("look for it with 'fleetdeck members' on that node, and end it with 'fleetdeck stop'")
	}
	left := max(0, h.Deadline.Remaining(now))
	e := h.entry(t, exactly(now, left))
	return fleet.Holding{State: fleet.Reserved, Entry: &e, Remaining: left}.Refusal(t, now)
}
