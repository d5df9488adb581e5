package lockfile

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestProcessesAreServedInOrder(t *testing.T) {
	f := newFile(t)
	held := hold(t, f)
	const n = 8
	var queue []*child
	for i := range n {
		c := startChild(t, "agent", f.Path())
		c.tell("lock 30s")
		eventually(t, "process waits in the kernel", func() bool { return waiters(t, f.LockPath()) == i+1 })
		queue = append(queue, c)
	}
	// Each of them notes its number while it has the lock.
	for i, c := range queue {
		c.tell("note %d", i)
		c.tell("unlock")
	}
	held.Unlock()
	var want strings.Builder
	for i, c := range queue {
		c.want("held")
		c.want("noted")
		c.want("free")
		fmt.Fprintln(&want, i)
	}
	got, err := os.ReadFile(f.Path() + ".notes")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Errorf("processes were served in the order %q, want the order in which they came", strings.Fields(string(got)))
	}
}

func TestLockFileDeletedWhileHeldAndWaitedOn(t *testing.T) {
	f := newFile(t)
	held := hold(t, f)
	waiter := startChild(t, "agent", f.Path())
	waiter.tell("lock 30s")
	eventually(t, "process waits for the lock", func() bool { return waiters(t, f.LockPath()) == 1 })

	if err := os.Remove(f.LockPath()); err != nil {
		t.Fatal(err)
	}
	newcomer := startChild(t, "agent", f.Path())
	newcomer.do("lock 10s", "held")
	newcomer.do(`replace {"of":"newcomer"}`, "replaced")

	if err := held.Replace([]byte("{}")); !errors.Is(err, ErrLockLost) {
		t.Errorf("Replace under a deleted lock file = %v, want ErrLockLost", err)
	}
	if _, err := held.Read(); !errors.Is(err, ErrLockLost) {
		t.Errorf("Read under a deleted lock file = %v, want ErrLockLost", err)
	}
	wantText(t, f, `{"of":"newcomer"}`)
	wantNoLitter(t, f)

	// The waiter gets the lock of a dead file now. It must go and wait for the living one.
	held.Unlock()
	eventually(t, "process waits for the new lock file", func() bool { return waiters(t, f.LockPath()) == 1 })
	newcomer.do("unlock", "free")
	waiter.want("held")
}

func TestWaiterForTheOtherFamilyHoldsNothing(t *testing.T) {
	f := newFile(t)
	hold(t, f).Unlock()
	foreign, err := os.OpenFile(f.LockPath(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	if err := setOFD(foreign, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		held, err := f.Lock(t.Context(), patienceOfTests)
		if err == nil {
			err = held.Unlock()
		}
		got <- err
	}()
	eventually(t, "request in the queue", func() bool { return queueLen(f) == 1 })
	// A program that takes the two in the other order gets the second one too, so nobody waits in a circle.
	eventually(t, "the flock is free for a moment", func() bool {
		if err := unix.Flock(int(foreign.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return false
		}
		return true
	})
	if queueLen(f) != 1 {
		t.Error("the lock was given though another holds it")
	}
	foreign.Close()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

func TestAbandonedWaiterForTheOtherFamilyEnds(t *testing.T) {
	f := newFile(t)
	hold(t, f).Unlock()
	foreign, err := os.OpenFile(f.LockPath(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	if err := setOFD(foreign, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock(t.Context(), 1); !errors.Is(err, ErrBusy) {
		t.Fatalf("Lock = %v, want ErrBusy", err)
	}
	eventually(t, "the waiter ends", func() bool { return !f.gate.queued() })
}

func TestLockThatDoesNotExcludeIsRefused(t *testing.T) {
	f := newFile(t)
	// To get the lock on the file that a second descriptor does not find excluded, take it away in between.
	hold(t, f).Unlock()
	if err := prove(f.LockPath()); !errors.Is(err, ErrNoExclusion) {
		t.Errorf("prove of a lock that nobody holds = %v, want ErrNoExclusion", err)
	}
	hold(t, f)
	if err := prove(f.LockPath()); err != nil {
		t.Errorf("prove of a held lock = %v", err)
	}
}

func TestSystemCallsThatFailOrAreInterrupted(t *testing.T) {
	for _, test := range []struct {
		name, inject, want string
	}{
		{"interrupted", "flock:error=EINTR:when=1", "held"},
		{"out of locks", "flock:error=ENOLCK", "error lock "},
		{"no fcntl locks here", "fcntl:error=EINVAL", "held"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFile(t)
			hold(t, f).Unlock()
			c := startTraced(t, f, "-P", f.LockPath(), "-e", "inject="+test.inject)
			c.do("lock 1s", test.want)
		})
	}
}

func TestWhichFileSystemsWantTheSecondLock(t *testing.T) {
	for name, typ := range map[string]int64{
		"nfs": unix.NFS_SUPER_MAGIC, "cifs": unix.CIFS_SUPER_MAGIC, "smb2": unix.SMB2_SUPER_MAGIC, "9p": unix.V9FS_MAGIC,
		"afs": unix.AFS_SUPER_MAGIC, "ceph": unix.CEPH_SUPER_MAGIC,
	} {
		if !byteRangeFlock(typ) {
			t.Errorf("%s: a second lock would meet our own first", name)
		}
	}
	for name, typ := range map[string]int64{"ext4": unix.EXT4_SUPER_MAGIC, "tmpfs": unix.TMPFS_MAGIC, "overlay": unix.OVERLAYFS_SUPER_MAGIC} {
		if byteRangeFlock(typ) {
			t.Errorf("%s: holders of fcntl locks would not be excluded", name)
		}
	}
}
