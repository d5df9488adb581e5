//go:build mutant_slot_checked_only

package mutant

const SlotCheckedOnly = true
