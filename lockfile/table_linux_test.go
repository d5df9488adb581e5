package lockfile

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// The kernel shows its table of locks a page at a time. Whoever lets go in between shifts the rest, and a lock that is held all the time
// may not be shown.
func TestALockIsSeenInALongTableThatChanges(t *testing.T) {
	if _, err := os.Stat("/proc/locks"); err != nil {
		t.Skip("SKIPPED: no /proc/locks here")
	}
	dir := t.TempDir()
	open := func(name string) *os.File {
		t.Helper()
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	lock := func(f *os.File, how int) {
		if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
			t.Error(err)
		}
	}
	held := open("held")
	lock(held, syscall.LOCK_EX)
	var churning sync.WaitGroup
	stop := make(chan struct{})
	for i := range 2 {
		var files []*os.File
		for j := range 200 {
			files = append(files, open(fmt.Sprint(i, "-", j)))
		}
		churning.Go(func() {
			for {
				for _, how := range []int{syscall.LOCK_EX, syscall.LOCK_UN} {
					for _, f := range files {
						lock(f, how)
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	missed := 0
	looks := 300
	if testing.Short() { // under the race detector each takes its time
		looks = 30
	}
	for range looks {
		holders, err := findHolders(held.Name())
		if err != nil {
			t.Fatal(err)
		}
		if len(holders) == 0 {
			missed++
		}
	}
	close(stop)
	churning.Wait()
	if missed > 0 {
		t.Errorf("%d of %d looks did not see it", missed, looks)
	}
}
