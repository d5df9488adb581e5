package client_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/client"
)

// FuzzAStreamIsEventsOrAnError lets what answers at the socket say anything.
func FuzzAStreamIsEventsOrAnError(f *testing.F) {
	for _, s := range []string{
		"id: 1\nevent: x\ndata: {\"seq\":1,\"kind\":\"x\"}\n\n", ": ping\n\n", "data: {\n\n", "data: null\ndata: []\n", "data: {\"seq\":-1}\n", "\x00\xff", "[]", "null", "{\"members\":[{}]}",
		"{\"code\":\"tree_occupied\",\"message\":\"x\"}", "data: {\"seq\":18446744073709551616}\n",
	} {
		f.Add([]byte(s), 200)
		f.Add([]byte(s), 409)
	}
	dir, err := os.MkdirTemp("", "fdc") // f.TempDir's path is too long for a socket on some systems
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		f.Fatal(err)
	}
	var body []byte
	var status int
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		w.Write(body)
	})}
	go server.Serve(listener)
	f.Cleanup(func() { server.Close() })
	c := client.New(socket, "")
	f.Fuzz(func(t *testing.T, data []byte, code int) {
		body, status = data, 200+(code%400+400)%400
		if status == http.StatusNoContent || status == http.StatusNotModified {
			status = http.StatusOK // they have no body
		}
		n := 0
		if err := c.Events(t.Context(), 0, false, func(fleet.Event) { n++ }); err == nil && n > len(data) {
			t.Errorf("%d events of %d bytes", n, len(data))
		}
		if _, err := c.Roster(t.Context()); err == nil && status >= 300 {
			t.Errorf("status %d with %q is no error", status, data)
		}
		if err := c.Stop(t.Context(), "x"); err == nil && status >= 300 {
			t.Errorf("status %d with %q is no error", status, data)
		}
	})
}
