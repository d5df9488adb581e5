package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fleetdeck/fleet"
)

// testClock is moved by hand.
type testClock struct{ at fleet.Instant }

func (c *testClock) now() fleet.Instant { return c.at }
func (c *testClock) pass(d time.Duration) {
	c.at.Wall, c.at.Mono = c.at.Wall.Add(d), c.at.Mono+d
}

func newTestRegistry(t *testing.T) (*registry, *testClock, string) {
	t.Helper()
	dir := t.TempDir()
	c := &testClock{fleet.Instant{Wall: time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC), Mono: time.Hour, Boot: "b"}}
	r, err := openRegistry(t.Context(), dir, c.now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.close() })
	return r, c, dir
}

func (c *testClock) record(id, step string) record {
	return record{ID: id, Step: step, Reservation: "r-" + id, Tree: "/src/" + id, AcceptedAt: c.at.Wall, EndedAt: c.at.Wall,
		Deadline: fleet.DeadlineAfter(c.at, 90*time.Second)}
}

func TestRecordGoesThroughItsStepsInOrder(t *testing.T) {
	steps := []string{stepAccepted, stepBooting, stepListed, stepExited, stepFailed}
	allowed := map[string]bool{
		"accepted booting": true, "accepted failed": true, "booting listed": true, "booting failed": true, "listed exited": true,
	}
	for _, from := range steps {
		for _, to := range steps {
			if from == to {
				continue
			}
			t.Run(from+" "+to, func(t *testing.T) {
				r, c, _ := newTestRegistry(t)
				for _, s := range map[string][]string{
					stepAccepted: {stepAccepted}, stepBooting: {stepAccepted, stepBooting}, stepListed: {stepAccepted, stepBooting, stepListed},
					stepExited: {stepAccepted, stepBooting, stepListed, stepExited}, stepFailed: {stepAccepted, stepFailed},
				}[from] {
					if err := r.put(c.record("m", s)); err != nil {
						t.Fatal(err)
					}
				}
				if err := r.put(c.record("m", to)); (err == nil) != allowed[from+" "+to] {
					t.Errorf("put: %v, allowed %t", err, allowed[from+" "+to])
				}
			})
		}
	}
}

func TestWhatReadersSeeIsOnDisk(t *testing.T) {
	r, c, dir := newTestRegistry(t)
	if err := r.put(c.record("m", stepAccepted)); err != nil {
		t.Fatal(err)
	}
	onDisk := func() map[string]json.RawMessage {
		data, err := os.ReadFile(filepath.Join(dir, "registry.json"))
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]json.RawMessage
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	if onDisk()["m"] == nil {
		t.Error("a record that readers see is not on disk")
	}
	// A change that cannot be written is not seen, and does not come back with the next one.
	refuse := errors.New("refused")
	if err := r.update("m", func(*record) error { return refuse }); !errors.Is(err, refuse) {
		t.Errorf("update: %v, want %v", err, refuse)
	}
	if err := r.close(); err != nil { // writing fails from here on
		t.Fatal(err)
	}
	if err := r.update("m", func(rec *record) error { rec.Task = "lost"; return nil }); err == nil {
		t.Error("a change that could not be written was no error")
	}
	if rec, _ := r.get("m"); rec.Task != "" {
		t.Errorf("readers see %q, which is not on disk", rec.Task)
	}
	if raw, _ := r.doc.Get("m"); string(raw) == "" || json.Unmarshal(raw, new(record)) != nil {
		t.Errorf("the document in memory is %s", raw)
	}
}

func TestOnlyOneDaemonHasTheRegistry(t *testing.T) {
	_, c, dir := newTestRegistry(t)
	if _, err := openRegistry(t.Context(), dir, c.now); !errors.Is(err, ErrRunning) {
		t.Errorf("second open: %v, want %v", err, ErrRunning)
	}
}

func TestEndedRecordsAreForgottenButNeverBeforeTheirGrace(t *testing.T) {
	r, c, _ := newTestRegistry(t)
	forgotten := map[string]bool{}
	r.forgot = func(id string) { forgotten[id] = true }
	end := func(id string) {
		for _, s := range []string{stepAccepted, stepBooting, stepListed, stepExited} {
			if err := r.put(c.record(id, s)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range keepEnded + 10 {
		c.pass(time.Millisecond)
		end(fmt.Sprintf("m%03d", i))
	}
	if n := len(r.view().roster.Members); n != keepEnded+10 || len(forgotten) > 0 {
		t.Errorf("%d members are kept within their grace, want %d: each is the proof that its worker was listed", n, keepEnded+10)
	}
	c.pass(61 * time.Minute)
	end("late")
	if n := len(r.view().roster.Members); n != keepEnded || len(forgotten) != 11 || !forgotten["m000"] {
		t.Errorf("%d members are kept, %d forgotten, want %d and 11, the oldest first", n, len(forgotten), keepEnded)
	}
	c.pass(25 * time.Hour)
	end("next-day")
	if n := len(r.view().roster.Members); n != 1 {
		t.Errorf("%d members are kept after a day, want 1", n)
	}
}
