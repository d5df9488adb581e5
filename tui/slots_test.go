package tui

import (
	"testing"
	"time"

	"fleetdeck/fleet"
)

func TestSlotsAreShownAsTheyAre(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("3")
		l.wants("architect-1", "bound", "architect-2", "free", "dev-1", "reserved", "1:12")
		s := example(l.f.Now())
		s.Slots[2].State = fleet.SlotBound
		l.f.set(s)
		l.pass(time.Second)
		l.lacks("1:12")
	})
}

func TestFromSlotToMemberAndBack(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("3", "o")
		if x, _ := l.m.members.current(); l.m.view != viewMembers || x.ID != "01JEABCD0003" {
			t.Fatalf("o on a bound slot: view %d, member %v", l.m.view, x)
		}
		l.press("o")
		if s, _ := l.m.slots.current(); l.m.view != viewSlots || s.Name != "architect-1" {
			t.Fatalf("o on its member: view %d, slot %v", l.m.view, s)
		}
		l.press("j", "o")
		l.wants("nobody holds this slot")
		// A filter that hides the target does not keep anybody from it.
		l.press("2", "/", "z", "z", "z", "enter", "3", "k", "o")
		if x, ok := l.m.members.current(); l.m.view != viewMembers || !ok || x.ID != "01JEABCD0003" {
			t.Errorf("o with the members filtered: view %d, member %v", l.m.view, x)
		}
	})
}
