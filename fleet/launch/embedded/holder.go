package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/process"
)

var (
	errEnded = errors.New("the agent has ended")
	errLate  = errors.New("the agent's deadline has passed")
)

// HolderMain is the holder of the agent whose spec is in dir, from its start to its end. It gives the exit code.
func HolderMain(dir string) int {
	// A holder lives for days and handles a few kilobytes at a time: small is worth more than fast.
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(24 << 20)

	syscall.CloseOnExec(lockFd)
	syscall.CloseOnExec(readyFd)
	if err := inherited(dir); err != nil {
		fmt.Fprintf(os.Stderr, "fleetdeck holder: %v\n", err)
		return 2
	}
	ready := os.NewFile(readyFd, "ready")
	h, err := begin(dir, nil)
	if err != nil {
		fmt.Fprintf(os.Stderr, "fleetdeck holder: %v\n", err)
		fmt.Fprintln(ready, err)
		return 1
	}
	fmt.Fprintln(ready, readyWord)
	ready.Close()
	h.run()
	return 0
}

// inherited makes sure that the holder's lock came with this process: without it, it would be a second holder.
func inherited(dir string) error {
	want, err := os.Stat(filepath.Join(dir, lockFile))
	if err != nil {
		return err
	}
	var have unix.Stat_t
	st, ok := want.Sys().(*syscall.Stat_t)
	if err := unix.Fstat(lockFd, &have); err != nil || !ok || have.Ino != st.Ino || uint64(have.Dev) != uint64(st.Dev) {
		return errors.New("a holder is started by the daemon only: use fleetdeck dispatch")
	}
	return nil
}

// holder keeps one agent.
//
//	starting ──gate──► running ──exit, stop or deadline──► ending ──nobody left──► exited
//
// Ending and exited are final. A confirmation and the deadline decide between them, by saving, which of them came first.
type holder struct {
	spec     launch.Spec
	front    *front // of a holder in a pane
	pty      *os.File
	out      *output
	in       *input
	answers  *responder
	listener net.Listener
	conns    sync.WaitGroup

	agentEnded chan struct{} // closed when waitStatus is set
	waitStatus unix.WaitStatus
	gateDone   chan struct{} // closed when the gate has nothing more to say
	readDone   chan struct{} // closed when the terminal has nothing more to read
	end        chan ending   // asks run to end the agent
	recorded   chan struct{} // closed when the exit is on record

	sizing sync.Mutex // held by whoever changes the size

	// saving is held by whoever decides something that goes on record, until it stands there. A disk may take its time.
	saving sync.Mutex
	mu     sync.Mutex // guards the fields below, for a moment only; taken after saving
	rec    record
	ending bool
	fence  fence
}

// ending is how an agent is to be ended.
type ending struct {
	reason   string
	patience time.Duration
}

// run keeps the agent until its end.
func (h *holder) run() {
	signals := make(chan os.Signal, 8)
	// Caught and not ignored: the agent would inherit that.
	signal.Notify(signals, unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGPIPE)
	go func() {
		for s := range signals {
			switch {
			case s == unix.SIGTERM:
				h.askEnd(ending{reason: "stopped", patience: 5 * time.Second})
			case s == unix.SIGHUP && h.front != nil:
				h.closed()
			}
		}
	}()
	go h.readTerminal()
	go h.in.pump(h.pty)
	go h.watchDeadline()
	if h.front != nil {
		go h.attend()
	}
	accepting := make(chan struct{})
	go func() { h.accept(); close(accepting) }()

	var e ending
	select {
	case <-h.agentEnded:
		e = ending{patience: leftoverPatience}
	case e = <-h.end:
		h.saving.Lock() // a confirmation that is being written comes first
		h.begun()
		h.saving.Unlock()
	}
	h.endAll(e)
	h.drain()

	if h.fenceOver() {
		e.reason = launch.Fenced
	}
	exit := exitOf(h.waitStatus, e.reason)
	err := h.save(func(r *record) error { r.Phase, r.Exit = launch.Exited, exit; return nil })
	if err != nil {
		// Without the record the terminal will count as killed: nothing of it runs, and its exit is lost.
		fmt.Fprintf(os.Stderr, "fleetdeck holder: record the exit, code %d: %v\n", exit.Code, err)
	}
	h.out.close()
	close(h.recorded)
	h.listener.Close()
	<-accepting
	served := make(chan struct{})
	go func() { h.conns.Wait(); close(served) }()
	select {
	case <-served:
	case <-time.After(3 * time.Second): // a follower that is stuck; what it misses is in the log
	}
}

// begun says that the agent is being ended; from here on nothing confirms it. h.saving is held.
func (h *holder) begun() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = true
}

// askEnd asks run to end the agent. One request is enough.
func (h *holder) askEnd(e ending) {
	select {
	case h.end <- e:
	default:
	}
}

// endAll ends the agent and all that it started, and returns when all are gone, the agent waited for. A later request
// with less patience hurries it.
func (h *holder) endAll(e ending) {
	self := h.status().Holder
	for {
		ctx, cancel := context.WithCancel(context.Background())
		kill := time.Now().Add(e.patience)
		done := make(chan error, 1)
		go func() { done <- process.EndTree(ctx, self, marker(h.spec.ID), e.patience) }()
		var err error
		for waiting := true; waiting; {
			select {
			case err = <-done:
				waiting = false
			case next := <-h.end:
				if time.Now().Add(next.patience).Before(kill) {
					e.patience = next.patience
					cancel()
					err, waiting = <-done, false
				}
			}
		}
		hurried := ctx.Err() != nil
		cancel()
		if err == nil {
			break
		}
		if !hurried {
			fmt.Fprintf(os.Stderr, "fleetdeck holder: %v\n", err)
			time.Sleep(time.Second)
		}
	}
	<-h.agentEnded
}

// drain takes what the terminal still holds. Nobody has it open any more, so that its end is near, unless a process
// that is not the agent's was handed it.
func (h *holder) drain() {
	select {
	case <-h.readDone:
	case <-time.After(2 * time.Second):
	}
	<-h.gateDone
	h.in.close()
	h.out.release()
}

// reap waits for the agent, and for those of its descendants whose parents are gone.
func (h *holder) reap(agent int) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case pid == agent:
			h.waitStatus = ws
			close(h.agentEnded)
		case err == unix.ECHILD:
			// Children come only by way of other children.
			return
		}
	}
}

// hearGate listens to the gate until it is the agent's program, or gave up.
func (h *holder) hearGate(reports *os.File) {
	defer close(h.gateDone)
	defer reports.Close()
	var all report
	var err error
	for in := json.NewDecoder(reports); err == nil; {
		err = in.Decode(&all)
	}
	if err != io.EOF {
		all.Failure = fmt.Sprintf("the gate could not be understood: %v", err)
	}
	if !all.Passed && all.Failure == "" {
		all.Failure = "the gate ended before it had done its work"
	}
	err = h.save(func(r *record) error {
		r.Receipt, r.Failure = all.Receipt, all.Failure
		if all.Failure == "" {
			r.Phase = launch.Running
		}
		return nil
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "fleetdeck holder: record the gate's report: %v\n", err)
	}
	h.out.wake()
}

func (h *holder) readTerminal() {
	defer close(h.readDone)
	buf := make([]byte, 32<<10)
	for {
		n, err := h.pty.Read(buf)
		if n > 0 {
			h.out.feed(buf[:n])
		}
		if err != nil { // EIO when the last process has closed it
			return
		}
	}
}

// watchDeadline ends the agent when its deadline passes and nobody has confirmed it. It looks now and then, since a
// deadline of another boot goes by the wall clock, which may be set.
func (h *holder) watchDeadline() {
	if unlimited(h.spec.Deadline) {
		return
	}
	for {
		left := h.spec.Deadline.Remaining(process.Now())
		if left <= 0 {
			break
		}
		select {
		case <-h.recorded:
			return
		case <-time.After(min(left, 5*time.Second)):
		}
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	if !h.status().Confirmed {
		h.begun()
		h.askEnd(ending{reason: "deadline", patience: leftoverPatience})
	}
}

// confirm switches the deadline off, durably. What passed its deadline is not confirmed, even if it still runs.
func (h *holder) confirm() error {
	return h.save(func(r *record) error {
		switch {
		case h.ending, r.Exit != nil:
			return errEnded
		case !r.Confirmed && !unlimited(h.spec.Deadline) && h.spec.Deadline.Remaining(process.Now()) <= 0:
			return errLate // and about to be ended
		}
		r.Confirmed = true
		return nil
	})
}

// save changes the record on disk and then in memory: what anybody is told will also be found later. change may look
// at ending. An error of change leaves everything as it was.
func (h *holder) save(change func(*record) error) error {
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	next := h.rec
	err := change(&next)
	h.mu.Unlock()
	if err != nil {
		return err
	}
	if h.out != nil {
		next.Output = h.out.count()
	}
	if err := writeJSON(filepath.Join(h.spec.Dir, recordFile), next); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	next.Cols, next.Rows = h.rec.Cols, h.rec.Rows // the size may have changed meanwhile; it goes on record with the next save
	h.rec = next
	return nil
}

func (h *holder) status() launch.Status {
	h.mu.Lock()
	s := h.rec.Status
	s.Fenced = h.fence.set
	h.mu.Unlock()
	s.Output = h.out.count()
	return s
}
