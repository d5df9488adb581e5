package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof" // on the same door: curl --unix-socket … http://x/debug/pprof/goroutine?debug=1
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// vitalsEnv makes the test binary, run as the program, tell at this socket how it does. The program itself has no such door.
const vitalsEnv = "FLEETDECK_TEST_VITALS"

// vitals is what one process uses. What is read from outside is nothing where there is no /proc.
type vitals struct {
	RSS         float64 // in MB
	Threads     int
	Descriptors int
	// Goroutines and Heap, which is the live heap in MB after a collection, are told by the process itself.
	Goroutines int
	Heap       float64
}

// serveVitals answers at the socket that the environment names, as long as the process lives.
func serveVitals() {
	socket := os.Getenv(vitalsEnv)
	if socket == "" {
		return
	}
	os.Unsetenv(vitalsEnv) // what this process starts is another one
	l, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve vitals:", err)
		return
	}
	http.HandleFunc("/vitals", func(w http.ResponseWriter, q *http.Request) {
		v := vitals{Goroutines: runtime.NumGoroutine()}
		if q.FormValue("heap") != "" {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			v.Heap = float64(m.HeapAlloc) / 1e6
		}
		json.NewEncoder(w).Encode(v)
	})
	go http.Serve(l, nil)
}

// patient is a process that is watched.
type patient struct {
	pid  int
	door *http.Client // nil for a process without one
}

func newPatient(pid int, socket string) *patient {
	p := &patient{pid: pid}
	if socket != "" {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}
		p.door = &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	}
	return p
}

// look takes the vitals of a process; with heap, after a collection of its garbage.
func (p *patient) look(heap bool) (v vitals, err error) {
	if p.door != nil {
		resp, err := p.door.Get("http://vitals/vitals?heap=" + map[bool]string{true: "1"}[heap])
		if err != nil {
			return v, err
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
			return v, err
		}
	}
	dir := filepath.Join("/proc", strconv.Itoa(p.pid))
	if fds, err := os.ReadDir(filepath.Join(dir, "fd")); err == nil {
		v.Descriptors = len(fds)
	}
	status, _ := os.ReadFile(filepath.Join(dir, "status"))
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch n, _ := strconv.Atoi(string(bytes.Fields(append(value, " 0"...))[0])); string(name) {
		case "VmRSS":
			v.RSS = float64(n) * 1024 / 1e6
		case "Threads":
			v.Threads = n
		}
	}
	return v, nil
}
