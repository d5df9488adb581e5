package observe

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/launch/process"
)

// crowded is an observer of 10,000 trees with 1,000 members, 50 of which are on their way, that has just looked.
func crowded(b *testing.B) *watcher {
	b.Helper()
	dir := b.TempDir()
	bk, err := book.Open(dir, process.Now)
	if err != nil {
		b.Fatal(err)
	}
	l := NewLive(Sources{Dir: dir, Ledger: bk, Lock: bk, Client: client.New(filepath.Join(dir, "none.sock"), ""), Config: &config.Config{}, Now: process.Now})
	w := &watcher{Live: l, searched: time.Now(), seen: &look{}, locks: &locks{}}
	now := process.Now()
	for i := range 10_000 {
		t := fleet.Tree{Path: fmt.Sprintf("/src/repository-%05d", i), File: fleet.FileID(fmt.Sprintf("1:%d", i))}
		w.configured = append(w.configured, t)
		id := fmt.Sprintf("01JE%08d", i)
		switch {
		case i < 1000:
			w.seen.roster.Members = append(w.seen.roster.Members, fleet.Member{ID: id, Tree: t.Path, File: t.File, Role: "dev", Profile: "claude", State: fleet.StateWorking, Reservation: id})
		case i < 1050:
			w.seen.entries = append(w.seen.entries, fleet.Entry{Tree: t.Path, Reservation: fleet.Reservation{
				ID: id, File: t.File, Role: "dev", Profile: "claude", ReservedAt: now.Wall, ExpiresAt: now.Wall.Add(time.Hour),
			}})
		}
	}
	for _, t := range w.configured {
		l.facts.known[t.Path] = &fact{}
	}
	return w
}

// BenchmarkPublish is from a look at file and daemon to the snapshot that shows a change in it.
func BenchmarkPublish(b *testing.B) {
	w := crowded(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.seen.roster.Members[i%1000].StateMessage = fmt.Sprint(i)
		w.publish(b.Context(), true)
	}
}
