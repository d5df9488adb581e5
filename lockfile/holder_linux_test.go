package lockfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func holders(t *testing.T, f *File) []Holder {
	t.Helper()
	found, err := f.Holders()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestHoldersOfAFreeLockAreNone(t *testing.T) {
	f := newFile(t)
	if found := holders(t, f); len(found) != 0 {
		t.Errorf("holders without a lock file: %v", found)
	}
	hold(t, f).Unlock()
	if found := holders(t, f); len(found) != 0 {
		t.Errorf("holders of a free lock: %v", found)
	}
}

func TestHoldersAreThoseWhoHoldNotThoseWhoWait(t *testing.T) {
	f := newFile(t)
	holder := startChild(t, "agent", f.Path())
	holder.do("lock 10s", "held")
	waiter := startChild(t, "agent", f.Path())
	waiter.tell("lock 30s")
	eventually(t, "process waits for the lock", func() bool { return waiters(t, f.LockPath()) == 1 })

	found := holders(t, f)
	if len(found) != 1 || found[0].Pid != holder.cmd.Process.Pid || found[0].Kind != "flock+ofd" ||
		!strings.HasPrefix(found[0].Program, filepath.Base(self(t))+" ") {
		t.Errorf("holders = %v, want pid %d with flock and ofd", found, holder.cmd.Process.Pid)
	}
	_, err := f.Lock(t.Context(), 0)
	want := fmt.Sprintf("reservations.json is busy: held by pid %d (%s ", holder.cmd.Process.Pid, filepath.Base(self(t)))
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Lock = %v, want %s…", err, want)
	}

	// Both looks saw the same hold, so it has lasted since the first.
	if again := holders(t, f); len(again) != 1 || !again[0].Since.Equal(found[0].Since) {
		t.Errorf("holder since %v, seen before since %v", again, found[0].Since)
	}
	holder.do("unlock", "free")
	waiter.want("held")
	if next := holders(t, f); len(next) != 1 || next[0].Pid != waiter.cmd.Process.Pid || !next[0].Since.After(found[0].Since) {
		t.Errorf("holders = %v, want pid %d since later than %v", next, waiter.cmd.Process.Pid, found[0].Since)
	}
}

func TestProcessThatInheritedTheLockIsAHolder(t *testing.T) {
	needTool(t, "cat")
	f := newFile(t)
	hold(t, f).Unlock()
	lock, err := os.OpenFile(f.LockPath(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat")
	cmd.ExtraFiles = []*os.File{lock}
	heir := start(t, cmd)
	lock.Close()

	// The kernel's table still names this process, which took the lock.
	eventually(t, "the heir is the holder", func() bool {
		found := holders(t, f)
		return len(found) == 1 && found[0].Pid == heir.cmd.Process.Pid && found[0].Program == "cat" && found[0].Kind == "flock"
	})
}

func TestHolderOfAnotherUserIsNamed(t *testing.T) {
	needRoot(t)
	f := newFile(t)
	for _, dir := range []string{filepath.Dir(f.Path()), filepath.Dir(filepath.Dir(f.Path()))} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hold(t, f)
	other := startChild(t, "agent", f.Path())
	if err := os.Chmod(f.LockPath(), 0o666); err != nil {
		t.Fatal(err)
	}
	other.do("setuid 1234", "now uid")
	line := other.do("lock 0s", "busy")
	if want := fmt.Sprintf("held by pid %d (%s", os.Getpid(), filepath.Base(self(t))); !strings.Contains(line, want) {
		t.Errorf("another user's process says %q, want %q", line, want)
	}
}

func TestParseLocks(t *testing.T) {
	const table = `1: FLOCK  ADVISORY  WRITE 4242 fe:00:131 0 EOF
1: -> FLOCK  ADVISORY  WRITE 4243 fe:00:131 0 EOF
2: POSIX  ADVISORY  READ 17 00:2d:9 0 1
3: OFDLCK ADVISORY  WRITE -1 fe:00:131 0 EOF
4: LEASE  ACTIVE    READ 5 fe:00:131 0 EOF
lock:	5: FLOCK  ADVISORY  WRITE 6 fe:00:77 0 EOF
pos:	0
flags:	02100002
6: FLOCK ADVISORY WRITE x fe:00:131 0 EOF
7: FLOCK ADVISORY WRITE 1 131 0 EOF
`
	want := []procLock{
		{"flock", 4242, "fe:00", 131},
		{"fcntl", 17, "00:2d", 9},
		{"ofd", -1, "fe:00", 131},
		{"flock", 6, "fe:00", 77},
	}
	if diff := cmp.Diff(want, parseLocks([]byte(table)), cmp.AllowUnexported(procLock{})); diff != "" {
		t.Error(diff)
	}
}

func TestStartTimeTellsProcessesApart(t *testing.T) {
	mine, err := strconv.ParseUint(startTime(os.Getpid()), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	parents, err := strconv.ParseUint(startTime(os.Getppid()), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if parents > mine || mine == 0 {
		t.Errorf("start times %d of the parent and %d of this process", parents, mine)
	}
}

func TestProcessThatVanishesIsNoHolder(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if held, err := locksOf(gone.Process.Pid, "/x.lock", nil); len(held) != 0 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("locksOf a process that is gone = %v, %v", held, err)
	}
	if name := program(gone.Process.Pid); name != "" {
		t.Errorf("program of a process that is gone = %q", name)
	}
}
