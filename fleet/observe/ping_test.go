package observe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/launch/process"
)

// mute is a daemon that can stop to answer, as one does that hangs: its sockets stay open.
type mute struct {
	hangs  atomic.Bool
	health atomic.Int64 // how often it was asked for a sign of life
	asked  atomic.Int64 // and for the roster, each time after that
	socket string
}

func newMute(t *testing.T) *mute {
	t.Helper()
	m := &mute{socket: filepath.Join(t.TempDir(), "fleetd.sock")}
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if m.hangs.Load() {
				<-r.Context().Done()
				return
			}
			fmt.Fprint(w, text)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/health", func(w http.ResponseWriter, r *http.Request) {
		m.health.Add(1)
		answer(`{"status":"ok","pid":4711}`)(w, r)
	})
	mux.HandleFunc("/v1/roster", func(w http.ResponseWriter, r *http.Request) {
		m.asked.Add(1)
		answer(`{"members":[{"id":"a","tree":"/src/a","state":"working"}]}`)(w, r)
	})
	mux.HandleFunc("/v1/slots", answer(`[]`))
	mux.HandleFunc("/v1/events", func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush() // and nothing to tell, for ever
		<-r.Context().Done()
	})
	listener, err := net.Listen("unix", m.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return m
}

func TestDaemonThatHangsIsToldByItsSilence(t *testing.T) {
	m := newMute(t)
	dir := t.TempDir()
	bk, err := book.Open(dir, process.Now)
	if err != nil {
		t.Fatal(err)
	}
	l := NewLive(Sources{Dir: dir, Ledger: bk, Lock: bk, Client: client.New(m.socket, ""), Config: &config.Config{}, Now: process.Now})
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	defer func() {
		stop()
		<-done
	}()
	var s fleet.Snapshot
	until := func(what string, ok func() bool) {
		t.Helper()
		for first := true; first || !ok(); first = false {
			if s, err = l.Snapshot(ctx, s.Rev); err != nil {
				t.Fatalf("%s: %v; the last snapshot says %+v", what, err, s.Daemon)
			}
		}
	}
	until("it answers", func() bool { return s.Daemon.Running && len(s.Members) == 1 })
	for ctx.Err() == nil && m.health.Load() < m.asked.Load()+2 { // until it is asked for nothing else any more
		time.Sleep(10 * time.Millisecond)
	}
	m.hangs.Store(true)
	asked := m.asked.Load()
	until("it hangs", func() bool { return !s.Daemon.Running })
	if d := s.Daemon; d.Pid != 4711 || d.Error != "no answer within "+pingTimeout.String() || m.asked.Load() != asked {
		t.Errorf("%+v, and it was asked for the roster %d times: want its pid, and its silence alone to tell", d, m.asked.Load()-asked)
	}
	if len(s.Members) != 1 {
		t.Errorf("members %+v, want those that were known last", s.Members)
	}
	m.hangs.Store(false)
	until("it answers again", func() bool { return s.Daemon.Running })
}
