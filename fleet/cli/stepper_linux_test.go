package cli_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stepper follows a process through its system calls, with all its threads and without its children, and kills it
// before one of them. Unlike strace's injection, which counts for each thread, it counts for the whole process: that
// something happens between two calls is certain.
type stepper struct {
	pid int
	// at is the step, counted from one, before which the process is killed; zero lets it live.
	at int
	// talks says that what it writes to sockets is a step too.
	talks bool
	// quit ends the following of a process that is to live.
	quit atomic.Bool
	// steps are the calls that were about to be made, in order.
	steps chan string
	done  chan error
}

// stepCalls are the calls by which a process changes what others may see. The rest only looks or waits.
var stepCalls = map[uint64]string{
	unix.SYS_OPENAT: "open", unix.SYS_WRITE: "write", unix.SYS_PWRITE64: "write", unix.SYS_FSYNC: "fsync", unix.SYS_RENAMEAT: "rename",
	unix.SYS_RENAMEAT2: "rename", unix.SYS_UNLINKAT: "unlink", unix.SYS_MKDIRAT: "mkdir", unix.SYS_FCHMOD: "chmod",
	unix.SYS_FCHMODAT: "chmod", unix.SYS_CONNECT: "connect", unix.SYS_CLONE: "fork", unix.SYS_CLONE3: "fork", unix.SYS_FLOCK: "flock",
	unix.SYS_CLOSE: "close", unix.SYS_PIDFD_SEND_SIGNAL: "kill",
}

// follow begins to follow pid, which must be a child of this process and lead a process group, from now on. Is it stopped, then it goes on.
func follow(pid, at int) (*stepper, error) { return (&stepper{pid: pid, at: at}).begin() }

// begin is follow by what is set in s.
func (s *stepper) begin() (*stepper, error) {
	s.steps, s.done = make(chan string, 1<<16), make(chan error, 1)
	began := make(chan error)
	onThreadOfItsOwn(func() {
		err := s.seize()
		began <- err
		if err == nil {
			s.done <- s.run()
		}
	})
	return s, <-began
}

// onThreadOfItsOwn runs f in a goroutine on a thread that ends with it: a tracer is a thread, and its end lets go of all
// that it traces. The first thread of a process would not end.
func onThreadOfItsOwn(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			f()
			return
		}
		onThreadOfItsOwn(f) // elsewhere, since this thread is kept until it runs
		runtime.UnlockOSThread()
	}()
}

// wait waits until the process was killed, or s was told to quit.
func (s *stepper) wait() ([]string, error) {
	err := <-s.done
	close(s.steps)
	var steps []string
	for step := range s.steps {
		steps = append(steps, step)
	}
	return steps, err
}

const seizeOptions = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACESYSGOOD

// seize takes all threads of the process. Those that it starts come by themselves.
func (s *stepper) seize() error {
	seized := map[int]bool{}
	for grown := true; grown; {
		grown = false
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.pid))
		if err != nil {
			return err
		}
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil || seized[tid] {
				continue
			}
			grown = true
			err = ptrace(unix.PTRACE_SEIZE, tid, 0, seizeOptions)
			switch by := tracer(s.pid, tid); {
			case err == nil:
				ptrace(unix.PTRACE_INTERRUPT, tid, 0, 0)
			case err == unix.ESRCH: // it has just ended
			case err == unix.EPERM && by == unix.Gettid(): // its starter had been seized
			case err == unix.EPERM && by != 0:
				continue // the tracer before this one is just letting go
			default:
				return fmt.Errorf("trace thread %d of %d: %w", tid, s.pid, err)
			}
			seized[tid] = true
		}
	}
	return nil
}

// tracer is the thread that traces tid, or zero.
func tracer(pid, tid int) (by int) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	_, rest, _ := strings.Cut(string(data), "TracerPid:")
	fmt.Sscan(rest, &by)
	return by
}

// errEnded means that the process came to its end before it was killed. Its exit code is known to nobody.
var errEnded = errors.New("the process ended by itself")

func (s *stepper) run() error {
	for n := 0; ; {
		var ws unix.WaitStatus
		// Of its group only: this thread may be the parent of a process that another test waits for.
		tid, err := unix.Wait4(-s.pid, &ws, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ECHILD:
			return errEnded
		case err != nil:
			return err
		case !ws.Stopped():
			continue // the end of a thread
		}
		goOn, deliver := unix.PTRACE_SYSCALL, 0
		switch sig := ws.StopSignal(); {
		case sig == syscall.SIGTRAP|0x80: // before a call, or after it
			if s.quit.Load() {
				return nil
			}
			step, err := s.step(tid)
			if err != nil || step == "" {
				break
			}
			n++
			s.steps <- step
			if n == s.at {
				return syscall.Kill(s.pid, syscall.SIGKILL)
			}
		case ws>>16 == unix.PTRACE_EVENT_STOP && sig == syscall.SIGSTOP: // it was stopped before it was followed
			goOn = unix.PTRACE_LISTEN
			syscall.Kill(s.pid, syscall.SIGCONT)
		case ws>>16 != 0: // a thread that begins, or that was interrupted
		default:
			deliver = int(sig)
		}
		if err := ptrace(goOn, tid, 0, uintptr(deliver)); err != nil && err != unix.ESRCH {
			return fmt.Errorf("go on with thread %d: %w", tid, err)
		}
	}
}

// callInfo is struct ptrace_syscall_info, as far as the entry to a call goes.
type callInfo struct {
	op    uint8
	_     [3]uint8
	arch  uint32
	ip    uint64
	sp    uint64
	nr    uint64
	args  [6]uint64
	spare [2]uint64
}

// step names the call that thread tid is about to make, if it is a step.
func (s *stepper) step(tid int) (string, error) {
	const requestInfo, entry = 0x420e, 1
	var info callInfo
	if err := ptrace(requestInfo, tid, unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info))); err != nil {
		return "", err
	}
	name := stepCalls[info.nr]
	if info.op != entry || name == "" || info.nr == unix.SYS_CLONE && info.args[0]&unix.CLONE_THREAD != 0 {
		return "", nil
	}
	switch name {
	case "write", "fsync", "chmod", "flock", "close":
		file, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", s.pid, info.args[0]))
		if isSocket := strings.HasPrefix(file, "socket:"); isSocket && s.talks && name == "write" {
			return "say something", nil
		} else if isSocket || strings.HasPrefix(file, "anon_inode:[event") {
			return "", nil // the runtime wakes a thread; how often somebody asks differs from time to time
		}
		return name + " " + short(file), nil
	case "open":
		path := s.text(tid, info.args[1])
		const creates = unix.O_CREAT | unix.O_WRONLY | unix.O_RDWR
		if info.args[2]&creates == 0 && !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/proc/") {
			return "", nil
		}
		return name + " " + short(path), nil
	case "rename":
		return name + " " + short(s.text(tid, info.args[3])), nil
	case "unlink", "mkdir":
		return name + " " + short(s.text(tid, info.args[1])), nil
	}
	return name, nil
}

// text reads a string of the process.
func (s *stepper) text(tid int, at uint64) string {
	buf := make([]byte, 256)
	n, err := unix.ProcessVMReadv(tid, []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}},
		[]unix.RemoteIovec{{Base: uintptr(at), Len: len(buf)}}, 0)
	if err != nil {
		return ""
	}
	text, _, _ := strings.Cut(string(buf[:n]), "\x00")
	return text
}

// short is the end of a path, without what differs from run to run.
func short(path string) string {
	if base := filepath.Base(path); strings.Contains(base, ".json") {
		_, rest, hidden := strings.Cut(base, ".")
		if hidden && strings.HasPrefix(base, ".") {
			name, _, _ := strings.Cut(rest, ".json")
			return name + ".json (temporary)"
		}
		return base
	}
	if strings.HasPrefix(path, "pipe:") {
		return "pipe"
	}
	return filepath.Base(path)
}

func ptrace(request, tid int, addr, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
