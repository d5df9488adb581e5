package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
)

// frameRate is how many frames a second are written at most.
const frameRate = 120

// Panic is a panic of the console, caught so that the terminal is whole when it is reported.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string {
	return fmt.Sprintf("the console panicked: %v\n\n%s", p.Value, p.Stack)
}

// Run shows the console on the terminal until the operator quits, ctx ends or a signal ends it. The terminal is whole
// afterwards. It returns nil when the operator quit, a [*Panic] when the console panicked, and otherwise why it ended.
func Run(ctx context.Context, f Fleet, opts Options) error {
	// SIGTERM and SIGINT are the framework's own as well; SIGHUP and SIGQUIT it leaves to kill the process.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM)
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	m := New(f, opts)
	m.ctx = ctx
	g := &guard{inner: m, fail: fail}
	m.rescue = g.catch
	err := runProgram(g, tea.WithContext(ctx))
	if m.away {
		fmt.Print(keyboardBack)
	}
	if cause := context.Cause(ctx); cause != nil {
		if p := (*Panic)(nil); errors.As(cause, &p) {
			return p
		}
		return fmt.Errorf("the console ended: %w", cause)
	}
	if err != nil {
		return fmt.Errorf("the console ended: %w", err)
	}
	return nil
}

// runProgram runs the framework over a guarded model until that quits.
func runProgram(g *guard, opts ...tea.ProgramOption) error {
	p := tea.NewProgram(g, append(opts, tea.WithFPS(frameRate))...)
	g.pulse.program = p
	defer g.pulse.stop()
	_, err := p.Run()
	return err
}

// keyboardBack puts the keyboard back where the console ended while a command had the terminal. The framework then takes the
// terminal back and gives it up in one breath, and writes what resets the keyboard before what sets it. Each screen of a
// terminal has a keyboard of its own.
const keyboardBack = ansi.SetModeAltScreenSaveCursor + "\x1b[<1u" + ansi.ResetModeAltScreenSaveCursor + ansi.ResetModifyOtherKeys

// guard ends the program in good order where the model or one of its commands panics: through the context, so that the
// framework puts the terminal back and the stack is printed on a whole one.
type guard struct {
	inner tea.Model
	fail  context.CancelCauseFunc
	pulse pulse
}

func (g *guard) catch() {
	if v := recover(); v != nil {
		g.fail(&Panic{v, debug.Stack()})
	}
}

func (g *guard) Init() (cmd tea.Cmd) {
	defer g.catch()
	return g.cover(g.inner.Init())
}

func (g *guard) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer g.catch()
	inner, cmd := g.inner.Update(msg)
	g.inner = inner
	return g, g.cover(cmd)
}

func (g *guard) View() (v tea.View) {
	defer g.catch()
	g.pulse.beat()
	return g.inner.View()
}

// cover guards a command, and those that it leads to.
func (g *guard) cover(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer g.catch()
		msg = cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i, c := range batch {
				batch[i] = g.cover(c)
			}
		}
		return msg
	}
}

// suspend stops the console and gives the terminal back to the shell, until that has it go on.
func (m *Model) suspend() tea.Cmd {
	if !hasShell() {
		return m.say(levelInfo, "no shell to go back to: the console is all that runs in this terminal", m.keys.Quit.Help().Key+" quits")
	}
	return tea.Suspend
}

// hasShell reports whether somebody can have the console go on once it is stopped: one who started it as a job of its own.
// In the process group of the session's leader it is none. The system leaves such a group running, which would wait for ever,
// without its terminal, for somebody to go on.
func hasShell() bool {
	session, err := unix.Getsid(0)
	return err != nil || unix.Getpgrp() != session
}

// attachment is the command that has the terminal meanwhile. It ends with the console: a signal that ends the one must
// not leave it behind the other.
type attachment struct {
	*exec.Cmd
	m *Model
}

// Run runs the command to its end.
func (a *attachment) Run() error {
	a.m.away = true // the framework calls this where it calls Update too
	if err := a.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(a.m.ctx, func() { _ = a.Process.Signal(syscall.SIGTERM) })
	defer stop()
	return a.Wait()
}

// SetStdin sets where the command reads, unless it has a place of its own. It and the two below make attachment a
// tea.ExecCommand.
func (a *attachment) SetStdin(r io.Reader) {
	if a.Stdin == nil {
		a.Stdin = r
	}
}

// SetStdout sets where the command writes, unless it has a place of its own.
func (a *attachment) SetStdout(w io.Writer) {
	if a.Stdout == nil {
		a.Stdout = w
	}
}

// SetStderr sets where the command writes its errors, unless it has a place of its own.
func (a *attachment) SetStderr(w io.Writer) {
	if a.Stderr == nil {
		a.Stderr = w
	}
}
