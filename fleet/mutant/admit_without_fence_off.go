//go:build !mutant_admit_without_fence

package mutant

// AdmitWithoutFence: the daemon admits without looking whether the reservation stands.
const AdmitWithoutFence = false
