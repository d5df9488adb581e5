//go:build !mutant_cluster_lost_is_refused

package mutant

// ClusterLostIsRefused: an answer that was lost is taken for a no, and the request is sent again as another.
const ClusterLostIsRefused = false
