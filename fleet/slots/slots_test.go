package slots_test

import (
	"errors"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/slots"
)

// newPool has one architect's slot.
func newPool() *slots.Pool {
	return slots.New([]fleet.Slot{{Name: "architect-1", Role: "architect", Profile: "claude"}}, process.Now)
}

func ask(id string) slots.Request {
	return slots.Request{Role: "architect", Profile: "claude", Reservation: id, Member: "m-" + id, Tree: "/src/" + id}
}

// held is the names of the slots that are not free, by reservation.
func held(p *slots.Pool) map[string]string {
	m := map[string]string{}
	for _, s := range p.List() {
		if s.State != fleet.SlotFree {
			m[s.Reservation] = s.Name
		}
	}
	return m
}

func TestALateOrDoubledCallChangesNothing(t *testing.T) {
	p := newPool()
	first, err := p.Reserve(ask("r1"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Reserve(ask("r1")); err != nil || again != first {
		t.Errorf("Reserve again = %+v, %v, want %+v", again, err, first)
	}
	if err := errors.Join(p.Bind("r1"), p.Bind("r1")); err != nil {
		t.Errorf("Bind twice: %v", err)
	}
	p.Release("r1")
	if err := p.Bind("r1"); !errors.Is(err, slots.ErrNotReserved) {
		t.Errorf("Bind after Release = %v, want %v", err, slots.ErrNotReserved)
	}
	if _, err := p.Reserve(ask("r2")); err != nil {
		t.Fatalf("Reserve of a slot that was given back: %v", err)
	}
	p.Release("r1") // late: it is another's by now
	p.Release("")
	if got := held(p); got["r2"] != "architect-1" {
		t.Errorf("held are %v, want r2's slot", got)
	}
}

func TestARefusedRequestHoldsNothing(t *testing.T) {
	p := newPool()
	if _, err := p.Reserve(ask("r1")); err != nil {
		t.Fatal(err)
	}
	other := ask("r2")
	other.Profile = "shell"
	for _, tt := range []struct {
		req  slots.Request
		want fleet.Code
	}{
		{ask("r2"), fleet.CodeSlotUnavailable},
		{other, fleet.CodeSlotUnconfigured},
	} {
		_, err := p.Reserve(tt.req)
		if refusal := fleet.RefusalOf(err); refusal == nil || refusal.Code != tt.want {
			t.Errorf("Reserve = %v, want %s", err, tt.want)
		}
	}
	p.Release("r1")
	if got := held(p); len(got) != 0 {
		t.Errorf("held are %v, want none", got)
	}
}

// A slot that was taken out of the configuration while somebody held it must not serve another.
func TestASlotThatIsConfiguredNoMoreGoesWithItsHolder(t *testing.T) {
	p := newPool()
	old := fleet.Slot{Name: "architect-2", Role: "architect", Profile: "claude", State: fleet.SlotBound, Reservation: "r0", Member: "m-r0"}
	if err := p.Restore(old); err != nil {
		t.Fatal(err)
	}
	if got := held(p); got["r0"] != "architect-2" {
		t.Errorf("held are %v, want r0's slot", got)
	}
	p.Release("r0")
	if got := p.List(); len(got) != 1 || got[0].Name != "architect-1" || got[0].State != fleet.SlotFree {
		t.Errorf("slots %+v, want architect-1 alone, free", got)
	}
	if _, err := p.Reserve(ask("r1")); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Reserve(ask("r2")); err == nil {
		t.Errorf("a second architect got %+v, and one slot is configured", s)
	}
}

func TestASlotIsNotRestoredToTwo(t *testing.T) {
	p := newPool()
	one := fleet.Slot{Name: "architect-1", Role: "architect", Profile: "claude", State: fleet.SlotBound, Reservation: "r1", Member: "m-r1"}
	two := one
	two.Reservation, two.Member = "r2", "m-r2"
	if err := errors.Join(p.Restore(one), p.Restore(one)); err != nil {
		t.Errorf("Restore twice: %v", err)
	}
	if p.Restore(two) == nil {
		t.Error("one slot was restored to two")
	}
}
