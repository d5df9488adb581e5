//go:build !mutant_release_without_id

package mutant

// ReleaseWithoutID: a release drops what stands in the tree, whoever it belongs to by now.
const ReleaseWithoutID = false
