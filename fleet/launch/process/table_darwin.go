package process

import (
	"bytes"
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"

	"fleetdeck/fleet"
)

// zombieState is SZOMB of <sys/proc.h>.
const zombieState = 5

func readBoot() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
}

// readMachine gives nothing: the hardware's id is behind a framework that a static binary cannot call.
func readMachine() string { return "" }

// lookup reads the row of one pid.
func lookup(pid int) (entry, error) {
	if pid <= 0 {
		return entry{}, os.ErrProcessDone
	}
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err == unix.EIO || err == unix.ESRCH || err == nil && int(k.Proc.P_pid) != pid {
		return entry{}, os.ErrProcessDone // an empty answer comes as EIO
	}
	if err != nil {
		return entry{}, err
	}
	return row(k), nil
}

// row takes the start time in microseconds since 1970.
func row(k *unix.KinfoProc) entry {
	t := k.Proc.P_starttime
	e := entry{
		Process: fleet.Process{Pid: int(k.Proc.P_pid), Start: uint64(t.Sec)*1e6 + uint64(t.Usec), Boot: Boot()},
		parent:  int(k.Eproc.Ppid),
		zombie:  k.Proc.P_stat == zombieState,
	}
	e.session, _ = unix.Getsid(e.Pid)
	return e
}

// table reads the rows of this user's processes; nobody else's could be signalled.
func table() ([]entry, error) {
	ks, err := unix.SysctlKinfoProcSlice("kern.proc.uid", os.Geteuid())
	if err != nil {
		return nil, err
	}
	all := make([]entry, len(ks))
	for i := range ks {
		all[i] = row(&ks[i])
	}
	return all, nil
}

// marked reports whether a process of this user was started with the entry marker in its environment.
func marked(pid int, marker string) bool {
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(b) < 4 {
		return false
	}
	// The block holds the number of arguments, the path, padding, the arguments, and then the environment.
	argc := int(binary.NativeEndian.Uint32(b))
	_, rest, _ := bytes.Cut(b[4:], []byte{0})
	rest = bytes.TrimLeft(rest, "\x00")
	for ; argc > 0; argc-- {
		_, rest, _ = bytes.Cut(rest, []byte{0})
	}
	return hasEntry(rest, marker)
}
