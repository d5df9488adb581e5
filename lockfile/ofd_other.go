//go:build !linux

package lockfile

import "os"

// lockOFD does nothing: BSD systems and macOS keep one table for both lock families, so flock(2) excludes the holders of
// fcntl(2) locks already.
func lockOFD(string) (*os.File, error) { return nil, nil }

func unlockOFD(*os.File) error { return nil }
