package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"fleetdeck/fleet"
)

// EndTree ends root and every process that it started, and returns once none is left: TERM first, KILL after
// patience, again and again for those that were forked meanwhile. Ending what has ended is no error.
//
// A process belongs to the tree when it is root, a descendant of one that belongs, in a session whose leader belongs,
// or a process of this user with marker ("NAME=value") in its environment. The marker finds what root left behind, so
// root may be dead already, or zero. An empty marker marks nobody. The calling process is never signalled, so that
// it may name itself as root to end all its descendants.
//
// An error means that some of the tree may be alive: ctx ended, or the system refused.
func EndTree(ctx context.Context, root fleet.Process, marker string, patience time.Duration) error {
	h := hunt{root: root, marker: marker, self: os.Getpid(), seen: map[fleet.Process]bool{}}
	kill := time.Now().Add(patience)
	for {
		prey, err := h.find()
		if err != nil {
			return fmt.Errorf("end process tree of %d: read the process table: %w", root.Pid, err)
		}
		if len(prey) == 0 {
			return nil
		}
		sig, until := syscall.SIGTERM, kill
		if !time.Now().Before(kill) {
			sig, until = syscall.SIGKILL, time.Now().Add(time.Second)
		}
		var errs []error
		for _, p := range prey {
			if sig == syscall.SIGTERM && h.seen[p] {
				continue // told once; a second TERM makes some programs skip their clean-up
			}
			h.seen[p] = true
			if err := end(p, sig); err != nil {
				errs = append(errs, fmt.Errorf("end process %d of the tree of %d: %w", p.Pid, root.Pid, err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if err := settle(ctx, prey, until); err != nil {
			return fmt.Errorf("end process tree of %d: %d still running: %w", root.Pid, len(prey), err)
		}
	}
}

// end signals p. A stopped process is continued, since it would keep TERM pending for ever.
func end(p fleet.Process, sig syscall.Signal) error {
	err := Signal(p, sig)
	if err == nil && sig == syscall.SIGTERM {
		err = Signal(p, syscall.SIGCONT)
	}
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// settle waits until all of ps have ended, or until a new look is due: at until, and now and then, since they may
// have forked.
func settle(ctx context.Context, ps []fleet.Process, until time.Time) error {
	const look = 200 * time.Millisecond
	due := time.NewTimer(min(time.Until(until), look))
	defer due.Stop()
	for step := time.Millisecond; ; step = min(2*step, 20*time.Millisecond) {
		for len(ps) > 0 && !Alive(ps[0]) {
			ps = ps[1:]
		}
		if len(ps) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-due.C:
			return nil
		case <-time.After(step):
		}
	}
}

// hunt finds the processes of one tree. It remembers those that it has found, so that one whose parent is gone by the
// next look is not lost.
type hunt struct {
	root   fleet.Process
	marker string
	self   int
	seen   map[fleet.Process]bool
}

// find gives the living processes of the tree, without the caller.
func (h *hunt) find() ([]fleet.Process, error) {
	all, err := table()
	if err != nil {
		return nil, err
	}
	mine := make(map[int]bool)
	for _, e := range all {
		if _, seen := h.seen[e.Process]; seen || e.Process == h.root || h.marked(e) {
			mine[e.Pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, e := range all {
			if !mine[e.Pid] && (mine[e.parent] || mine[e.session]) {
				mine[e.Pid] = true
				grown = true
			}
		}
	}
	var prey []fleet.Process
	for _, e := range all {
		if !mine[e.Pid] || e.Pid == h.self || e.Pid == 1 {
			continue
		}
		if _, seen := h.seen[e.Process]; !seen {
			h.seen[e.Process] = false
		}
		if !e.zombie {
			prey = append(prey, e.Process)
		}
	}
	return prey, nil
}

func (h *hunt) marked(e entry) bool {
	return h.marker != "" && e.Pid != h.self && !e.zombie && marked(e.Pid, h.marker)
}

// hasEntry reports whether a NUL-separated environment holds exactly this entry.
func hasEntry(env []byte, entry string) bool {
	if entry == "" {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if string(kv) == entry {
			return true
		}
	}
	return false
}
