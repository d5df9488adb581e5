package observe

import (
	"time"

	"fleetdeck/fleet"
)

const (
	// locksEvery is how often to look who holds a lock where nothing hints at one: the kernel's table of locks is the dearest
	// thing that a look reads.
	locksEvery = time.Second
	// hintFor is how long to look at each glance after a hint: who opened the lock's file may wait for the lock first.
	hintFor = 5 * time.Second
)

// locks looks who holds the admission lock, as often as there is reason to.
type locks struct {
	look  func() fleet.LockInfo
	hints *opens

	now    fleet.LockInfo
	looked time.Time
	until  time.Time // look at each glance until then
}

func newLocks(look func() fleet.LockInfo, path string) *locks {
	return &locks{look: look, hints: newOpens(path), now: look(), looked: time.Now()}
}

// glance looks where there is reason to, and reports whether the holder is another.
func (l *locks) glance() bool {
	l.hints.attach()
	if time.Since(l.looked) < locksEvery && time.Now().After(l.until) && l.now.Holder == nil {
		return false
	}
	return l.again()
}

// hinted is to be called when somebody opened or closed the lock's file.
func (l *locks) hinted() bool {
	l.until = time.Now().Add(hintFor)
	return time.Since(l.looked) > pause && l.again() // else at the next glance
}

func (l *locks) again() bool {
	before := l.now
	l.now, l.looked = l.look(), time.Now()
	return !sameLock(before, l.now)
}
