//go:build !mutant_cluster_drop_without_fence

package mutant

// ClusterDropWithoutFence: what is dropped was not a member's when it was read, and may be by now.
const ClusterDropWithoutFence = false
