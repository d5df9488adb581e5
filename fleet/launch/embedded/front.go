package embedded

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"fleetdeck/fleet/launch/process"
)

const (
	// settle is how long a size that was asked for stands before the pane is asked to take it, and how long that may
	// take before the agent gets the pane's size again. A size change there and back within it reaches the agent only.
	settle = time.Second
	// resizePatience is how long the command that resizes a pane may run.
	resizePatience = 5 * time.Second
)

// front is the pane that a holder stands in. A holder of its own process has none.
//
// The sizes of pane and agent are the same but for a moment: each may be changed, and the last one to change wins where the
// pane can follow; where it cannot, the pane does.
type front struct {
	tty     *os.File
	command []string      // that resizes the pane
	asked   chan struct{} // somebody gave the agent a size
}

// openFront takes the process's terminal over as a front.
func openFront(resize []string) (*front, error) {
	f := &front{tty: os.Stdin, command: resize, asked: make(chan struct{}, 1)}
	// Raw: keys are bytes for the agent's terminal, which makes interrupts and the like of them itself.
	if _, err := term.MakeRaw(int(f.tty.Fd())); err != nil {
		return nil, fmt.Errorf("the holder is in no pane: %w", err)
	}
	return f, nil
}

// size is the pane's size, or the other where it has none.
func (f *front) size(or winsize) winsize {
	cols, rows, err := term.GetSize(int(f.tty.Fd()))
	if err != nil || checkSize(cols, rows) != nil {
		return or
	}
	return winsize{cols, rows}
}

// attend serves the pane until the agent's exit is on record.
func (h *holder) attend() {
	winch := make(chan os.Signal, 1)
	signal.Notify(winch, unix.SIGWINCH)
	go h.out.show(os.Stdout)
	go h.takeKeys()
	timer := time.NewTimer(settle) // the pane may have got another size before the signal was listened for
	waited := false
	for {
		select {
		case <-h.recorded:
			return
		case <-winch:
			h.takePaneSize()
			waited = false
		case <-h.front.asked:
			timer.Reset(settle)
		case <-timer.C:
			switch want := h.size(); {
			case want == h.front.size(want):
				waited = false
			case waited || !h.front.resize(want):
				h.takePaneSize()
				waited = false
			default:
				waited = true
				timer.Reset(settle)
			}
		}
	}
}

func (h *holder) size() winsize {
	s := h.status()
	return winsize{s.Cols, s.Rows}
}

func (h *holder) takePaneSize() {
	have := h.size()
	if want := h.front.size(have); want != have {
		if err := h.setSize(want); err != nil {
			fmt.Fprintf(os.Stderr, "fleetdeck holder: %v\n", err)
		}
	}
}

// takeKeys types what is typed in the pane. When the pane is closed the agent ends: nobody could see it there any more.
func (h *holder) takeKeys() {
	for buf := make([]byte, 4<<10); ; {
		n, err := h.front.tty.Read(buf)
		if n > 0 {
			h.in.add(buf[:n]) // an agent that reads nothing misses what is typed
		}
		if err != nil {
			h.closed()
			return
		}
	}
}

// closed ends the agent of a pane that is gone.
func (h *holder) closed() {
	h.askEnd(ending{reason: "closed", patience: leftoverPatience})
}

// resize asks the pane to take a size, and reports whether it could be asked.
func (f *front) resize(s winsize) bool {
	if len(f.command) == 0 {
		return false
	}
	fill := strings.NewReplacer("{cols}", strconv.Itoa(s.cols), "{rows}", strconv.Itoa(s.rows))
	argv := make([]string, len(f.command))
	for i, arg := range f.command {
		argv[i] = fill.Replace(arg)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer null.Close()
	// Not by os/exec: all children are waited for by the holder's reaper.
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []uintptr{null.Fd(), null.Fd(), os.Stderr.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "fleetdeck holder: resize the pane: %v\n", err)
		return false
	}
	if p, err := process.Of(pid); err == nil {
		time.AfterFunc(resizePatience, func() { process.Signal(p, unix.SIGKILL) })
	}
	return true
}
