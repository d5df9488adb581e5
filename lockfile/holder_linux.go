package lockfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// procLock is one granted lock as /proc/locks and /proc/PID/fdinfo show it.
type procLock struct {
	kind string
	pid  int // who took it; -1 for a lock that belongs to a descriptor
	dev  string
	ino  uint64
}

// kinds are the lock families by the kernel's names. Leases are none.
var kinds = map[string]string{"FLOCK": "flock", "POSIX": "fcntl", "OFDLCK": "ofd"}

// findHolders asks the kernel in two steps. The table of all locks says whether anybody holds this one, which is mostly
// enough where the table is short; but it names who took it, and that is wrong once the descriptor was inherited, and nobody for an
// open-file-description lock. The descriptors say who has it now, where we may read them.
func findHolders(lockPath string) ([]sighting, error) {
	info, err := os.Stat(lockPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, errors.New("no inode number")
	}
	table, whole, err := lockTable()
	if err != nil {
		return nil, err
	}
	locks := slices.DeleteFunc(table, func(l procLock) bool { return l.ino != stat.Ino })
	if len(locks) == 0 && whole {
		return nil, nil
	}
	pids, err := processes()
	if err != nil {
		return nil, err
	}

	var found []sighting
	hidden := map[int]bool{} // processes whose descriptors we may not read
	for _, pid := range pids {
		switch held, err := locksOf(pid, lockPath, info); {
		case errors.Is(err, fs.ErrPermission):
			hidden[pid] = true
		case len(held) > 0:
			found = append(found, sight(pid, held))
		}
	}
	// Inode numbers repeat on other devices; what we cannot see must at least be on ours.
	dev := fmt.Sprintf("%02x:%02x", unix.Major(uint64(stat.Dev)), unix.Minor(uint64(stat.Dev)))
	for pid := range hidden {
		var held []string
		for _, l := range locks {
			if l.pid == pid && l.dev == dev {
				held = append(held, l.kind)
			}
		}
		if len(held) > 0 {
			found = append(found, sight(pid, held))
		}
	}
	slices.SortFunc(found, func(a, b sighting) int { return cmp.Compare(a.Pid, b.Pid) })
	return found, nil
}

// lockTable reads the kernel's table of locks. It is shown a page at a time, and who lets go in between shifts the rest: only one that
// left room on its page shows for certain every lock that was held all the time.
func lockTable() (locks []procLock, whole bool, err error) {
	const room = 256 // more than any lock takes
	f, err := os.Open("/proc/locks")
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	var table []byte
	page := make([]byte, os.Getpagesize())
	for {
		n, err := f.Read(page)
		table = append(table, page[:n]...)
		if errors.Is(err, io.EOF) {
			return parseLocks(table), len(table) < len(page)-room, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// locksOf returns the kinds of lock that pid holds through its descriptors of the lock file.
func locksOf(pid int, lockPath string, lock fs.FileInfo) ([]string, error) {
	proc := fmt.Sprintf("/proc/%d", pid)
	fds, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return nil, err
	}
	var held []string
	for _, fd := range fds {
		link := proc + "/fd/" + fd.Name()
		// By name first: asking a descriptor for its file can hang when that is on a dead server.
		target, err := os.Readlink(link)
		if err != nil || filepath.Base(target) != filepath.Base(lockPath) {
			continue
		}
		if info, err := os.Stat(link); err != nil || !os.SameFile(info, lock) {
			continue
		}
		fdinfo, err := os.ReadFile(proc + "/fdinfo/" + fd.Name())
		if err != nil {
			continue // closed meanwhile
		}
		for _, l := range parseLocks(fdinfo) {
			held = append(held, l.kind)
		}
	}
	return held, nil
}

// parseLocks reads the granted locks out of lines such as "1: FLOCK  ADVISORY  WRITE 4242 fe:00:131 0 EOF", which
// fdinfo puts behind "lock:". A waiter's line has "->" before the kind and is left out.
func parseLocks(text []byte) []procLock {
	var locks []procLock
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(bytes.TrimPrefix(line, []byte("lock:"))))
		if len(fields) < 6 || !strings.HasSuffix(fields[0], ":") {
			continue
		}
		kind, known := kinds[fields[1]]
		if !known {
			continue
		}
		pid, err := strconv.Atoi(fields[4])
		if err != nil {
			continue
		}
		i := strings.LastIndexByte(fields[5], ':')
		ino, err := strconv.ParseUint(fields[5][i+1:], 10, 64)
		if i < 0 || err != nil {
			continue
		}
		locks = append(locks, procLock{kind: kind, pid: pid, dev: fields[5][:i], ino: ino})
	}
	return locks
}

func processes() ([]int, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// sight describes a process that holds locks of these kinds.
func sight(pid int, held []string) sighting {
	slices.Sort(held)
	kind := strings.Join(slices.Compact(held), "+")
	return sighting{
		Holder:  Holder{Pid: pid, Program: program(pid), Kind: kind},
		process: process{pid: pid, start: startTime(pid)},
	}
}

// program is how a process was called, its own path shortened to the name. A process without a command line has a name
// still.
func program(pid int) string {
	proc := fmt.Sprintf("/proc/%d", pid)
	cmdline, err := os.ReadFile(proc + "/cmdline")
	if name, args, _ := strings.Cut(string(cmdline), "\x00"); err == nil && name != "" {
		return printable(filepath.Base(name) + "\x00" + args)
	}
	comm, _ := os.ReadFile(proc + "/comm")
	return printable(string(comm))
}

// startTime is field 22 of a process's stat, in clock ticks since boot. The second field is the process's name, in
// parentheses, and may hold anything.
func startTime(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}
