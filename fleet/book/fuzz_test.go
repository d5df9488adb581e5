package book_test

import (
	"os"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
)

// FuzzAnyFileIsEitherRefusedOrHoldsItsTrees is about the file that programs in any language write.
func FuzzAnyFileIsEitherRefusedOrHoldsItsTrees(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"$format":"fleetdeck.reservations/1"}`, `{"$format":"fleetdeck.reservations/2"}`, "\x00\x00", `{"/x":{}}`, `{"/x":{"id":"a","expires_at":"2026-11-30T07:00:00Z"}}`,
		`{"/x":{"id":"a","expires_at":"2026-11-30T07:00:00Z","boot":{"id":"b","deadline_ns":-9223372036854775808}}}`, `{"/x":{"id":"a","expires_at":"9999-12-31T23:59:59Z"}}`,
		`{"relative":{"id":"a","expires_at":"2026-11-30T07:00:00Z"}}`, `{"/a/../b":{"id":"","expires_at":"2026-11-30T07:00:00Z"}}`, `{"/x":null}`, `{"/x":[1]}`,
		`{"/\u001b[2J":{"id":"\u202e","expires_at":"2026-11-30T07:00:00+23:59","file":"1:2","reserved_at":7}}`, `{"/x":{"id":"a","id":"b"}}`, `{"/x":{},"/x":{}}`, `{"":{"id":1}}`,
	} {
		f.Add([]byte(s))
	}
	now := fleet.Instant{Wall: time.Date(2026, 11, 30, 6, 10, 0, 0, time.UTC), Mono: time.Hour, Boot: "b", Host: "kite"}
	dir := f.TempDir()
	b, err := book.Open(dir, func() fleet.Instant { return now })
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(b.Path(), data, 0o600); err != nil {
			t.Fatal(err)
		}
		entries, err := b.Read()
		plan, perr := b.Plan(fleet.Roster{})
		if err != nil {
			if r := fleet.RefusalOf(err); r == nil || r.Code != fleet.CodeFileCorrupt {
				t.Errorf("the error is no refusal for a damaged file: %v", err)
			}
			if perr == nil {
				t.Errorf("of a file that cannot be read %v would be dropped", plan)
			}
			return
		}
		if perr != nil {
			t.Errorf("there is no plan: %v", perr)
		}
		for _, e := range entries {
			h := fleet.Occupancy(e.On(), entries, fleet.Roster{}, now)
			if !e.Expired(now) && h.State != fleet.Reserved {
				t.Errorf("entry %+v stands, and its tree is %s", e, h.State)
			}
		}
		if after, err := os.ReadFile(b.Path()); err != nil || string(after) != string(data) {
			t.Errorf("reading changed the file: %v", err)
		}
	})
}
