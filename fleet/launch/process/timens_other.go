//go:build !linux

package process

import "time"

// monotonicOffset is nothing: these systems have one monotonic clock.
func monotonicOffset() time.Duration { return 0 }
