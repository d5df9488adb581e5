package daemon

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
)

const (
	// headerTimeout bounds how long a request's header may take, and bodyTimeout its body.
	headerTimeout = 10 * time.Second
	bodyTimeout   = 10 * time.Second
	// idleTimeout is how long a connection is kept on which nothing is asked.
	idleTimeout = 2 * time.Minute
	// maxStrangers bounds the connections of the TCP door, which any user of this host can open: they must not use up the descriptors
	// that the socket needs.
	maxStrangers = 64
)

// whole takes in a request's body before anybody acts on it: within a time, and up to a length. Who dallies is cut off; who waits for
// an answer is not.
func whole(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := http.NewResponseController(w)
		conn.SetReadDeadline(time.Now().Add(within))
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
		if err != nil {
			var long *http.MaxBytesError
			if errors.As(err, &long) {
				err = fleet.Refuse(fleet.CodeBadRequest, "the request is longer than %d bytes", long.Limit)
			}
			writeError(w, fleet.Refuse(fleet.CodeBadRequest, "read the request: %w", err))
			return
		}
		conn.SetReadDeadline(time.Time{})
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// few keeps at most n connections of a listener open; those beyond wait to be accepted.
func few(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, free: make(chan struct{}, n), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	free   chan struct{} // has room for as many as may still be accepted
	once   sync.Once
	closed chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &counted{Conn: conn, done: sync.OnceFunc(func() { <-l.free })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type counted struct {
	net.Conn
	done func()
}

func (c *counted) Close() error {
	defer c.done()
	return c.Conn.Close()
}
