//go:build mutant_cluster_drop_without_fence

package mutant

const ClusterDropWithoutFence = true
