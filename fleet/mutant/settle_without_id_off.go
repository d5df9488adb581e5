//go:build !mutant_settle_without_id

package mutant

// SettleWithoutID: settling one reservation drops whatever stands.
const SettleWithoutID = false
