//go:build mutant_cluster_lost_is_refused

package mutant

const ClusterLostIsRefused = true
