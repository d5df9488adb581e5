//go:build mutant_cluster_put_without_fence

package mutant

const ClusterPutWithoutFence = true
