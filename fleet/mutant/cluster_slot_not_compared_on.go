//go:build mutant_cluster_slot_not_compared

package mutant

const ClusterSlotNotCompared = true
