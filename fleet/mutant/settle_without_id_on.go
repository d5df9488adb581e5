//go:build mutant_settle_without_id

package mutant

const SettleWithoutID = true
