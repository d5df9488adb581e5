//go:build mutant_roster_before_lock

package mutant

const RosterBeforeLock = true
