// Package state is the state directory: where it is, and that nobody else can write to it.
package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"fleetdeck/fleet/launch/sockpath"
)

// ErrUnsafe means that others could change what lies in the directory.
var ErrUnsafe = errors.New("others can write to it")

// Dir is a state directory.
type Dir struct {
	Path string
	// Socket is the daemon's socket.
	Socket string
	// Usual says that nobody asked for this directory: it is found again without being named.
	Usual bool
}

// Open finds the state directory: the one asked for, else $FLEETDECK_STATE, else the usual place. It makes the directory
// where it is missing, and refuses one that is not this user's alone.
func Open(asked string) (Dir, error) {
	path, own, err := locate(asked)
	if err != nil {
		return Dir{}, err
	}
	if err := private(path); err != nil {
		return Dir{}, fmt.Errorf("state directory %s: %w", path, err)
	}
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if own || !filepath.IsAbs(runtime) {
		socket, err := sockpath.In(path, "fleetd.sock")
		return Dir{Path: path, Socket: socket, Usual: !own}, err
	}
	run := filepath.Join(runtime, "fleetdeck")
	if err := private(run); err != nil {
		return Dir{}, fmt.Errorf("runtime directory %s: %w", run, err)
	}
	socket, err := sockpath.In(run, "fleetd.sock")
	return Dir{Path: path, Socket: socket, Usual: true}, err
}

// locate gives the path, and whether it was asked for and so holds the socket too.
func locate(asked string) (path string, own bool, err error) {
	if asked == "" {
		asked = os.Getenv("FLEETDECK_STATE")
	}
	if asked != "" {
		path, err := filepath.Abs(asked)
		return path, true, err
	}
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", false, fmt.Errorf("find the state directory: %w: use --state DIR", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "fleetdeck"), false, nil
}

// private makes sure that path is a directory of this user's that nobody else can write to, or lead elsewhere.
func private(path string) error {
	if err := trusted(path); err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return errors.New("is no directory")
	case ok && int(st.Uid) != os.Getuid():
		return fmt.Errorf("%w: it belongs to user %d", ErrUnsafe, st.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%w (mode %04o): run chmod 0700 on it", ErrUnsafe, info.Mode().Perm())
	}
	return nil
}

// trusted makes sure that nobody but this user and root decides where path leads: no link on the way is another user's, and in no
// directory on the way can everybody rename what is not theirs. What is not there yet is passed by.
func trusted(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if errors.Is(err, os.ErrNotExist) && at != filepath.Dir(at) {
			continue
		}
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		own := !ok || st.Uid == 0 || int(st.Uid) == os.Getuid()
		switch {
		case info.Mode().Type() == os.ModeSymlink && !own:
			return fmt.Errorf("%w: the link %s belongs to user %d", ErrUnsafe, at, st.Uid)
		case info.Mode().Type() == os.ModeSymlink:
			if _, err := filepath.EvalSymlinks(at); err != nil { // or there is no end to it
				return fmt.Errorf("the link %s leads nowhere: %w", at, err)
			}
			next, err := os.Readlink(at) // a step at a time: each link on the way is somebody's
			if err == nil && !filepath.IsAbs(next) {
				next = filepath.Join(filepath.Dir(at), next)
			}
			if err == nil {
				err = trusted(next)
			}
			if err != nil {
				return err
			}
		case at != path && info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0:
			return fmt.Errorf("%w: everybody can rename what is in %s (mode %04o): run chmod o-w on it", ErrUnsafe, at, info.Mode().Perm())
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
