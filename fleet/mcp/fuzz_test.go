package mcp_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/mcp"
)

// FuzzNoArgumentsOfAToolReserveAnything calls the tools of a fleet whose daemon is away.
func FuzzNoArgumentsOfAToolReserveAnything(f *testing.F) {
	for _, s := range []struct{ tool, args string }{
		{"fleet_spawn", `{"tree":"/","task":"x"}`}, {"fleet_spawn", `{"tree":"-x","task":"x"}`}, {"fleet_spawn", `{"tree":"/tmp","task":"\u0000","role":"\u001b","wait":true}`},
		{"fleet_list", `{}`}, {"fleet_whoami", `null`}, {"fleet_report", `{"state":"asleep"}`}, {"fleet_send", `{"member":"","text":"x"}`}, {"fleet_stop", `{"member":7}`},
		{"fleet_stop", `{"member":"x","more":1}`}, {"none", `[]`}, {"fleet_send", `{"member":"a","member":"b"}`},
	} {
		f.Add(s.tool, []byte(s.args))
	}
	dir := f.TempDir()
	b, err := book.Open(dir, process.Now)
	if err != nil {
		f.Fatal(err)
	}
	handler := mcp.Handler(func(token string) mcp.Fleet {
		c := client.New(filepath.Join(dir, "none"), token)
		return mcp.Fleet{Client: c, Profile: "worker", Version: "test", Dispatcher: &dispatch.Dispatcher{
			Ledger: b, Daemon: c, LockWait: time.Second, Grace: time.Minute, Now: process.Now,
		}}
	})
	f.Fuzz(func(t *testing.T, tool string, args []byte) {
		name, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` + string(name) + `,"arguments":` + string(args) + `}}`
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", bytes.NewReader([]byte(body)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var answer struct {
			Error  json.RawMessage
			Result struct {
				IsError bool `json:"isError"`
			}
		}
		if w.Code == http.StatusOK && (json.Unmarshal(w.Body.Bytes(), &answer) != nil || answer.Error == nil && !answer.Result.IsError) {
			t.Errorf("%s %s: without a daemon it says %s", tool, args, w.Body)
		}
		if data, err := os.ReadFile(b.Path()); err == nil && bytes.Contains(data, []byte(`"id"`)) {
			t.Fatalf("%s %s reserved something: %s", tool, args, data)
		}
	})
}
