//go:build !mutant_roster_before_lock

package mutant

// RosterBeforeLock: who reserves asks who is there before the lock is taken.
const RosterBeforeLock = false
