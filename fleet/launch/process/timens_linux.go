package process

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// monotonicOffset is how far this process's monotonic clock is ahead of the host's: a time namespace shifts it, and deadlines are
// read by processes in others.
var monotonicOffset = sync.OnceValue(func() time.Duration {
	offsets, _ := os.ReadFile("/proc/self/timens_offsets") // missing where there are no such namespaces
	for line := range strings.Lines(string(offsets)) {
		var clock string
		var sec, nsec int64
		if n, _ := fmt.Sscan(line, &clock, &sec, &nsec); n == 3 && clock == "monotonic" {
			return time.Duration(sec)*time.Second + time.Duration(nsec)
		}
	}
	return 0
})
