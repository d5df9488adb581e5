package cli_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// interceptor stands between the program and its real daemon, and loses answers.
type interceptor struct {
	r      *rig
	server *http.Server
	pid    int

	mu    sync.Mutex // guards all below
	asked int
	lose  int
	gone  int
	then  func()

	killed bool
}

// intercept puts an interceptor in front of the rig's daemon.
func (r *rig) intercept() *interceptor {
	r.t.Helper()
	socket := filepath.Join(r.state, "fleetd.sock")
	real := filepath.Join(r.state, "real.sock")
	p := &interceptor{r: r, pid: r.daemonPid()}
	if err := os.Rename(socket, real); err != nil {
		r.t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		r.t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "fleetd"})
	forward.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", real)
	}}
	forward.ModifyResponse = func(resp *http.Response) error {
		if resp.Request.Method == http.MethodPost && resp.Request.URL.Path == "/v1/members" && p.losing() {
			io.Copy(io.Discard, resp.Body)
			return errLost
		}
		return nil
	}
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { panic(http.ErrAbortHandler) }
	p.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost && req.URL.Path == "/v1/members" {
			p.mu.Lock()
			p.asked++
			p.mu.Unlock()
		}
		forward.ServeHTTP(w, req)
	})}
	go p.server.Serve(listener)
	r.t.Cleanup(func() {
		p.close()
		if !p.killed {
			os.Rename(real, socket)
		}
	})
	return p
}

var errLost = io.ErrUnexpectedEOF

func (p *interceptor) losing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone >= p.lose {
		return false
	}
	p.gone++
	if p.then != nil {
		p.then()
	}
	return true
}

// loseAnswers loses the answers to the next n spawns, calling then, where given, at each.
func (p *interceptor) loseAnswers(n int, then func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose, p.then = p.gone+n, then
}

// spawns counts the spawns that were asked for.
func (p *interceptor) spawns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// lost counts the answers that were lost.
func (p *interceptor) lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

// killDaemon kills the daemon behind it; the next one listens in the interceptor's place.
func (p *interceptor) killDaemon() {
	p.killed = true
	syscall.Kill(p.pid, syscall.SIGKILL)
}

func (p *interceptor) close() { p.server.Close() }
