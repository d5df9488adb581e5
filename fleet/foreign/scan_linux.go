package foreign

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/tree"
)

// Supported says whether this system shows what other processes run, and where.
const Supported = true

const (
	// maxLine is how much of a command line is read: who runs what stands at its beginning.
	maxLine = 4 << 10
	// ticks is the unit of start times, USER_HZ: 100 a second on every architecture that Go runs on.
	ticks = 100
)

// scan reads the command line of each process, and more only of those that run an agent, or hold one that is not ours.
func (s *Scanner) scan(ours func(member string) bool) []candidate {
	found := map[int]candidate{}
	add := func(pid int, agent string) {
		p, err := process.Of(pid)
		if err != nil {
			return
		}
		o, ok := s.known[p]
		if !ok {
			o = originOf(p)
		}
		found[pid] = candidate{p, agent, o}
	}
	buf := make([]byte, maxLine)
	eachPid(func(pid int) {
		argv := commandLine(pid, buf)
		if agent := agentOf(argv); agent != "" {
			add(pid, agent)
		} else if member := heldBy(argv); member != "" && !ours(member) {
			for _, child := range children(pid) {
				if _, known := found[child]; !known {
					add(child, programOf(commandLine(child, buf)))
				}
			}
		}
	})
	return slices.Collect(maps.Values(found))
}

// children gives the children of pid.
func children(pid int) []int {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	var all []int
	for _, task := range tasks {
		list, _ := os.ReadFile(task)
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

func eachPid(visit func(pid int)) error {
	dir, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			visit(pid)
		}
	}
	return err
}

// commandLine reads the beginning of pid's command line; that of a kernel's thread or a zombie is empty.
func commandLine(pid int, buf []byte) []string {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/cmdline", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	n, err := unix.Read(fd, buf)
	unix.Close(fd)
	if err != nil || n <= 0 {
		return nil
	}
	line := bytes.TrimRight(buf[:n], "\x00")
	if len(line) == 0 {
		return nil
	}
	return strings.Split(string(line), "\x00")
}

// originOf looks where p comes from.
func originOf(p fleet.Process) origin {
	o := origin{since: booted().Add(time.Duration(p.Start) * (time.Second / ticks)).UTC()}
	for pid := p.Pid; pid > 1 && !slices.Contains(o.ancestors, pid); {
		if mark := markOf(pid); mark != "" && !slices.Contains(o.marks, mark) {
			o.marks = append(o.marks, mark)
		}
		if pid != p.Pid {
			o.ancestors = append(o.ancestors, pid)
		}
		parent, err := process.Parent(pid)
		if err != nil {
			break
		}
		pid = parent
	}
	return o
}

// booted is when this host was booted: the same each time, so that what follows from it is too.
var booted = sync.OnceValue(func() time.Time {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(ts.Nano()))
})

// markOf is the member that pid's environment says it belongs to.
func markOf(pid int) string {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if id, ok := bytes.CutPrefix(kv, []byte("FLEETDECK_MEMBER=")); ok {
			return string(id)
		}
	}
	return ""
}

// locate finds where pid works, and the git working tree around that. It goes up from the directory itself, not from its name,
// so that one in another mount namespace, as a container's, is known by device and inode all the same.
func locate(pid int) (dir string, top fleet.Tree, ok bool) {
	at := "/proc/" + strconv.Itoa(pid) + "/cwd"
	dir, err := os.Readlink(at)
	if err != nil {
		return "", top, false
	}
	file, err := tree.Identify(at)
	if err != nil {
		return "", top, false
	}
	for name := dir; ; name = filepath.Dir(name) {
		if _, err := os.Lstat(at + "/.git"); err == nil {
			return dir, fleet.Tree{Path: name, File: file}, true
		}
		at += "/.."
		above, err := tree.Identify(at)
		if err != nil || above == file {
			return dir, top, true
		}
		file = above
	}
}

// Inside gives the processes with their working directory in the directory at path or below it, this one left out. An error
// means that nobody can say.
func Inside(_ context.Context, path string) ([]Occupant, error) {
	want, err := tree.Identify(path)
	if err != nil {
		return nil, err
	}
	var found []Occupant
	err = eachPid(func(pid int) {
		cwd := "/proc/" + strconv.Itoa(pid) + "/cwd"
		dir, err := os.Readlink(cwd)
		if err != nil || pid == os.Getpid() {
			return
		}
		if !inside(dir, path) && !below(cwd, want) {
			return
		}
		argv := commandLine(pid, make([]byte, 200))
		found = append(found, Occupant{Pid: pid, Command: strings.Join(argv, " "), Dir: dir})
	})
	if err != nil {
		return nil, fmt.Errorf("look who works in %s: %w", path, err)
	}
	return found, nil
}

// below reports whether the directory at is, or lies in, the one that want names.
func below(at string, want fleet.FileID) bool {
	for last := fleet.FileID(""); ; at += "/.." {
		file, err := tree.Identify(at)
		if err != nil || file == last {
			return false
		}
		if file == want {
			return true
		}
		last = file
	}
}
