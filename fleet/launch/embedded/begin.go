package embedded

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/creack/pty"

	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/launch/sockpath"
)

// begin starts the agent, behind a front where the holder has one. An error means that nothing runs.
func begin(dir string, f *front) (*holder, error) {
	spec, err := readSpec(dir)
	if err != nil {
		return nil, err
	}
	if left := spec.Deadline.Remaining(process.Now()); left <= 0 && !unlimited(spec.Deadline) {
		return nil, fmt.Errorf("its deadline passed %v ago", -left)
	}
	if f != nil {
		size := f.size(winsize{spec.Cols, spec.Rows})
		spec.Cols, spec.Rows = size.cols, size.rows
	}
	if err := becomeSubreaper(); err != nil {
		return nil, fmt.Errorf("become the reaper of the agent's orphans: %w", err)
	}
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	h := &holder{
		spec: spec, front: f, in: newInput(),
		agentEnded: make(chan struct{}), gateDone: make(chan struct{}), readDone: make(chan struct{}),
		end: make(chan ending, 1), recorded: make(chan struct{}),
	}
	h.answers = &responder{typ: h.in.add}
	if err := h.listen(); err != nil {
		return nil, err
	}
	// On record before anything runs: from here on a dead holder may have left something.
	h.rec.ID = spec.ID
	h.rec.Status = launch.Status{Phase: launch.Starting, Holder: self, Cols: spec.Cols, Rows: spec.Rows}
	err = h.save(func(*record) error { return nil })
	if err == nil {
		err = h.start()
	}
	if err != nil {
		h.listener.Close()
		return nil, errors.Join(err, os.Remove(filepath.Join(dir, recordFile)))
	}
	return h, nil
}

// listen opens the socket.
func (h *holder) listen() error {
	path, err := sockpath.In(h.spec.Dir, socketFile)
	if err != nil {
		return err
	}
	os.Remove(path) // of an earlier holder; the lock says that it is dead
	h.listener, err = net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	h.rec.Socket = path
	return err
}

// start opens the terminal and runs the gate in it.
func (h *holder) start() error {
	master, tty, err := pty.Open()
	if err != nil {
		return fmt.Errorf("open a terminal: %w", err)
	}
	defer tty.Close()
	if err := pty.Setsize(master, &pty.Winsize{Cols: uint16(h.spec.Cols), Rows: uint16(h.spec.Rows)}); err != nil {
		return errors.Join(fmt.Errorf("size the terminal: %w", err), master.Close())
	}
	reports, w, err := os.Pipe()
	if err != nil {
		return errors.Join(err, master.Close())
	}
	defer w.Close()
	exe, err := selfExe()
	if err != nil {
		return errors.Join(err, master.Close(), reports.Close())
	}
	pid, err := syscall.ForkExec(exe, []string{"fleetdeck", "agent-exec", "--dir", h.spec.Dir}, &syscall.ProcAttr{
		Dir:   "/",
		Env:   h.spec.Env,
		Files: []uintptr{tty.Fd(), tty.Fd(), tty.Fd(), w.Fd()}, // the last is reportFd
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0},
	})
	if err != nil {
		return errors.Join(fmt.Errorf("run the gate: %w", err), master.Close(), reports.Close())
	}
	h.pty = master
	h.out = newOutput(winsize{h.spec.Cols, h.spec.Rows}, openLog(h.spec.Dir, h.spec.LogLimit), h.answers)
	// Not waited for yet, so that the pid is still the agent's, whatever became of it.
	agent, err := process.Of(pid)
	if err == nil {
		err = h.save(func(r *record) error { r.Agent = agent; return nil })
	}
	if err != nil { // the agent is found by its marker; the record is written again with the next change
		fmt.Fprintf(os.Stderr, "fleetdeck holder: record the agent: %v\n", err)
	}
	go h.reap(pid)
	go h.hearGate(reports)
	return nil
}
