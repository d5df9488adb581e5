// Package mutant plants faults in the program, so that the tests of fleet/proof can show that they would be seen.
//
// Each fault is a constant that is false, unless the program is built with the tag of its name. What stands behind a
// constant that is false is not compiled, so an ordinary build holds no trace of this package. A program that was built
// with such a tag breaks its promise.
//
// It is a leaf, imported by the rooms that it can break.
package mutant
