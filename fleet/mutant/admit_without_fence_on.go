//go:build mutant_admit_without_fence

package mutant

const AdmitWithoutFence = true
