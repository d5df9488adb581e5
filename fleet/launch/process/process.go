// Package process identifies processes beyond the reuse of their pids, tells the time of this boot, and ends a
// process together with everything that it started.
//
// A pid alone names nobody: between two looks it can pass to another process, and after a reboot it certainly has.
// Whatever this package signals it has first compared with boot id, pid and start time.
//
// It is a leaf: it depends on the domain and on the system only.
package process

import (
	"fmt"
	"os"
	"syscall"

	"fleetdeck/fleet"
)

// Self is the calling process.
func Self() (fleet.Process, error) { return Of(os.Getpid()) }

// Of identifies the process that has pid now. A process that has ended but was not waited for is still found; ask
// [Alive]. The error for a pid that nobody has is [os.ErrProcessDone].
func Of(pid int) (fleet.Process, error) {
	e, err := lookup(pid)
	if err != nil {
		return fleet.Process{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return e.Process, nil
}

// Alive reports whether p runs: this very process, on this boot, and not merely as a zombie.
func Alive(p fleet.Process) bool {
	if p.Pid <= 0 || p.Boot != Boot() {
		return false
	}
	e, err := lookup(p.Pid)
	return err == nil && e.Start == p.Start && !e.zombie
}

// Signal sends sig to p, if it is still p that has the pid. A process that has ended is [os.ErrProcessDone].
func Signal(p fleet.Process, sig syscall.Signal) error {
	// On Linux the handle is a pidfd: from here on it cannot pass to another process, so the check below holds.
	h, err := os.FindProcess(p.Pid)
	if err != nil {
		return err
	}
	defer h.Release()
	if !Alive(p) {
		return os.ErrProcessDone
	}
	return h.Signal(sig)
}

// entry is one row of the process table.
type entry struct {
	fleet.Process
	parent  int
	session int
	zombie  bool
}
