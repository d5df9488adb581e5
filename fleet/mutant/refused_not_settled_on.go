//go:build mutant_refused_not_settled

package mutant

const RefusedNotSettled = true
