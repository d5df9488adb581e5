package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
)

// unbindable is a pool in which nothing can be bound. It tells when a slot is given back.
type unbindable struct {
	pool
	released func()
}

var errBind = errors.New("no binding today")

func (unbindable) Bind(string) error { return errBind }

func (u unbindable) Release(reservation string) {
	u.released()
	u.pool.Release(reservation)
}

func TestAMemberWhoseSlotCannotBeBoundIsADev(t *testing.T) {
	r := newDaemon(t)
	onRecord := make(chan []byte, 10)
	r.up(func(p pool) pool {
		return unbindable{p, func() {
			data, _ := os.ReadFile(filepath.Join(r.state.Path, "registry.json"))
			onRecord <- data
		}}
	})
	out, err := r.dispatch("one")
	if err != nil {
		t.Fatal(err)
	}
	roster, err := r.client.Roster(t.Context())
	if err != nil || len(roster.Members) != 1 {
		t.Fatalf("roster %v, %v, want one member", roster, err)
	}
	m := roster.Members[0]
	if m.Role != fleet.RoleDev || m.RequestedRole != "architect" || m.Slot != "" || !m.CharterMismatch {
		t.Errorf("role %s, requested %s, slot %q, mismatch %t; want dev, architect, none, true", m.Role, m.RequestedRole, m.Slot, m.CharterMismatch)
	}
	// The charter that it was handed stays what it is: the receipt does not lie for it.
	if want := receiptOf(string(config.BuiltinCharter("architect"))); m.CharterSHA256 != want {
		t.Errorf("charter %s, want the architect's, %s", m.CharterSHA256, want)
	}
	who := r.as(out.Member)
	if who.Role != fleet.RoleDev || who.Slot != "" || !who.CharterMismatch || len(who.May) != 0 || who.CharterSHA256 != m.CharterSHA256 {
		t.Errorf("whoami = %+v, want a dev that may do nothing, with a mismatch", who)
	}
	// It holds no slot, so the place is free for another: but not before its record says so.
	r.wantNothingHeld()
	if s := string(<-onRecord); !strings.Contains(s, out.Member) || strings.Contains(s, `"slot"`) {
		t.Errorf("the slot was given back while the registry was %s", s)
	}
	var warned []fleet.Event
	r.await("the warning is told", func() bool {
		warned = nil
		err := r.client.Events(t.Context(), 0, false, func(e fleet.Event) {
			if e.Kind == "charter_mismatch" {
				warned = append(warned, e)
			}
		})
		return err == nil && len(warned) > 0
	})
	if len(warned) != 1 || warned[0].Level != "alarm" || !strings.Contains(warned[0].Message, "WARN") || !strings.Contains(warned[0].Message, m.Terminal) {
		t.Errorf("events %v, want one alarm that warns and names terminal %s", warned, m.Terminal)
	}
	if !strings.Contains(r.log.String(), m.Terminal) {
		t.Errorf("the log does not name %s:\n%s", m.Terminal, r.log)
	}
}

func TestABoundSlotIsItsMembers(t *testing.T) {
	r := startDaemon(t, func(p pool) pool { return p })
	out, err := r.dispatch("one")
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.client.Slots(t.Context())
	if err != nil || len(list) != 1 || list[0].State != fleet.SlotBound || list[0].Member != out.Member {
		t.Errorf("slots %v, %v, want one bound to %s", list, err, out.Member)
	}
	if who := r.as(out.Member); who.Role != "architect" || who.Slot != "architect-1" || who.CharterMismatch {
		t.Errorf("whoami = %+v, want the architect of architect-1", who)
	}
	_, err = r.dispatch("two")
	if refusal := fleet.RefusalOf(err); refusal == nil || refusal.Code != fleet.CodeSlotUnavailable {
		t.Errorf("a second architect: %v, want %s", err, fleet.CodeSlotUnavailable)
	}
}
