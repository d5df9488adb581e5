package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/daemon"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/herdr"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/launch/tmux"
	"fleetdeck/fleet/plain"
)

// startWait is how long a daemon has until its socket answers.
const startWait = 15 * time.Second

func newUpCommand(g *globals) *cobra.Command {
	var foreground bool
	cmd := &cobra.Command{
		Use: "up", Short: "start the daemon", Args: noArgs,
		Long: `up starts the daemon in the background and returns once it answers. Members of an earlier daemon are adopted again, with
their ids, roles and charters. --foreground runs it here, for a service manager.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			if foreground {
				return s.runDaemon(cmd.Context(), g.err)
			}
			health, started, err := s.ensureDaemon(cmd.Context())
			if err != nil {
				return err
			}
			if started {
				g.say("the daemon is up, pid %d", health)
			} else {
				g.say("the daemon is up already, pid %d", health)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&foreground, "foreground", false, "run the daemon here, until a signal ends it")
	return cmd
}

// runDaemon runs the daemon in this process.
func (s *session) runDaemon(ctx context.Context, log io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.insideAgent(); err != nil {
		return err
	}
	s.client = s.client.As("") // the daemon is nobody's, also where a member started it
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	var mu sync.Mutex // guards log
	logf := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(log, "%s %s\n", time.Now().UTC().Format(time.RFC3339Nano), plain.Clean(fmt.Sprintf(format, args...), -1))
		putAside(log, filepath.Join(s.dir.Path, logName))
	}
	s.book.Warn = func(err error) { logf("reservation file: %v", err) }
	if err := s.atHome(ctx); err != nil {
		return err
	}
	attend, err := s.attend(ctx)
	if err != nil {
		return err
	}
	return daemon.Run(ctx, daemon.Options{
		State: s.dir, Config: s.conf, Ledger: s.ledger, Launcher: embedded.New(exe), Launchers: s.launchers(exe), Version: s.build.String(), Exe: exe, Now: process.Now, Log: logf,
		Ready: func() { logf("listening on %s", s.dir.Socket) }, Keeper: s.keepForDaemon(), Attend: attend, Fencing: s.fencing(),
	})
}

// launchers are those that a profile can name beside the embedded one.
func (s *session) launchers(exe string) []launch.Launcher {
	return []launch.Launcher{tmux.New(exe, s.dir.Path, s.conf.TmuxServer), herdr.New(exe, s.conf.HerdrSocket)}
}

// ensureDaemon starts the daemon in the background if none answers, and waits until one does.
func (s *session) ensureDaemon(ctx context.Context) (pid int, started bool, err error) {
	pid, err = s.health(ctx)
	var silent *silentError
	if err == nil || errors.As(err, &silent) {
		return pid, false, err
	}
	if err := s.insideAgent(); err != nil {
		return 0, false, err
	}
	if err := s.atHome(ctx); err != nil && !errors.Is(err, daemon.ErrRunning) { // one that has just begun answers below
		return 0, false, err
	}
	exe, err := os.Executable()
	if err != nil {
		return 0, false, fmt.Errorf("find this program: %w", err)
	}
	logPath := filepath.Join(s.dir.Path, logName)
	log, err := openLog(logPath)
	if err != nil {
		return 0, false, fmt.Errorf("start the daemon: %w", err)
	}
	defer log.Close()
	args := []string{"up", "--foreground"}
	if !s.dir.Usual {
		args = append(args, "--state", s.dir.Path)
	}
	if s.conf.Path != "" {
		args = append(args, "--config", s.conf.Path)
	}
	cmd := exec.Command(exe, args...)
	cmd.Stdout, cmd.Stderr = log, log
	// A session of its own: what ends the console or its terminal does not reach the daemon.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, false, fmt.Errorf("start the daemon: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for {
		h, herr := s.client.Health(ctx)
		if herr == nil {
			return h.Pid, h.Pid == cmd.Process.Pid, nil
		}
		select {
		case <-exited:
			// Another one may have been quicker.
			if h, err := s.client.Health(ctx); err == nil {
				return h.Pid, false, nil
			}
			return 0, false, endedAtOnce(cmd.ProcessState.ExitCode(), logPath)
		case <-ctx.Done():
			return 0, false, fmt.Errorf("the daemon does not answer: %w: see %s", herr, logPath)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

const (
	logName = "daemon.log"
	// maxLog is how long a log may grow before it is put aside.
	maxLog = 4 << 20
)

// putAside copies the log at path to path.1 and begins it anew, where it is long and log is that very file: another one, as a service
// manager hands it over, is not ours to cut. What a member can have logged must not fill the disk.
func putAside(log io.Writer, path string) {
	file, ok := log.(*os.File)
	if !ok {
		return
	}
	info, err := file.Stat()
	if err != nil || info.Size() <= maxLog {
		return
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(info, there) {
		return
	}
	// The daemon's output and its children's go on into the same file, opened to append.
	if data, err := os.ReadFile(path); err == nil && os.WriteFile(path+".1", data, 0o600) == nil {
		os.Truncate(path, 0)
	}
}

// openLog opens the daemon's log; a long one is put aside first.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		os.Rename(path, path+".1")
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

func newDownCommand(g *globals) *cobra.Command {
	var stopMembers bool
	cmd := &cobra.Command{
		Use: "down", Short: "stop the daemon", Args: noArgs,
		Long: `down stops the daemon. Members go on running and are adopted by the next one; --stop-members ends them first. Where [cluster] has self_fence, those
with a slot end unless a daemon is up again within that time.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			down, err := s.stopDaemon(ctx, stopMembers)
			switch {
			case err != nil:
				return err
			case !down:
				g.say("the daemon is not running")
			default:
				g.say("the daemon is down")
				if f := s.fencing(); f.Span > 0 && !stopMembers {
					g.say("members with a slot end %s after that, unless a daemon is up again by then", f.Span)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&stopMembers, "stop-members", false, "end every member first")
	return cmd
}

// stopDaemon stops the daemon and waits until it is gone, and reports whether there was one.
func (s *session) stopDaemon(ctx context.Context, members bool) (stopped bool, err error) {
	pid, err := s.health(ctx)
	if r := fleet.RefusalOf(err); r != nil && r.Code == fleet.CodeDaemonUnreachable {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stop the daemon: %w", err)
	}
	self, _ := process.Of(pid) // where it cannot be identified, not alive is the answer below
	if err := s.client.Shutdown(ctx, members); err != nil {
		return false, fmt.Errorf("stop the daemon: %w", err)
	}
	for process.Alive(self) {
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("the daemon, pid %d, was told to stop and has not", pid)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true, nil
}

// endedError is a daemon that ended at once. Who started it ends with its code and its words.
type endedError struct {
	code       int
	said, hint string
}

func (e *endedError) Error() string { return "the daemon ended at once: " + e.said }

// endedAtOnce finds in the daemon's log why it ended, which it said last.
func endedAtOnce(code int, path string) error {
	e := &endedError{code: code, hint: "see " + path}
	if e.code <= 0 { // by a signal, or for no reason
		e.code = exitFailure
	}
	data, err := os.ReadFile(path)
	if err != nil {
		e.said = err.Error()
		return e
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	e.said = plain.Clean(lines[len(lines)-1], 400)
	for i := len(lines) - 1; i >= 0; i-- {
		if said, ok := strings.CutPrefix(lines[i], "fleetdeck: error: "); ok {
			e.said = plain.Clean(said, 1000)
			break
		}
		hint, ok := strings.CutPrefix(lines[i], "fleetdeck: hint: ")
		if !ok {
			break
		}
		e.hint = hint
	}
	return e
}
