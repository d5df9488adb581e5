//go:build mutant_release_without_id

package mutant

const ReleaseWithoutID = true
