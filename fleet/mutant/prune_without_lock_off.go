//go:build !mutant_prune_without_lock

package mutant

// PruneWithoutLock: a prune decides by what it read before it had the lock, and writes that back.
const PruneWithoutLock = false
