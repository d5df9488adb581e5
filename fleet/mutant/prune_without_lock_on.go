//go:build mutant_prune_without_lock

package mutant

const PruneWithoutLock = true
