// Package sockpath finds a place for a unix socket that the system can address, and tells who is at its other end.
package sockpath

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// maxPath is the longest path of a socket, in bytes.
func maxPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

// SocketPath is the path of the socket name in dir, or, where that is too long for the system, a hashed name in the user's
// private runtime directory. The same dir and name give the same path. It creates nothing.
func SocketPath(dir, name string) string {
	path := filepath.Join(dir, name)
	if len(path) <= maxPath() {
		return path
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(runtimeDir(), hex.EncodeToString(sum[:10])+".sock")
}

// In is SocketPath, with the directory of a hashed name made and checked.
func In(dir, name string) (string, error) {
	path := SocketPath(dir, name)
	if parent := filepath.Dir(path); parent == runtimeDir() {
		if err := private(parent); err != nil {
			return "", fmt.Errorf("directory for sockets %s: %w", parent, err)
		}
	}
	return path, nil
}

// runtimeDir is where sockets go whose own place has too long a path.
func runtimeDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && len(dir) < 60 {
		return filepath.Join(dir, "fleetdeck")
	}
	tmp := os.TempDir()
	if len(tmp) > 60 {
		tmp = "/tmp"
	}
	return filepath.Join(tmp, "fleetdeck-"+strconv.Itoa(os.Getuid()))
}

// private makes dir, or makes sure that it is a directory of this user's alone. In a place where others can write, such as
// /tmp, somebody else may have been there first.
func private(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return errors.New("is no directory")
	case ok && int(st.Uid) != os.Getuid():
		return fmt.Errorf("belongs to user %d", st.Uid)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("is open to others (mode %04o): run chmod 0700 on it", info.Mode().Perm())
	}
	return nil
}

// PeerUID is the user at the other end of a unix socket's connection, as it was when it was made.
func PeerUID(conn net.Conn) (int, error) {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("%T is no connection of a unix socket", conn)
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid int
	var uidErr error
	if err := raw.Control(func(fd uintptr) { uid, uidErr = peerUID(int(fd)) }); err != nil {
		return 0, err
	}
	return uid, uidErr
}
