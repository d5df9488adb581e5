//go:build !linux

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepless is the clock that goes on while the machine sleeps.
const sleepless = unix.CLOCK_MONOTONIC

// boottimeOffset is nothing, as monotonicOffset is.
func boottimeOffset() time.Duration { return 0 }

// monotonicOffset is nothing: these systems have one monotonic clock.
func monotonicOffset() time.Duration { return 0 }
