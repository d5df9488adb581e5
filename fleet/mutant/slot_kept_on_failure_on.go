//go:build mutant_slot_kept_on_failure

package mutant

const SlotKeptOnFailure = true
