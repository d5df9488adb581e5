package process

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// monotonicOffset is how far this process's monotonic clock is ahead of the host's: a time namespace shifts it, and deadlines are
// read by processes in others.
var monotonicOffset = sync.OnceValue(func() time.Duration { return timensOffset("monotonic") })

// boottimeOffset is the same of the clock that goes on while the machine sleeps.
var boottimeOffset = sync.OnceValue(func() time.Duration { return timensOffset("boottime") })

// sleepless is the clock that goes on while the machine sleeps.
const sleepless = unix.CLOCK_BOOTTIME

func timensOffset(of string) time.Duration {
	offsets, _ := os.ReadFile("/proc/self/timens_offsets") // missing where there are no such namespaces
	for line := range strings.Lines(string(offsets)) {
		var clock string
		var sec, nsec int64
		if n, _ := fmt.Sscan(line, &clock, &sec, &nsec); n == 3 && clock == of {
			return time.Duration(sec)*time.Second + time.Duration(nsec)
		}
	}
	return 0
}
