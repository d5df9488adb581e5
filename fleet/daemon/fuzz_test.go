package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/slots"
	"fleetdeck/fleet/state"
)

// FuzzNoRequestDoesMoreThanBeRefused asks a daemon that has no members and no reservations for anything.
func FuzzNoRequestDoesMoreThanBeRefused(f *testing.F) {
	for _, s := range []struct{ method, path, token, body string }{
		{"POST", "/v1/members", "", `{"reservation":"r","tree":"/x","role":"dev","profile":"worker","task":"x"}`},
		{"POST", "/v1/members", "", `{"reservation":"","tree":"","made":{"main":"/"},"also":["/","/x",""]}`},
		{"POST", "/v1/members/x/input", "a.b", `{"text":"x","enter":true}`}, {"POST", "/v1/members/x/state", "", `{"state":"working","seq":-1}`},
		{"DELETE", "/v1/members/..%2f..", "", ""}, {"GET", "/v1/members/x/screen?after=-1", "", ""}, {"GET", "/v1/events?after=99999999999999999999&follow=false", "", ""},
		{"GET", "/v1/members/%00/log?follow=true", "", ""}, {"GET", "/v1/may/%1b[2J", "", ""}, {"POST", "/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		{"POST", "/mcp", ".", `[{"jsonrpc":"2.0","id":{},"method":"x"}]`}, {"PUT", "//v1//members", "", "{}{}"}, {"POST", "/v1/members", "", "null"}, {"GET", "/v1/whoami", "\xff", ""},
	} {
		f.Add(s.method, s.path, s.token, []byte(s.body))
	}
	dir := f.TempDir()
	conf, err := config.Parse(filepath.Join(dir, "fleetdeck.toml"), []byte(oneArchitect))
	if err != nil {
		f.Fatal(err)
	}
	st, err := state.Open(filepath.Join(dir, "state"))
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	f.Cleanup(func() { cancel(nil) })
	d := &Daemon{
		Options: Options{State: st, Config: conf, Launcher: embedded.New("/nowhere"), Version: "test", Now: process.Now, Log: func(string, ...any) {}},
		pool:    slots.New([]fleet.Slot{{Name: "architect-1", Role: "architect", Profile: "worker"}}, process.Now),
		ctx:     ctx, cancel: cancel, tended: map[string]*tender{}, screens: newScreens(ctx),
	}
	if d.reg, err = openRegistry(ctx, st.Path, d.Now); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { d.reg.close() })
	if d.Ledger, err = book.Open(st.Path, d.Now); err != nil {
		f.Fatal(err)
	}
	if d.events, err = openEvents(filepath.Join(dir, "events.jsonl"), d.Now); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(d.events.close)
	handler := d.handler()
	over, done := context.WithCancel(ctx)
	done()
	f.Fuzz(func(t *testing.T, method, path, token string, body []byte) {
		r, err := http.NewRequest(method, "http://fleetd/"+strings.TrimPrefix(path, "/"), bytes.NewReader(body))
		if err != nil || strings.Contains(r.URL.Path, "shutdown") {
			return
		}
		r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "@"
		if r.Method != http.MethodPost {
			r = r.WithContext(over) // nobody waits for what is to come
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if len(d.reg.view().records) > 0 {
			t.Fatalf("%s %s %q made a record", method, path, body)
		}
		if w.Code >= 500 {
			t.Errorf("%s %s %q: status %d: %s", method, path, body, w.Code, w.Body)
		}
		if token != "" && w.Code < 300 && r.URL.Path != "/v1/health" {
			t.Errorf("%s %s with the token %q: status %d: %s", method, path, token, w.Code, w.Body)
		}
		var refusal fleet.Refusal
		if w.Code >= 400 && r.URL.Path != "/mcp" && w.Header().Get("Content-Type") == "application/json" && (json.Unmarshal(w.Body.Bytes(), &refusal) != nil || refusal.Code == "") {
			t.Errorf("%s %s: status %d without a code: %s", method, path, w.Code, w.Body)
		}
	})
}
