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
	"time"

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
//
// When a thread that is not the first of its process replaces the program, it takes the pid over from the first one, and who
// looks just then may be shown that one as dead. Nobody stays like that, so that it is worth another look.
func lookup(pid int) (entry, error) {
	for try := 0; ; try++ {
		e, passing, err := look(pid)
		if !passing || try == 100 {
			return e, err
		}
		time.Sleep(time.Duration(try) * 10 * time.Microsecond)
	}
}

func look(pid int) (e entry, passing bool, err error) {
	if pid <= 0 {
		return entry{}, false, os.ErrProcessDone
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return entry{}, false, os.ErrProcessDone
	}
	if err != nil {
		return entry{}, false, err
	}
	return parseStat(pid, b)
}

// parseStat reads /proc/PID/stat. The second field is the program's name in parentheses and may itself hold spaces
// and parentheses, so that fields are counted from the last one. Passing says that the process is dead and has no thread to wait
// for either: it is about to go, or another thread takes its place.
func parseStat(pid int, b []byte) (e entry, passing bool, err error) {
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 {
		return entry{}, false, fmt.Errorf("read /proc/%d/stat: %d fields after the name, want 20 or more", pid, len(f))
	}
	e = entry{Process: fleet.Process{Pid: pid, Boot: Boot()}}
	var threads int
	var errs [4]error
	e.parent, errs[0] = strconv.Atoi(string(f[1]))
	e.session, errs[1] = strconv.Atoi(string(f[3]))
	threads, errs[2] = strconv.Atoi(string(f[17]))
	e.Start, errs[3] = strconv.ParseUint(string(f[19]), 10, 64)
	// A process whose first thread has ended looks like a zombie while its other threads run.
	e.zombie = f[0][0] == 'X' || f[0][0] == 'Z' && threads <= 1
	return e, e.zombie && threads == 0, errors.Join(errs[:]...)
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
