package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fleetdeck/fleet/launch"
)

const (
	paneFile   = "pane.json"   // there while the holder is one in a pane
	failedFile = "pane.failed" // why such a holder did not begin
)

// openPatience bounds how long a pane may take to be opened, and its holder to serve.
const openPatience = 20 * time.Second

// lockPatience is how long others may look whether there is a holder before there is one.
const lockPatience = 5 * time.Second

// Pane is a terminal of another program's, such as tmux, in which a holder can run.
//
// The holder there is the same as elsewhere: the agent is in a pseudo-terminal of the holder's own, behind the same gate.
// What the agent prints is shown in the pane as well, what is typed in the pane is typed to the agent, and the agent
// ends with the pane.
type Pane struct {
	// Open runs argv in a new pane, without a shell or with its words quoted, and returns once that was asked for. It may
	// be called again for the same member, and an error need not mean that nothing will run.
	Open func(ctx context.Context, argv []string) error
	// Discard, where it is set, takes away what Open left where no holder came of it.
	Discard func()
	// Resize is the command that gives the pane the size {cols} by {rows}. Where it is empty, or does nothing, the
	// agent's terminal keeps the pane's size.
	Resize []string
}

// StartIn is [Launcher.Start] with a holder in a pane. The program must hand the command "pane --dir DIR" to [PaneMain].
//
// What runs is decided by the member's directory and its locks, never by what the other program says: a start that
// came to nothing is revoked there, so that a pane which opens late begins nothing.
func (l *Launcher) StartIn(ctx context.Context, spec launch.Spec, pane Pane) (launch.Terminal, error) {
	return l.start(ctx, spec, func(ctx context.Context) error { return l.open(ctx, spec, pane) })
}

// open opens the pane and waits until its holder serves. The start lock is held.
func (l *Launcher) open(ctx context.Context, spec launch.Spec, pane Pane) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openPatience, fmt.Errorf("no answer within %s", openPatience))
	defer cancel()
	err := os.Remove(filepath.Join(spec.Dir, failedFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil { // before the spec: who finds that one must know of what kind it is
		err = writeJSON(filepath.Join(spec.Dir, paneFile), paneRecord{pane.Resize})
	}
	if err == nil {
		err = writeJSON(filepath.Join(spec.Dir, specFile), spec)
	}
	if err == nil {
		err = pane.Open(ctx, []string{l.exe, "pane", "--dir", spec.Dir})
	}
	t := &terminal{id: spec.ID, dir: spec.Dir, starting: true}
	if err == nil {
		if err = t.awaitHolder(ctx); err == nil || errors.Is(err, launch.ErrGone) {
			return err
		}
	}
	lock, lerr := tryLock(spec.Dir)
	if lock == nil {
		return errors.Join(err, lerr) // a holder lives
	}
	defer unlock(lock)
	rerr := t.revoke()
	if pane.Discard != nil && errors.Is(rerr, launch.ErrNotStarted) {
		pane.Discard()
	}
	if rerr != nil {
		return fmt.Errorf("%w: %w", rerr, err)
	}
	return err // a holder has been there
}

// paneRecord is pane.json.
type paneRecord struct {
	Resize []string `json:"resize,omitempty"`
}

// awaitHolder waits until the holder in the pane serves.
func (t *terminal) awaitHolder(ctx context.Context) error {
	for {
		conn, _, err := t.open(ctx)
		switch {
		case conn != nil:
			conn.Close()
			return nil
		case !errors.Is(err, launch.ErrNotStarted):
			return err
		}
		if why, rerr := os.ReadFile(filepath.Join(t.dir, failedFile)); rerr == nil {
			return errors.New(strings.TrimSpace(string(why)))
		}
		if !rest(ctx) {
			return fmt.Errorf("wait for the holder in its pane: %w", context.Cause(ctx))
		}
	}
}

// revoke makes sure that a pane which has not begun never will: its holder takes the lock first and then finds no spec.
// Both locks are held. The answer is [launch.ErrNotStarted], unless a holder has been there.
func (t *terminal) revoke() error {
	if _, err := readRecord(t.dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Remove(filepath.Join(t.dir, specFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = syncDir(t.dir)
	}
	if err != nil {
		return fmt.Errorf("revoke the start: %w", err)
	}
	return launch.ErrNotStarted
}

// PaneMain is the holder in a pane, which is its terminal: as [HolderMain], for the agent whose spec is in dir.
func PaneMain(dir string) int {
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(24 << 20)

	err := os.Chdir("/") // nobody's tree is kept busy
	if err == nil {
		err = logTo(dir)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "fleetdeck: a pane is opened by the daemon only: use fleetdeck dispatch: %v\n", err)
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	lock, err := takeLock(ctx, dir)
	if err != nil {
		fmt.Fprintf(os.Stderr, "fleetdeck holder: %v\n", err) // somebody else is this agent's holder
		return 2
	}
	h, err := beginInPane(dir)
	if err != nil {
		fmt.Fprintf(os.Stderr, "fleetdeck holder: %v\n", err)
		os.WriteFile(filepath.Join(dir, failedFile), []byte(err.Error()), 0o600)
		unlock(lock)
		return 1
	}
	h.run()
	lock.Close() // keeps it open until here
	return 0
}

// logTo turns what goes wrong in the holder from the pane to its log.
func logTo(dir string) error {
	log, err := os.OpenFile(filepath.Join(dir, holderLogFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	return unix.Dup2(int(log.Fd()), 2)
}

func beginInPane(dir string) (*holder, error) {
	// Another pane may have been quicker, and be over: one agent is started once.
	if _, err := readRecord(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(errors.New("the agent has been started already"), err)
	}
	var rec paneRecord
	if err := readJSON(filepath.Join(dir, paneFile), &rec); err != nil {
		return nil, err
	}
	f, err := openFront(rec.Resize)
	if err != nil {
		return nil, err
	}
	return begin(dir, f)
}
