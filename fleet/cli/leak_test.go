package cli_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/launch/process"
)

// failures is how many launches of each kind fail. It is a multiple of leakLanes.
var failures = flag.Int("failures", 24, "how many launches of each kind fail in the test that looks for leaks")

const (
	leakLanes  = 8 // launches under way at once; each has a tree of its own, and there is a slot for each
	leakConfig = `
grace = "20s"
lock_wait = "10s"
[roles.architect]
[profiles.missing]
command = ["no-such-program-anywhere"]
[profiles.dies]
command = ["sh", "-c", "exit 9"]
ready = "pattern:never"
[profiles.hangs]
command = ["sh", "-c", "exec sleep 600"]
ready = "pattern:never"
`
)

// leakRig is a fleet whose every launch fails, and the one dispatcher in this process.
type leakRig struct {
	*rig
	trees []string
	book  *book.Book
	d     *dispatch.Dispatcher
}

// free reports whether the tree is free by file and roster; a daemon that is away just now says nothing.
func (r *leakRig) free(tree string) bool {
	entries, err := r.book.Read()
	if err != nil {
		return false
	}
	roster, err := r.d.Daemon.Roster(r.t.Context())
	return err == nil && fleet.Occupancy(fleet.Tree{Path: tree}, entries, roster, process.Now()).State == fleet.Free
}

func newLeakRig(t *testing.T) *leakRig {
	t.Helper()
	conf := leakConfig
	for _, profile := range []string{"missing", "dies", "hangs"} {
		for i := range leakLanes {
			conf += fmt.Sprintf("[[slots]]\nname = \"%s-%d\"\nrole = \"architect\"\nprofile = %q\n", profile, i, profile)
		}
	}
	r := &leakRig{rig: newRig(t, conf)}
	r.must(nil, "up")
	for i := range leakLanes {
		r.trees = append(r.trees, r.repo(fmt.Sprintf("t%d", i)))
	}
	b, err := book.Open(r.state, process.Now)
	if err != nil {
		t.Fatal(err)
	}
	r.book = b
	r.d = &dispatch.Dispatcher{Ledger: b, Daemon: client.New(filepath.Join(r.state, "fleetd.sock"), ""),
		LockWait: 10 * time.Second, Grace: 20 * time.Second, Now: process.Now, Self: fleet.Dispatcher{Program: "test"}}
	return r
}

// fail lets launches fail, so many in all, in every lane at once. each is called with the id of each that was accepted.
func (r *leakRig) fail(profile string, grace time.Duration, each func(id string)) (accepted int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for lane, tree := range r.trees {
		wg.Go(func() {
			for i := lane; i < *failures; i += leakLanes {
				order := fleet.Order{Tree: tree, Role: "architect", Profile: profile, Grace: grace}
				out, err := r.d.Dispatch(r.t.Context(), order)
				for no := fleet.RefusalOf(err); no != nil && no.Code == fleet.CodeReservationStale; no = fleet.RefusalOf(err) { // a busy machine: its short grace was over before the daemon was asked
					out, err = r.d.Dispatch(r.t.Context(), order)
				}
				if err != nil {
					continue
				}
				mu.Lock()
				accepted++
				mu.Unlock()
				if each != nil {
					each(out.Member)
				}
				if _, err := r.d.Wait(r.t.Context(), out); err == nil {
					r.t.Errorf("a launch of %s was listed", profile)
				}
				r.await("the tree is free again", func() bool { return r.free(tree) })
			}
		})
	}
	wg.Wait()
	return accepted
}

// nothingLeft checks that no launch left anything behind.
func (r *leakRig) nothingLeft() {
	r.t.Helper()
	var slots []fleet.Slot
	r.await("every slot is free", func() bool {
		r.must(&slots, "slots")
		for _, s := range slots {
			if s.State != fleet.SlotFree {
				return false
			}
		}
		return true
	})
	for _, tree := range r.trees {
		r.awaitOccupancy(tree, fleet.Free)
		if left := marked("FLEETDECK_TREE=" + tree); len(left) > 0 {
			r.t.Errorf("processes %v live on in %s", left, tree)
		}
	}
	r.await("no entry holds a tree", func() bool {
		for _, e := range r.reservations() {
			if e.Verdict == fleet.VerdictPending {
				return false
			}
		}
		return true
	})
}

// A pool that shrinks silently is how a fix of this kind goes wrong: each failing path must give the slot back.
func TestFailedLaunchesGiveEverySlotAndTreeBack(t *testing.T) {
	t.Parallel()
	full(t)
	t.Run("command not found", func(t *testing.T) {
		r := newLeakRig(t)
		if n := r.fail("missing", 0, nil); n != 0 {
			t.Errorf("%d were accepted, want none", n)
		}
		r.nothingLeft()
	})
	t.Run("exit at once", func(t *testing.T) {
		r := newLeakRig(t)
		if n := r.fail("dies", 0, nil); n != *failures {
			t.Errorf("%d were accepted, want %d: a slot or a tree was not given back", n, *failures)
		}
		r.nothingLeft()
	})
	t.Run("boot timeout", func(t *testing.T) {
		r := newLeakRig(t)
		if n := r.fail("hangs", 500*time.Millisecond, nil); n != *failures {
			t.Errorf("%d were accepted, want %d: a slot or a tree was not given back", n, *failures)
		}
		r.nothingLeft()
	})
	t.Run("killed holder", func(t *testing.T) {
		r := newLeakRig(t)
		killed := 0
		var mu sync.Mutex
		n := r.fail("hangs", 3*time.Second, func(id string) {
			r.await("its holder runs", func() bool {
				for _, pid := range marked(filepath.Join("members", id)) {
					if strings.Contains(commandLine(pid), "\x00holder\x00") && syscall.Kill(pid, syscall.SIGKILL) == nil {
						mu.Lock()
						killed++
						mu.Unlock()
						return true
					}
				}
				return false
			})
		})
		if n != *failures || killed != *failures {
			t.Errorf("%d were accepted and %d holders killed, want %d of each", n, killed, *failures)
		}
		r.nothingLeft()
	})
	t.Run("daemon killed at any moment", func(t *testing.T) {
		r := newLeakRig(t)
		kills := 0
		stop := loop(func() {
			time.Sleep(rand.N(60 * time.Millisecond)) // a moment of the launches, another one each time
			r.kill()
			kills++
			r.must(nil, "up")
		})
		r.fail("dies", 3*time.Second, nil)
		stop()
		if kills == 0 {
			t.Error("the daemon was never killed")
		}
		t.Logf("the daemon was killed %d times", kills)
		r.nothingLeft()
	})
}
