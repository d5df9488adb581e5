//go:build !mutant_cluster_slot_not_compared

package mutant

// ClusterSlotNotCompared: the transaction of a reservation does not find the slot's key free: it was seen free.
const ClusterSlotNotCompared = false
