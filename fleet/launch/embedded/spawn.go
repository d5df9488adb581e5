package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fleetdeck/fleet/launch"
)

// The files that a holder inherits after stdin, stdout and stderr.
const (
	lockFd  = 3 // holder.lock, locked
	readyFd = 4 // a pipe: "ok", or why not
)

const readyWord = "ok"

// holderEnv is what a holder gets of the starter's environment. The agent gets nothing of it.
var holderEnv = []string{"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"}

// spawn starts the holder of spec and waits until it serves. The start lock is held.
func (l *Launcher) spawn(ctx context.Context, spec launch.Spec) error {
	lock, err := takeLock(ctx, spec.Dir)
	if err != nil {
		return err
	}
	defer lock.Close() // closed, not unlocked: the lock is the holder's from here on
	if err = os.Remove(filepath.Join(spec.Dir, paneFile)); err == nil || errors.Is(err, fs.ErrNotExist) {
		err = writeJSON(filepath.Join(spec.Dir, specFile), spec)
	}
	if err != nil {
		unlock(lock)
		return fmt.Errorf("%w: %w", launch.ErrNotStarted, err)
	}
	ready, err := l.exec(spec.Dir, lock)
	if err != nil {
		unlock(lock)
		return fmt.Errorf("%w: %w", launch.ErrNotStarted, err)
	}
	defer ready.Close()
	stop := context.AfterFunc(ctx, func() { ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	b, err := io.ReadAll(ready)
	switch word := strings.TrimSpace(string(b)); {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("wait for its holder: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("wait for its holder: %w", err)
	case word == readyWord:
		return nil
	case word == "":
		return fmt.Errorf("its holder ended before it served: see %s", filepath.Join(spec.Dir, holderLogFile))
	default: // the holder speaks so only while nothing runs
		return fmt.Errorf("%w: %s", launch.ErrNotStarted, word)
	}
}

// takeLock takes the holder's lock, which others hold for a moment when they look whether there is a holder.
func takeLock(ctx context.Context, dir string) (*os.File, error) {
	for {
		lock, err := tryLock(dir)
		if lock != nil || err != nil {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", filepath.Join(dir, lockFile), ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// exec runs the holder, detached from everything of the caller's, and gives the pipe on which it says that it serves.
func (l *Launcher) exec(dir string, lock *os.File) (ready *os.File, err error) {
	log, err := os.OpenFile(filepath.Join(dir, holderLogFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	ready, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()

	cmd := exec.Command(l.exe, "holder", "--dir", dir)
	cmd.Dir = "/"
	cmd.Env = []string{} // not nil, which would be all of it
	for _, name := range holderEnv {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{lock, w} // lockFd, readyFd
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("run the holder: %w", err), ready.Close())
	}
	go cmd.Wait() // or it stays a zombie of ours when it ends before us
	return ready, nil
}
