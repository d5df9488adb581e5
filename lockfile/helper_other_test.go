//go:build !linux

package lockfile

import "fmt"

func obeyOnLinux(_ *File, verb, _ string) (string, error) {
	return "", fmt.Errorf("unknown command %q", verb)
}
