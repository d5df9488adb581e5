// Package model holds the protocol by which trees are staffed as a model for the checker SPIN, fleetdeck.pml, and the tests that have
// it searched: the protocol must hold in every interleaving, and each of its mutants must not. It has no code of its own.
// docs/model.md says which function of the program each step of the model is.
package model
