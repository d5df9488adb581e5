package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/client"
)

// asIs is no change of the pool.
func asIs(p pool) pool { return p }

// raw opens a connection and writes text to it.
func raw(t *testing.T, network, addr, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial(network, addr)
	if err == nil {
		_, err = io.WriteString(conn, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetReadDeadline(time.Now().Add(patience))
	return conn
}

func TestWhoDalliesWithABodyIsCutOffAndWhoWaitsForAnAnswerIsNot(t *testing.T) {
	const within = 300 * time.Millisecond
	gone := make(chan error, 1)
	served := httptest.NewServer(whole(within, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		select { // longer than a body may take
		case <-r.Context().Done():
			gone <- r.Context().Err()
		case <-time.After(2 * within):
			gone <- err
		}
		w.Write(body)
	})))
	defer served.Close()
	addr := served.Listener.Addr().String()

	dallies := raw(t, "tcp", addr, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf of it")
	answer, err := io.ReadAll(dallies) // to its end, which the other side makes
	if err != nil || !strings.Contains(string(answer), " 422 ") {
		t.Errorf("it got %q, %v, want a refusal and the end", answer, err)
	}
	waits := raw(t, "tcp", addr, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nwhole")
	answer, err = io.ReadAll(waits)
	if err != nil || !strings.HasSuffix(string(answer), "whole") {
		t.Errorf("it got %q, %v, want its answer", answer, err)
	}
	if err := <-gone; err != nil {
		t.Errorf("who waited was given up: %v", err)
	}
}

func TestABodyThatIsTooLongIsRefused(t *testing.T) {
	r := startDaemon(t, asIs)
	for _, path := range []string{"/v1/members", "/v1/members/x/input", "/v1/members/x/state", "/mcp"} {
		conn := raw(t, "unix", r.state.Socket, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", path, api.MaxBody+2))
		go func() {
			io.WriteString(conn, `"`)
			io.Copy(conn, io.LimitReader(spaces{}, api.MaxBody+1))
		}()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(text), "longer than") {
			t.Errorf("%s: %s: %s", path, answer.Status, text)
		}
	}
	// The limit on a header is the server's.
	conn := raw(t, "unix", r.state.Socket, "GET /v1/health HTTP/1.1\r\nHost: x\r\nX: ")
	go io.Copy(conn, io.LimitReader(spaces{}, 4<<20))
	if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && answer.StatusCode < 400 {
		t.Errorf("a header of 4 MB: %s", answer.Status)
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestAReaderThatDoesNotReadHoldsUpNobody(t *testing.T) {
	r := startDaemon(t, asIs)
	for range 8 {
		raw(t, "unix", r.state.Socket, "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// Each call is an event; together they are more than the sockets hold.
	stranger := client.New(r.state.Socket, "no.token"+strings.Repeat("x", 100))
	const many = 3000
	for range many {
		if _, err := stranger.Whoami(ctx); fleet.RefusalOf(err) == nil {
			t.Fatalf("a token that is no member's: %v", err)
		}
	}
	if _, err := r.client.Health(ctx); err != nil {
		t.Errorf("the daemon: %v", err)
	}
	newest := uint64(0)
	if err := r.client.Events(ctx, 0, false, func(e fleet.Event) { newest = e.Seq }); err != nil || newest < many {
		t.Errorf("another reader got %d events, %v", newest, err)
	}
}

// The TCP door stands open to every user of the host.
func TestStrangersAtTheTCPDoorUseUpNoMoreThanTheirShareOfConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := few(inner, 2)
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	for range 4 {
		raw(t, "tcp", inner.Addr().String(), "")
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Error("a third one was let in")
	case <-time.After(50 * time.Millisecond): // nothing is to happen
	}
	first.Close()
	first.Close() // counts once
	third := <-accepted
	select {
	case <-accepted:
		t.Error("two were let in for one that went")
	case <-time.After(50 * time.Millisecond):
	}
	second.Close()
	(<-accepted).Close()
	third.Close()
	l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener says %v", err)
	}
}
