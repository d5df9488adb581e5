package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"fleetdeck/fleet"
)

func readBoot() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

func readMachine() string {
	b, _ := os.ReadFile("/etc/machine-id")
	return strings.TrimSpace(string(b))
}

// lookup reads the row of one pid.
func lookup(pid int) (entry, error) {
	if pid <= 0 {
		return entry{}, os.ErrProcessDone
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return entry{}, os.ErrProcessDone
	}
	if err != nil {
		return entry{}, err
	}
	return parseStat(pid, b)
}

// parseStat reads /proc/PID/stat. The second field is the program's name in parentheses and may itself hold spaces
// and parentheses, so that fields are counted from the last one.
func parseStat(pid int, b []byte) (entry, error) {
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 {
		return entry{}, fmt.Errorf("read /proc/%d/stat: %d fields after the name, want 20 or more", pid, len(f))
	}
	e := entry{Process: fleet.Process{Pid: pid, Boot: Boot()}}
	var threads int
	var errs [4]error
	e.parent, errs[0] = strconv.Atoi(string(f[1]))
	e.session, errs[1] = strconv.Atoi(string(f[3]))
	threads, errs[2] = strconv.Atoi(string(f[17]))
	e.Start, errs[3] = strconv.ParseUint(string(f[19]), 10, 64)
	// A process whose first thread has ended looks like a zombie while its other threads run.
	e.zombie = f[0][0] == 'X' || f[0][0] == 'Z' && threads <= 1
	return e, errors.Join(errs[:]...)
}

// table reads the rows of all processes.
func table() ([]entry, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if e, err := lookup(pid); err == nil {
			all = append(all, e)
		}
	}
	return all, nil
}

// marked reports whether a process of this user was started with the entry marker in its environment.
func marked(pid int, marker string) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	var st syscall.Stat_t
	if syscall.Stat(dir, &st) != nil || int(st.Uid) != os.Geteuid() {
		return false
	}
	env, err := os.ReadFile(dir + "/environ")
	return err == nil && hasEntry(env, marker)
}
