package book_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/lockfile"
)

func moved(step string) book.Moved {
	return book.Moved{Step: step, Fleet: "web", Node: "kite", Endpoints: []string{"http://10.0.0.1:2379"}, At: time.Unix(1e9, 0).UTC()}
}

func TestAMovedFileServesNobodyUntilItIsMovedBack(t *testing.T) {
	for _, step := range []string{book.Importing, book.Imported, book.Exporting} {
		t.Run(step, func(t *testing.T) {
			b, _ := newBook(t)
			before := `{"$other":{"a":1},"/src/b":{"id":"b","expires_at":"2026-11-30T06:01:00Z","mine":[1,2]}}`
			if err := os.WriteFile(b.Path(), []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := b.Move(t.Context(), window)
			if err != nil || m.From != nil {
				t.Fatalf("move: %+v, %v", m, err)
			}
			if _, err := b.Lock(t.Context(), 0); codeOf(err) != fleet.CodeLockBusy {
				t.Errorf("the lock during a move: %v, want it busy", err)
			}
			if err := m.MoveTo(moved(step)); err != nil {
				t.Fatal(err)
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			refuses := func(what string, err error) {
				t.Helper()
				if r := fleet.RefusalOf(err); r == nil || r.Code != fleet.CodeMoved || r.Hint == "" {
					t.Errorf("%s: %v, want %s with a hint", what, err, fleet.CodeMoved)
				}
			}
			_, err = b.Read()
			refuses("read", err)
			_, err = b.Reserve(t.Context(), window, draft("/src/api"), nobody)
			refuses("reserve", err)
			refuses("settle", b.Settle(t.Context(), window, "b"))
			refuses("admit", b.Admit(t.Context(), window, "/src/b", "b", func(fleet.Entry) error { return nil }))
			if _, err := b.Repair(t.Context(), window, fleet.Roster{}); codeOf(err) != fleet.CodeFileCorrupt {
				t.Errorf("repair: %v, want it refused", err)
			}
			data, err := os.ReadFile(b.Path())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := lockfile.Parse(data, book.Format); err == nil || !strings.Contains(string(data), `"$other": {"a":1}`) {
				t.Errorf("it is a file for everybody, or another's line is gone: %s", data)
			}
			if got, err := b.Moved(); err != nil || got == nil || got.Step != step || got.Node != "kite" {
				t.Errorf("moved: %+v, %v, want %s", got, err, step)
			}

			if m, err = b.Move(t.Context(), window); err != nil || m.From == nil || m.From.Step != step {
				t.Fatalf("move again: %+v, %v", m, err)
			}
			entries, err := m.Entries()
			if want := step != book.Imported; err != nil || (len(entries) == 1) != want {
				t.Errorf("entries %+v, %v, want one: %t", entries, err, want)
			}
			if err := m.MoveBack(); err != nil {
				t.Fatal(err)
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if got, err := b.Moved(); err != nil || got != nil {
				t.Errorf("moved, once it is back: %+v, %v", got, err)
			}
			reserve(t, b, "/src/api")
			if data, _ := os.ReadFile(b.Path()); step != book.Imported && !strings.Contains(string(data), `"mine":[1,2]`) {
				t.Errorf("an entry of another's is not what it was: %s", data)
			}
		})
	}
}
