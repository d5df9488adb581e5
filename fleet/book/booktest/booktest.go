// Package booktest makes reservation files for tests and benchmarks.
package booktest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/lockfile"
)

// Fill makes dir a state directory with n entries in its file, as dispatches left them.
func Fill(tb testing.TB, dir string, n int) {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	now := process.Now()
	deadline := fleet.DeadlineAfter(now, time.Hour)
	doc := lockfile.NewDocument(book.Format)
	for i := range n {
		raw, err := json.Marshal(fleet.Reservation{
			ID: fmt.Sprintf("01JE%022d", i), Role: fleet.RoleDev, Profile: "claude", File: fleet.FileID(fmt.Sprintf("64768:%d", i+1)),
			Dispatcher: fleet.Dispatcher{Pid: 4242, Host: now.Host, Program: "fleetdeck dispatch", Machine: now.Machine},
			ReservedAt: now.Wall.UTC().Truncate(time.Millisecond), ExpiresAt: deadline.Wall.Truncate(time.Millisecond), Boot: deadline.Boot,
		})
		if err != nil {
			tb.Fatal(err)
		}
		doc.Set(fmt.Sprintf("/home/kim/src/project-%d", i), raw)
	}
	if err := os.WriteFile(filepath.Join(dir, book.FileName), doc.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
}
