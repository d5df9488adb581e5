package lockfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var background = context.Background()

// count adds 1 to the number in a file, args[1] times, as slowly as a program without a lock would get wrong.
func count(args []string) error {
	f, err := Open(args[0])
	if err != nil {
		return err
	}
	times, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	for range times {
		held, err := f.Lock(background, patienceOfTests)
		if err != nil {
			return err
		}
		if err := increment(f.Path()); err != nil {
			return err
		}
		if err := held.Unlock(); err != nil {
			return err
		}
	}
	return nil
}

func increment(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	runtime.Gosched()
	return os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o600)
}

func TestProcessesAreNeverInTheSectionTogether(t *testing.T) {
	f := newFile(t)
	if err := os.WriteFile(f.Path(), []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	const processes, times = 8, 60
	var counters []*child
	for range processes {
		counters = append(counters, startChild(t, "count", f.Path(), strconv.Itoa(times)))
	}
	for _, c := range counters {
		c.end()
	}
	wantText(t, f, strconv.Itoa(processes*times))
}

func TestGoroutinesAreNeverInTheSectionTogether(t *testing.T) {
	f := newFile(t)
	var inside, entered atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			// Half of them through a File of their own.
			mine := f
			if entered.Add(1)%2 == 0 {
				mine = open(t, f.Path())
			}
			for range 20 {
				held, err := mine.Lock(t.Context(), patienceOfTests)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d goroutines in the section", n)
				}
				runtime.Gosched()
				inside.Add(-1)
				if err := held.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestLockIsNotReentrant(t *testing.T) {
	f := newFile(t)
	hold(t, f)
	for _, window := range []time.Duration{-1, 0, time.Millisecond} {
		if _, err := f.Lock(t.Context(), window); !errors.Is(err, ErrBusy) {
			t.Errorf("Lock(%v) of a held lock = %v, want ErrBusy", window, err)
		}
	}
}

func TestFreeLockNeedsNoWindow(t *testing.T) {
	f := newFile(t)
	for _, window := range []time.Duration{-1, 0, 1} {
		held, err := f.Lock(t.Context(), window)
		if err != nil {
			t.Fatalf("Lock(%v) of a free lock: %v", window, err)
		}
		if err := held.Unlock(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGoroutinesAreServedInOrder(t *testing.T) {
	f := newFile(t)
	held := hold(t, f)
	const n = 10
	got := make(chan int, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			held, err := f.Lock(t.Context(), patienceOfTests)
			if err != nil {
				t.Error(err)
				return
			}
			got <- i
			held.Unlock()
		})
		eventually(t, "request in the queue", func() bool { return queueLen(f) == i+1 })
	}
	held.Unlock()
	all.Wait()
	for want := range n {
		if i := <-got; i != want {
			t.Fatalf("request %d was served in place %d", i, want)
		}
	}
}

func queueLen(f *File) int {
	f.gate.mu.Lock()
	defer f.gate.mu.Unlock()
	return len(f.gate.queue)
}

func TestRequestThatGaveUpIsGoneAtOnce(t *testing.T) {
	f := newFile(t)
	hold(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := f.Lock(ctx, patienceOfTests)
		ended <- err
	}()
	eventually(t, "request in the queue", func() bool { return queueLen(f) == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, ErrBusy) {
		t.Errorf("Lock with a cancelled context = %v, want context.Canceled", err)
	}
	if n := queueLen(f); n != 0 {
		t.Errorf("%d requests left in the queue", n)
	}
}

func TestCancelledContextTakesNothing(t *testing.T) {
	f := newFile(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Lock(ctx, time.Second); !errors.Is(err, context.Canceled) {
		t.Fatalf("Lock = %v, want context.Canceled", err)
	}
	if len(f.gate.grants) != 0 {
		t.Error("the lock is held")
	}
}

func TestAProcessWaitsWithOneThread(t *testing.T) {
	f := newFile(t)
	held := hold(t, f)
	for range 20 {
		if _, err := f.Lock(t.Context(), time.Millisecond); !errors.Is(err, ErrBusy) {
			t.Fatalf("Lock = %v, want ErrBusy", err)
		}
	}
	if n := strings.Count(stacks(), "lockfile.(*gate).wait("); n > 1 {
		t.Errorf("%d waiters, want one", n)
	}
	held.Unlock()
	eventually(t, "the waiter ends", func() bool { return !f.gate.queued() })
	hold(t, f)
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

func TestLateGrantServesTheNextRequest(t *testing.T) {
	f := newFile(t)
	held := hold(t, f)
	if _, err := f.Lock(t.Context(), time.Millisecond); !errors.Is(err, ErrBusy) {
		t.Fatalf("Lock = %v, want ErrBusy", err)
	}
	served := make(chan error)
	go func() {
		next, err := f.Lock(t.Context(), patienceOfTests)
		if err == nil {
			err = next.Unlock()
		}
		served <- err
	}()
	eventually(t, "request in the queue", func() bool { return queueLen(f) == 1 })
	held.Unlock()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

func TestLateGrantIsReleasedToOtherProcesses(t *testing.T) {
	f := newFile(t)
	held := hold(t, f)
	gaveUp := startChild(t, "agent", f.Path())
	gaveUp.do("lock 1ms", "busy")
	held.Unlock()
	third := startChild(t, "agent", f.Path())
	third.do("lock 20s", "held")
	third.do("unlock", "free")
	gaveUp.do("lock 20s", "held") // it lived through all of it
}

func TestKilledHolderFreesTheLockThoughItsChildLives(t *testing.T) {
	needTool(t, "cat")
	f := newFile(t)
	holder := startChild(t, "agent", f.Path())
	holder.do("lock 10s", "held")
	holder.do("spawn", "spawned")
	if _, err := f.Lock(t.Context(), 0); !errors.Is(err, ErrBusy) {
		t.Fatalf("Lock = %v, want ErrBusy", err)
	}
	holder.kill()
	hold(t, f)
}

func TestUnlockFreesTheLockThoughACopyOfTheDescriptorLives(t *testing.T) {
	needTool(t, "cat")
	f := newFile(t)
	held := hold(t, f)
	if held.grant.ofd == nil {
		t.Skip("SKIPPED: no descriptor to copy on this system")
	}
	cmd := exec.Command("cat")
	cmd.ExtraFiles = []*os.File{held.grant.ofd}
	start(t, cmd)
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock(t.Context(), 0); err != nil {
		t.Fatalf("Lock after Unlock: %v", err)
	}
}

func TestForgottenHoldSurvivesGarbageCollection(t *testing.T) {
	f := newFile(t)
	func() {
		if _, err := f.Lock(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}()
	for range 3 {
		collectGarbage(t)
	}
	if _, err := f.Lock(t.Context(), 0); !errors.Is(err, ErrBusy) {
		t.Fatalf("Lock = %v, want ErrBusy: the collector dropped the lock", err)
	}
	for grant := range f.gate.grants {
		f.gate.release(grant)
	}
}

// collectGarbage returns when what was unreachable before has been collected and cleaned up.
func collectGarbage(t *testing.T) {
	done := make(chan struct{})
	func() {
		sentinel := new([64]byte)
		runtime.AddCleanup(sentinel, func(done chan struct{}) { close(done) }, done)
	}()
	eventually(t, "garbage collected", func() bool {
		runtime.GC()
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

func TestHeldEndsWithUnlock(t *testing.T) {
	f := newFile(t)
	held := hold(t, f)
	for range 2 {
		if err := held.Unlock(); err != nil {
			t.Errorf("Unlock: %v", err)
		}
	}
	if _, err := held.Read(); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Read after Unlock = %v, want ErrNotHeld", err)
	}
	if err := held.Replace([]byte("{}")); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Replace after Unlock = %v, want ErrNotHeld", err)
	}
	if _, err := os.Stat(f.Path()); err == nil {
		t.Error("Replace after Unlock wrote")
	}
}

func TestUnlockOfAnEarlierHoldKeepsTheLater(t *testing.T) {
	f := newFile(t)
	first := hold(t, f)
	first.Unlock()
	hold(t, f)
	first.Unlock()
	if _, err := f.Lock(t.Context(), 0); !errors.Is(err, ErrBusy) {
		t.Errorf("Lock = %v, want ErrBusy", err)
	}
}

func TestLockFileIsPrivateAndNeverTouched(t *testing.T) {
	f := newFile(t)
	hold(t, f).Unlock()
	before, err := os.Stat(f.LockPath())
	if err != nil {
		t.Fatal(err)
	}
	if before.Mode() != 0o600 || before.Size() != 0 {
		t.Errorf("lock file has mode %v and %d bytes, want -rw------- and none", before.Mode(), before.Size())
	}
	write(t, f, "{}")
	after, err := os.Stat(f.LockPath())
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) || after.Size() != 0 || !after.ModTime().Equal(before.ModTime()) {
		t.Error("the lock file was written or replaced")
	}
}

func TestLockFileCreatedByTwoAtOnceIsOne(t *testing.T) {
	dir := t.TempDir()
	for i := range 50 {
		path := filepath.Join(dir, fmt.Sprint(i))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := create(path); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

func TestMissingDirectoryIsSaidByOpen(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "none", "reservations.json"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open = %v, want ErrNotExist", err)
	}
}

func TestOpenCreatesNothing(t *testing.T) {
	f := newFile(t)
	if _, err := f.Read(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Read of a missing document = %v, want ErrNotExist", err)
	}
	names, err := os.ReadDir(filepath.Dir(f.Path()))
	if err != nil || len(names) != 0 {
		t.Errorf("directory holds %v, %v; want nothing", names, err)
	}
}

func TestOtherErrorsThanBusyReachEveryWaiter(t *testing.T) {
	f := newFile(t)
	if err := os.Mkdir(f.LockPath(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, window := range []time.Duration{0, time.Second} {
		_, err := f.Lock(t.Context(), window)
		if err == nil || errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), f.LockPath()) {
			t.Errorf("Lock(%v) of a directory = %v, want an error that names it", window, err)
		}
	}
}

// A request that gave up leaves a waiter behind. When the directory is taken away meanwhile, it must not come back.
func TestAbandonedWaiterDoesNotBringTheLockFileBack(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "doc.json")
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	held, err := f.Lock(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock(t.Context(), time.Millisecond); !errors.Is(err, ErrBusy) {
		t.Fatalf("second Lock: %v, want busy", err)
	}
	if err := os.Remove(f.LockPath()); err != nil {
		t.Fatal(err)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	// The waiter that was left behind ends when it finds nobody asking: then the lock can be tried without a queue.
	other, err := Open(filepath.Join(dir, "other.json"))
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		h, err := other.Lock(t.Context(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		h.Unlock()
		if _, err := os.Stat(f.LockPath()); err == nil {
			t.Fatal("the lock file is back")
		}
	}
}
