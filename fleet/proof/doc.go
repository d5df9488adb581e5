// Package proof checks histories of admissions: what many processes did to the trees and slots of one fleet, each
// operation with the moment of its call and of its return on the monotonic clock that all processes of a boot share.
//
// A history is right if every operation can be given one instant between its call and its return, so that carried out in
// that order, one at a time, a fleet would have given the same answers. [Window.Check] looks for such an order with
// porcupine, for each tree and each slot pool by itself. [Alone] needs no model: it compares what the agents say of when they worked.
//
// An operation whose caller died has no answer. It may have been carried out or not, and the check accepts either.
//
// The tests of this package make the histories, with real processes. Nothing of the program depends on it.
package proof
