package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Held is the lock, held. It stays held until Unlock, whatever becomes of the value. Its methods may be called from
// several goroutines, and fail with [ErrNotHeld] after Unlock.
type Held struct {
	file *File

	mu    sync.Mutex
	grant *grant // nil after Unlock
}

// Lock waits until the lock is free, but no longer than window, and takes it. With a window of zero or less it tries once.
// It returns a [BusyError] when the window ended, and the error of ctx when that ended first. It does not know who asks:
// a holder that asks again waits for itself.
func (f *File) Lock(ctx context.Context, window time.Duration) (*Held, error) {
	grant, err := f.gate.acquire(ctx, window)
	switch {
	case errors.Is(err, errBusy):
		// Not knowing the holders makes the message poorer, not the answer another one.
		holders, _ := f.Holders()
		return nil, &BusyError{Path: f.path, Window: window, Holders: holders}
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", f.LockPath(), advise(err, f.LockPath()))
	}
	return &Held{file: f, grant: grant}, nil
}

// Read returns the document as it stands. A missing file is an [fs.ErrNotExist].
func (h *Held) Read() ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("read %s: %w", h.file.path, err)
	}
	return h.file.Read()
}

// Unlock frees the lock. Doing it again does nothing.
func (h *Held) Unlock() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.grant == nil {
		return nil
	}
	grant := h.grant
	h.grant = nil
	if err := h.file.gate.release(grant); err != nil {
		return fmt.Errorf("unlock %s: %w", h.file.LockPath(), err)
	}
	return nil
}

// Check tells whether the lock still guards anything: [ErrLockLost] where its file was removed or replaced, and others may have a
// lock of that name.
func (h *Held) Check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.check()
}

// check returns why the section is not ours any more, if so. h.mu is held.
func (h *Held) check() error {
	if h.grant == nil {
		return ErrNotHeld
	}
	named, err := h.grant.named()
	switch {
	case err != nil:
		return fmt.Errorf("check lock file: %w", err)
	case !named:
		return fmt.Errorf("%w: nothing must delete or rename %s", ErrLockLost, h.file.LockPath())
	}
	return nil
}

// patience is what an attempt does about a lock that others hold.
type patience bool

const (
	tryOnce patience = false
	block   patience = true
)

// errBusy is take's word for a lock that others hold.
var errBusy = errors.New("busy")

// grant is the lock in both families. The zero value holds nothing.
type grant struct {
	path  string
	flock *flock.Flock
	ofd   *os.File // nil where that lock is not taken
}

// maxStale is how often take starts over because the lock file was replaced under it.
const maxStale = 100

// take gets the lock. Blocking, it waits for flock(2) in the kernel's queue; the other lock it only tries, briefly, so that
// it never waits for one while it holds the other. A lock file that was removed meanwhile is made again only while wanted
// says that somebody still asks: a waiter left behind must not bring back what its owner took away.
func take(path string, how patience, wanted func() bool) (*grant, error) {
	for range maxStale {
		// A fresh object each time: it is re-entrant, and so no lock for two goroutines that share it.
		g := &grant{path: path, flock: flock.New(path, flock.SetFlag(os.O_RDWR))}
		err := g.takeFlock(how)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := create(path); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		}
		err = g.takeOFD(how)
		if err == nil {
			return g, nil
		}
		if err := errors.Join(err, g.release()); !errors.Is(err, errStale) {
			return nil, err
		}
		if !wanted() {
			return nil, errBusy
		}
	}
	return nil, fmt.Errorf("the lock file is replaced again and again: find and stop the program that removes it")
}

// errStale says that a lock was got on a file that its path does not name any more.
var errStale = errors.New("stale lock file")

func (g *grant) takeFlock(how patience) error {
	ok := true
	err := uninterrupted(func() (err error) {
		if how == block {
			return g.flock.Lock()
		}
		ok, err = g.flock.TryLock()
		return err
	})
	switch {
	case err == syscall.EACCES: // bare, so from flock(2) and not from open(2): SMB's word for busy
		return errBusy
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: its owner or root must make it writable for this user", err)
	case errors.Is(err, syscall.ENOLCK):
		return fmt.Errorf("%w: the system is out of locks, or this file system has none", err)
	case err != nil:
		return err
	case !ok:
		return errBusy
	}
	return nil
}

const (
	ofdTries = 4
	ofdPause = 500 * time.Microsecond
)

// takeOFD makes sure that the path still names the locked file, and takes the other family's lock on it. The flock is held.
func (g *grant) takeOFD(how patience) error {
	switch named, err := g.named(); {
	case err != nil:
		return err
	case !named:
		return errStale
	}
	for try := 1; ; try++ {
		ofd, err := lockOFD(g.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return errStale
		case errors.Is(err, errBusy) && how == block && try < ofdTries:
			time.Sleep(ofdPause)
			continue
		case err != nil:
			return err
		}
		g.ofd = ofd
		// lockOFD opened the path anew; it must have met the same file.
		if named, err := g.named(); err != nil || !named {
			return errors.Join(err, errStale)
		}
		return nil
	}
}

// named reports whether the lock file's path still names the file that is locked.
func (g *grant) named() (bool, error) {
	locked, err := g.flock.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(g.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return os.SameFile(locked, now), nil
}

// release frees both locks, the later one first, so that who gets the flock next meets no leftover of the other. It
// unlocks before it closes: a child forked at this moment has copies of the descriptors until it execs.
func (g *grant) release() error {
	var err error
	if g.ofd != nil {
		err = errors.Join(unlockOFD(g.ofd), g.ofd.Close())
	}
	return errors.Join(err, uninterrupted(g.flock.Unlock))
}

// prove makes sure that a second descriptor does not get the lock, which is held.
func prove(path string) error {
	second := flock.New(path, flock.SetFlag(os.O_RDWR))
	var got bool
	err := uninterrupted(func() (err error) {
		got, err = second.TryLock()
		return err
	})
	switch {
	case got:
		return errors.Join(fmt.Errorf("%w: keep %s on a local disk", ErrNoExclusion, filepath.Dir(path)), second.Unlock())
	case err == syscall.EACCES:
		return nil
	case err != nil:
		return fmt.Errorf("check that the lock excludes: %w", err)
	}
	return nil
}

// create makes the lock file, unless it is there already. Every other open of it is without O_CREATE, which a sticky
// directory refuses for a file of another user.
func create(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return fmt.Errorf("create lock file: %w", err)
	}
	giveToOwner(file, filepath.Dir(path))
	return file.Close()
}

// giveToOwner hands a file that root just made to the owner of the directory, who could not use it otherwise. Where that
// is refused the file is still good for root.
func giveToOwner(file *os.File, dir string) {
	if os.Geteuid() != 0 {
		return
	}
	if info, err := os.Stat(dir); err == nil {
		if uid, gid, ok := owner(info); ok {
			_ = file.Chown(uid, gid)
		}
	}
}

// owner returns whose a file is.
func owner(info fs.FileInfo) (uid, gid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}

// uninterrupted repeats a system call that a signal interrupted.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
