package lockfile

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// obeyOnLinux is the part of an agent that only Linux can do.
func obeyOnLinux(f *File, verb, arg string) (answer string, err error) {
	switch verb {
	case "setuid":
		uid, err := strconv.Atoi(arg)
		if err != nil {
			return "", err
		}
		return "now uid " + arg, syscall.Setuid(uid)
	case "watch": // answers each token with the document, without events if arg says so
		poll := time.Hour
		restore := func() error { return nil }
		if arg == "blind" {
			poll = 10 * time.Millisecond
			if restore, err = forbidDescriptors(); err != nil {
				return "", err
			}
		}
		tokens := f.Watch(background, WatchOptions{Poll: poll})
		if err := restore(); err != nil {
			return "", err
		}
		for range tokens {
			text, err := f.Read()
			if err != nil {
				text = []byte(err.Error())
			}
			fmt.Printf("saw %s\n", text)
		}
		return "unwatched", nil
	}
	return "", fmt.Errorf("unknown command %q", verb)
}

// forbidDescriptors keeps this process from opening any file, and so from being told of events, until restore.
func forbidDescriptors() (restore func() error, err error) {
	// The runtime's own poller opens its descriptors with the first pipe.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r.Close()
	w.Close()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil, err
	}
	restore = func() error { return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) }
	return restore, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: limit.Max})
}

// waiters is how many wait for the lock file's lock, from the kernel's table.
func waiters(t testing.TB, lockPath string) int {
	t.Helper()
	info, err := os.Stat(lockPath)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	inode := fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino)
	n := 0
	for line := range bytes.Lines(table) {
		if bytes.Contains(line, []byte("->")) && strings.Contains(string(line), inode) {
			n++
		}
	}
	return n
}

// mount mounts for the length of the test, and skips it where that is not allowed.
func mount(t testing.TB, source, target, fstype string, flags uintptr, data string) {
	t.Helper()
	needRoot(t)
	if err := unix.Mount(source, target, fstype, flags, data); err != nil {
		t.Skipf("SKIPPED: cannot mount here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", target, err)
		}
	})
}

// startTraced runs an agent whose system calls fail or kill it as inject says.
func startTraced(t testing.TB, f *File, strace ...string) *child {
	t.Helper()
	args := append([]string{"-f", "-qq", "-o", "/dev/null"}, strace...)
	cmd := exec.Command(needTool(t, "strace"), append(args, self(t), f.Path())...)
	cmd.Env = append(os.Environ(), childEnv+"=agent")
	if out, err := exec.Command("strace", "-qq", "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: strace may not trace here: %v %s", err, out)
	}
	return start(t, cmd)
}
