//go:build !mutant_cluster_put_without_fence

package mutant

// ClusterPutWithoutFence: a reservation becomes a launch, or a member's, whatever became of it since it was read.
const ClusterPutWithoutFence = false
