//go:build !linux

package lockfile

// findHolders knows none: these systems tell nobody who holds a flock.
func findHolders(string) ([]sighting, error) { return nil, nil }
