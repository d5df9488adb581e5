package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"fleetdeck/fleet/launch/sockpath"
)

// listen opens the socket for this user alone. Whoever calls holds the registry, so a socket that is there was left
// behind by a daemon that is gone.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of an earlier daemon: %w", err)
	}
	old := syscall.Umask(0o177)
	listener, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// By the time that it is closed the path may name the socket of another daemon.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	return listener, nil
}

type peerKey struct{}

// withPeer notes who connected.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	uid, err := sockpath.PeerUID(conn)
	if err != nil {
		return context.WithValue(ctx, peerKey{}, err)
	}
	if uid != os.Getuid() {
		return context.WithValue(ctx, peerKey{}, fmt.Errorf("the daemon serves user %d only, not user %d", os.Getuid(), uid))
	}
	return ctx
}

// checkPeer gives the reason to turn a connection away.
func checkPeer(ctx context.Context) error {
	err, _ := ctx.Value(peerKey{}).(error)
	return err
}
