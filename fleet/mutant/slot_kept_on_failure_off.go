//go:build !mutant_slot_kept_on_failure

package mutant

// SlotKeptOnFailure: a launch that fails keeps its slot.
const SlotKeptOnFailure = false
