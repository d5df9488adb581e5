//go:build !mutant_refused_not_settled

package mutant

// RefusedNotSettled: a dispatch that was refused leaves its reservation.
const RefusedNotSettled = false
