// Package attach takes over the operator's terminal and shows an agent's in it, live.
//
// What the agent prints never reaches the operator's terminal: it goes into an emulated screen, and that is painted,
// as printable text and colours. Only a few modes that concern what is typed (cursor keys, paste, mouse, focus) are
// passed on, and taken back at the end. The terminal is given back as it was on every way out: detaching, the agent's
// end, a lost connection, a signal, a panic.
package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/screen"
)

// DefaultDetach is the key that detaches: ctrl-].
const DefaultDetach = 0x1d

// Options say where and how to attach.
type Options struct {
	// Stdin and Stdout are the operator's terminal.
	Stdin, Stdout *os.File
	// Detach is the key that detaches, a control character; 0 means [DefaultDetach].
	Detach byte
	// Name is shown in the bottom line.
	Name string
}

// Reason says why attaching ended.
type Reason string

// The reasons.
const (
	Detached Reason = "detached"
	Exited   Reason = "exited" // the agent has ended
	Gone     Reason = "gone"   // its holder was killed, and the agent with it
	Hangup   Reason = "hangup" // the operator's terminal is gone, or a signal came
	Failed   Reason = "failed"
)

// Result is how attaching ended.
type Result struct {
	Reason Reason
	Name   string
	// Exit is how the agent ended, where it did.
	Exit *launch.Exit
}

func (r Result) String() string {
	switch {
	case r.Reason == Exited && r.Exit != nil && r.Exit.Signal != "":
		return fmt.Sprintf("%s was ended by %s", r.Name, r.Exit.Signal)
	case r.Reason == Exited && r.Exit != nil:
		return fmt.Sprintf("%s exited with code %d", r.Name, r.Exit.Code)
	case r.Reason == Gone:
		return r.Name + " is gone: its terminal was killed"
	case r.Reason == Detached:
		return "detached from " + r.Name
	}
	return fmt.Sprintf("%s: %s", r.Name, r.Reason)
}

// Run attaches to held until the operator detaches or something ends it. The error is set where the end was neither
// the operator's nor the agent's.
func Run(ctx context.Context, held launch.Terminal, opts Options) (result Result, err error) {
	if opts.Detach == 0 {
		opts.Detach = DefaultDetach
	}
	result = Result{Reason: Failed, Name: opts.Name}
	status, err := held.Status(ctx)
	if err != nil {
		if errors.Is(err, launch.ErrGone) {
			result.Reason = Gone
			return result, nil
		}
		return result, err
	}
	if status.Exit != nil {
		result.Reason, result.Exit = Exited, status.Exit
		return result, nil
	}
	tty, err := openTerminal(opts.Stdin, opts.Stdout)
	if err != nil {
		return result, err
	}
	// Deferred, so that it also runs when something panics on the way.
	defer func() {
		if rerr := tty.restore(); err == nil {
			err = rerr
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{
		ctx: ctx, cancel: cancel, held: held, opts: opts, tty: tty, mirror: screen.NewMirror(ctx, held),
		shots: make(chan fleet.Screen, 1), ends: make(chan end, 8), notes: make(chan string, 1), panics: make(chan any, 1),
		painter: painter{bar: bar{name: opts.Name, key: keyName(opts.Detach), state: string(status.Phase)}},
	}
	e := s.run()
	result.Reason, result.Exit = e.reason, e.exit
	return result, e.err
}

// session is one attachment.
type session struct {
	ctx     context.Context
	cancel  context.CancelFunc
	held    launch.Terminal
	opts    Options
	tty     *terminal
	mirror  *screen.Mirror
	painter painter

	shots  chan fleet.Screen
	ends   chan end
	notes  chan string // for the bottom line
	panics chan any
}

type end struct {
	reason Reason
	exit   *launch.Exit
	err    error
}

// run paints until something ends the session. All painting is done here.
func (s *session) run() end {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	defer signal.Stop(signals)
	in, err := cancelreader.NewReader(s.opts.Stdin)
	if err != nil {
		return end{reason: Failed, err: fmt.Errorf("read the terminal: %w", err)}
	}
	typing := make(chan struct{})
	defer func() {
		s.cancel()
		// What is typed after this belongs to whoever reads the terminal next.
		if in.Cancel() {
			<-typing
		}
		in.Close()
	}()

	s.resize()
	go s.guard(s.watchScreen)
	go s.guard(s.watchEnd)
	go s.guard(func() { defer close(typing); s.pass(in) })
	for {
		var err error
		select {
		case e := <-s.ends:
			return e
		case v := <-s.panics:
			panic(v)
		case <-s.ctx.Done():
			return end{reason: Hangup, err: s.ctx.Err()}
		case sig := <-signals:
			switch sig {
			case syscall.SIGWINCH:
				s.resize()
			case syscall.SIGCONT: // whoever had the terminal meanwhile may have left it in another mode
				if err = s.tty.enter(); err == nil {
					s.resize()
				}
			default:
				return end{reason: Hangup, err: fmt.Errorf("ended by signal: %v", sig)}
			}
		case shot := <-s.shots:
			s.painter.shot = shot
		case s.painter.bar.state = <-s.notes:
		}
		if err == nil {
			s.tty.setModes(s.mirror.Modes())
			err = s.tty.write(s.painter.paint())
		}
		if err != nil {
			return end{reason: Hangup, err: fmt.Errorf("draw: %w", err)}
		}
	}
}

// guard runs f, and hands a panic to run, which gives the terminal back before it goes on.
func (s *session) guard(f func()) {
	defer func() {
		if v := recover(); v != nil {
			select {
			case s.panics <- fmt.Sprintf("%v\n\n%s", v, debug.Stack()):
			default:
			}
		}
	}()
	f()
}

// resize takes the window's size, and gives the agent what the bottom line leaves of it.
func (s *session) resize() {
	cols, rows, err := term.GetSize(int(s.opts.Stdout.Fd()))
	if err != nil || cols < 1 || rows < 1 {
		cols, rows = 80, 24
	}
	s.painter.setSize(cols, rows)
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
	defer cancel()
	if err := s.held.Resize(ctx, cols, s.painter.viewRows()); err != nil {
		s.note(err.Error())
	}
}

// note shows a text in the bottom line.
func (s *session) note(text string) {
	select {
	case s.notes <- text:
	default: // one is about to be shown; the next will come soon enough
	}
}

// watchScreen hands on each new screen, the newest one where run does not keep up.
func (s *session) watchScreen() {
	for rev := uint64(0); s.ctx.Err() == nil; {
		shot, err := s.mirror.Wait(s.ctx, rev)
		if err != nil {
			return // watchEnd finds out why
		}
		rev = shot.Rev
		select {
		case <-s.shots:
		default:
		}
		s.shots <- shot
	}
}

// watchEnd waits for the agent's end.
func (s *session) watchEnd() {
	for s.ctx.Err() == nil {
		frames, err := s.held.Follow(s.ctx, launch.FollowOptions{})
		if errors.Is(err, launch.ErrGone) {
			s.ends <- end{reason: Gone}
			return
		}
		if err == nil {
			for frame := range frames {
				if frame.Status == nil {
					continue
				}
				if frame.Status.Exit != nil {
					s.ends <- end{reason: Exited, exit: frame.Status.Exit}
					return
				}
				s.note(string(frame.Status.Phase))
			}
		} else {
			s.note(err.Error())
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// pass hands on what is typed, until the detach key.
func (s *session) pass(in cancelreader.CancelReader) {
	keys := keys{detach: s.opts.Detach}
	for buf := make([]byte, 4096); ; {
		n, err := in.Read(buf)
		typed, detach := keys.take(buf[:n], time.Now())
		if len(typed) > 0 {
			if err := s.held.Input(s.ctx, typed); err != nil {
				s.note(err.Error())
			}
		}
		switch {
		case detach:
			s.ends <- end{reason: Detached}
			return
		case errors.Is(err, cancelreader.ErrCanceled):
			return
		case err != nil:
			s.ends <- end{reason: Hangup, err: fmt.Errorf("read the terminal: %w", err)}
			return
		}
	}
}
