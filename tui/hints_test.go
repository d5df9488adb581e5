package tui

import (
	"testing"
)

func TestFooterOffersNoWayToATreeWhereNoneIsSelected(t *testing.T) {
	none := func(f *fakeFleet) { f.snap.Reservations, f.snap.Queue, f.snap.History = nil, nil, nil }
	inLoopOf(t, none, Options{Home: home}, func(t *testing.T, l *loop) {
		for _, k := range []string{"4", "5", "7"} {
			l.press(k)
			l.lacks("go to its tree", "R release")
		}
	})
}

func TestFormSaysThatAQueuedTaskCannotBeEmpty(t *testing.T) {
	inLoop(t, func(t *testing.T, l *loop) {
		l.press("n")
		l.wants("what to do")
		l.lacks("may be empty")
		l.press("ctrl+r")
		l.wants("may be empty")
	})
}
