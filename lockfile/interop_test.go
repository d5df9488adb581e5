package lockfile

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestProgramsInOtherLanguagesExcludeAndAreExcluded is the table in docs/interop.md: each program holds and each other one tries.
func TestProgramsInOtherLanguagesExcludeAndAreExcluded(t *testing.T) {
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
	dir := t.TempDir()
	built := map[string][]string{} // by name
	for _, p := range foreigners {
		t.Run(p.name, func(t *testing.T) {
			argv, why := p.build(t, dir)
			if argv == nil {
				t.Skipf("SKIPPED, not tested with %s: %s", p.name, why)
			}
			built[p.name] = argv
			excludes(t, p, argv)
		})
	}
	t.Run("each with each", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("SKIPPED: which families know each other is known for Linux only")
		}
		eachWithEach(t, built)
	})
}

// excludes has p meet a lock of ours, and ours meet one of p's.
func excludes(t *testing.T, p foreign, argv []string) {
	f := newFile(t)
	held := hold(t, f)
	holder := start(t, exec.Command(argv[0], append(argv[1:len(argv):len(argv)], f.LockPath())...))
	holder.do("lock", "busy")
	held.Unlock()

	holder.do("lock", "held")
	_, err := f.Lock(t.Context(), 0)
	busy, ok := errors.AsType[*BusyError](err)
	if !ok {
		t.Fatalf("Lock = %v, want a BusyError", err)
	}
	if runtime.GOOS == "linux" {
		if len(busy.Holders) != 1 {
			t.Fatalf("holders are %v, want one", busy.Holders)
		}
		by := busy.Holders[0]
		if by.Pid != holder.cmd.Process.Pid || by.Kind != p.family || !strings.HasPrefix(by.Program, p.called()) {
			t.Errorf("the holder is %v with %s, want pid %d (%s…) with %s", by, by.Kind, holder.cmd.Process.Pid, p.called(), p.family)
		}
		if want := fmt.Sprintf("reservations.json is busy: held by %v", by); err.Error() != want {
			t.Errorf("Lock says %q, want %q", err, want)
		}
	}

	// Who waits meanwhile gets it when that program ends.
	got := make(chan error)
	go func() {
		held, err := f.Lock(t.Context(), patienceOfTests)
		if err == nil {
			err = held.Unlock()
		}
		got <- err
	}()
	eventually(t, "request in the queue", func() bool { return queueLen(f) == 1 })
	holder.end()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// eachWithEach has every program, and a process of ours, hold the lock in turn while all others try it. Two programs exclude each other
// if their locks are of one family; ours excludes all.
func eachWithEach(t *testing.T, built map[string][]string) {
	type rival struct {
		*child
		name, family, lock string
	}
	f := newFile(t)
	hold(t, f).Unlock()
	rivals := []rival{{startChild(t, "agent", f.Path()), "ours", "", "lock 0s"}}
	for _, p := range foreigners {
		if argv := built[p.name]; argv != nil {
			c := start(t, exec.Command(argv[0], append(argv[1:len(argv):len(argv)], f.LockPath())...))
			rivals = append(rivals, rival{c, p.name, p.family, "lock"})
		}
	}
	if len(rivals) < 3 {
		t.Skip("SKIPPED: fewer than two other languages are at hand")
	}
	for i, holder := range rivals {
		holder.do(holder.lock, "held")
		for j, contender := range rivals {
			if i == j {
				continue
			}
			contender.tell("%s", contender.lock)
			answer, _, _ := strings.Cut(contender.hear(), " ")
			want := "held"
			if holder.family == contender.family || holder.family == "" || contender.family == "" {
				want = "busy"
			}
			if answer != want {
				t.Errorf("%s holds the lock, and %s finds it %s, want %s", holder.name, contender.name, answer, want)
			}
			if answer == "held" {
				contender.do("unlock", "free")
			}
		}
		holder.do("unlock", "free")
	}
}
