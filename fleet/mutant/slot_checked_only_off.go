//go:build !mutant_slot_checked_only

package mutant

// SlotCheckedOnly: a slot is looked for and not reserved.
const SlotCheckedOnly = false
