package book_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/ledger"
	"fleetdeck/lockfile"
)

const window = 5 * time.Second

// clock is an Instant that a test moves by hand.
type clock struct{ at fleet.Instant }

func (c *clock) now() fleet.Instant { return c.at }

func (c *clock) pass(d time.Duration) {
	c.at.Wall, c.at.Mono = c.at.Wall.Add(d), c.at.Mono+d
}

func newBook(t *testing.T) (*book.Book, *clock) {
	t.Helper()
	c := &clock{fleet.Instant{Wall: time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC), Mono: time.Hour, Boot: "b1", Host: "kite"}}
	b, err := book.Open(t.TempDir(), c.now)
	if err != nil {
		t.Fatal(err)
	}
	return b, c
}

func draft(tree string) ledger.Draft {
	return ledger.Draft{Tree: fleet.Tree{Path: tree}, Role: fleet.RoleDev, Profile: "shell", Grace: 90 * time.Second}
}

func nobody(context.Context) (fleet.Roster, error) { return fleet.Roster{}, nil }

func reserve(t *testing.T, b *book.Book, tree string) fleet.Entry {
	t.Helper()
	e, err := b.Reserve(t.Context(), window, draft(tree), nobody)
	if err != nil {
		t.Fatalf("Reserve(%s): %v", tree, err)
	}
	return e
}

func codeOf(err error) fleet.Code {
	if r := fleet.RefusalOf(err); r != nil {
		return r.Code
	}
	return fleet.Code(fmt.Sprint(err))
}

func TestOneTreeIsReservedOnce(t *testing.T) {
	b, _ := newBook(t)
	reserve(t, b, "/src/api")
	if _, err := b.Reserve(t.Context(), window, draft("/src/api"), nobody); codeOf(err) != fleet.CodeTreeReserved {
		t.Errorf("second Reserve: %v, want %s", err, fleet.CodeTreeReserved)
	}
	reserve(t, b, "/src/web")
}

func TestTheRosterIsReadInsideTheLock(t *testing.T) {
	b, _ := newBook(t)
	asked := false
	_, err := b.Reserve(t.Context(), window, draft("/src/api"), func(ctx context.Context) (fleet.Roster, error) {
		asked = true
		if _, err := b.Lock(ctx, 0); !errors.Is(err, lockfile.ErrBusy) {
			t.Errorf("the lock could be taken while the roster was asked for: %v", err)
		}
		return fleet.Roster{}, nil
	})
	if err != nil || !asked {
		t.Errorf("Reserve = %v, roster asked for: %t", err, asked)
	}
}

// A worker is listed and its entry pruned between a dispatcher's two looks. Under the lock this cannot be seen as "nobody".
func TestWorkerListedAndPrunedBetweenTwoReadsIsSeen(t *testing.T) {
	b, c := newBook(t)
	first := reserve(t, b, "/src/api")
	listed := fleet.Roster{Members: []fleet.Member{{ID: "m", Tree: "/src/api", Reservation: first.ID, State: fleet.StateWorking}}}
	_, err := b.Reserve(t.Context(), window, draft("/src/api"), func(ctx context.Context) (fleet.Roster, error) {
		// The worker is listed now. A pruner that could get in between would drop the entry.
		other, err := book.Open(filepath.Dir(b.Path()), c.now)
		if err != nil {
			return fleet.Roster{}, err
		}
		if _, err := other.Prune(ctx, 50*time.Millisecond, listed); codeOf(err) != fleet.CodeLockBusy {
			t.Errorf("a prune got in between: %v", err)
		}
		return listed, nil
	})
	if codeOf(err) != fleet.CodeTreeOccupied {
		t.Errorf("Reserve: %v, want %s", err, fleet.CodeTreeOccupied)
	}
}

func TestUnreachableDaemonLeavesNoReservation(t *testing.T) {
	b, _ := newBook(t)
	_, err := b.Reserve(t.Context(), window, draft("/src/api"), func(context.Context) (fleet.Roster, error) {
		return fleet.Roster{}, fleet.Refuse(fleet.CodeDaemonUnreachable, "down")
	})
	if codeOf(err) != fleet.CodeDaemonUnreachable {
		t.Errorf("Reserve: %v, want %s", err, fleet.CodeDaemonUnreachable)
	}
	if _, err := os.Stat(b.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file was written: %v", err)
	}
}

func TestSameDirectoryUnderAnotherPathIsTheSameTree(t *testing.T) {
	b, _ := newBook(t)
	d := draft("/src/api")
	d.Tree.File = "1:10"
	if _, err := b.Reserve(t.Context(), window, d, nobody); err != nil {
		t.Fatal(err)
	}
	d.Tree.Path = "/mnt/bind/api"
	if _, err := b.Reserve(t.Context(), window, d, nobody); codeOf(err) != fleet.CodeTreeReserved {
		t.Errorf("Reserve under the other path: %v, want %s", err, fleet.CodeTreeReserved)
	}
}

func TestForeignEntryHoldsItsTreeHoweverItsKeyIsSpelled(t *testing.T) {
	for _, key := range []string{"/src/api/", "/src//api", "/src/web/../api", "/src/./api"} {
		t.Run(key, func(t *testing.T) {
			b, _ := newBook(t)
			file := fmt.Sprintf(`{"$format":%q,%q:{"id":"theirs","expires_at":"2026-11-30T06:01:00Z"}}`, book.Format, key)
			if err := os.WriteFile(b.Path(), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Reserve(t.Context(), window, draft("/src/api"), nobody); codeOf(err) != fleet.CodeTreeReserved {
				t.Errorf("Reserve: %v, want %s", err, fleet.CodeTreeReserved)
			}
			reserve(t, b, "/src/api/sub")
			if e, ok, err := b.Release(t.Context(), window, "/src/api", "theirs"); err != nil || !ok || e.Tree != key {
				t.Errorf("Release = %q, %t, %v, want %q released", e.Tree, ok, err, key)
			}
			reserve(t, b, "/src/api")
		})
	}
}

func TestGraceThatRanOutFreesTheTree(t *testing.T) {
	b, c := newBook(t)
	old := reserve(t, b, "/src/api")
	c.pass(91 * time.Second)
	e := reserve(t, b, "/src/api")
	if e.ID == old.ID {
		t.Error("the new reservation has the old id")
	}
	// The loser comes late, with the old id: it changes nothing.
	if _, ok, err := b.Release(t.Context(), window, "/src/api", old.ID); ok || err != nil {
		t.Errorf("Release with the old id = %t, %v, want false, nil", ok, err)
	}
	if err := b.Admit(t.Context(), window, "/src/api", old.ID, func(fleet.Entry) error { return nil }); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("Admit with the old id: %v, want %s", err, fleet.CodeReservationStale)
	}
	if err := b.Admit(t.Context(), window, "/src/api", e.ID, func(fleet.Entry) error { return nil }); err != nil {
		t.Errorf("Admit with the new id: %v", err)
	}
	c.pass(91 * time.Second)
	if err := b.Admit(t.Context(), window, "/src/api", e.ID, func(fleet.Entry) error { return nil }); codeOf(err) != fleet.CodeReservationStale {
		t.Errorf("Admit after the grace: %v, want %s", err, fleet.CodeReservationStale)
	}
}

func TestPruneDropsWhatMayBeDroppedAndNothingElse(t *testing.T) {
	b, c := newBook(t)
	listed := reserve(t, b, "/src/listed")
	reserve(t, b, "/src/expired")
	c.pass(60 * time.Second)
	pending := reserve(t, b, "/src/pending")
	c.pass(31 * time.Second)
	roster := fleet.Roster{Members: []fleet.Member{{Tree: "/src/listed", Reservation: listed.ID, State: fleet.StateWorking}}}

	plan, err := b.Plan(roster)
	if err != nil {
		t.Fatal(err)
	}
	report, err := b.Prune(t.Context(), window, roster)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Pruned) != 2 || report.Kept != 1 || fmt.Sprint(plan.Pruned) != fmt.Sprint(report.Pruned) {
		t.Errorf("Prune = %+v, planned %+v, want listed and expired dropped, one kept", report, plan)
	}
	entries, err := b.Read()
	if err != nil || len(entries) != 1 || entries[0].ID != pending.ID {
		t.Errorf("left: %+v, %v, want %s", entries, err, pending.ID)
	}
	before, _ := os.Stat(b.Path())
	if _, err := b.Prune(t.Context(), window, roster); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(b.Path()); !os.SameFile(before, after) {
		t.Error("a prune that found nothing to drop wrote the file")
	}
}

func TestBusyPruneLeavesTheFileAlone(t *testing.T) {
	b, c := newBook(t)
	reserve(t, b, "/src/api")
	c.pass(91 * time.Second)
	unlock, err := b.Lock(t.Context(), window)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	bytesBefore, _ := os.ReadFile(b.Path())
	before, _ := os.Stat(b.Path())
	report, err := b.Prune(t.Context(), 20*time.Millisecond, fleet.Roster{})
	if codeOf(err) != fleet.CodeLockBusy || report.Lock != "busy" || report.Kept != 1 {
		t.Errorf("Prune = %+v, %v, want busy, 1 kept", report, err)
	}
	bytesAfter, _ := os.ReadFile(b.Path())
	if after, _ := os.Stat(b.Path()); !os.SameFile(before, after) || !bytes.Equal(bytesBefore, bytesAfter) {
		t.Error("the file changed")
	}
}

func TestForeignEntriesAndUnknownFieldsSurviveByteForByte(t *testing.T) {
	b, _ := newBook(t)
	const foreign = `{"note":"kept","id":"x-1","expires_at":"2026-11-30T08:00:00+01:00","nested":{"a":[1,2,{"b":null}]}}`
	file := "{\n\"$format\": \"fleetdeck.reservations/1\",\n\"$mine\": {\"k\":1},\n\"/src/foreign\": " + foreign + "\n}\n"
	if err := os.WriteFile(b.Path(), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	e := reserve(t, b, "/src/api")
	if _, _, err := b.Release(t.Context(), window, "/src/api", e.ID); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(b.Path()); string(got) != file {
		t.Errorf("after a reservation came and went the file is\n%s\nwant\n%s", got, file)
	}
	// Its grace is 07:00 UTC, an hour from now: it holds its tree.
	if _, err := b.Reserve(t.Context(), window, draft("/src/foreign"), nobody); codeOf(err) != fleet.CodeTreeReserved {
		t.Errorf("Reserve of its tree: %v, want %s", err, fleet.CodeTreeReserved)
	}
}

func TestDamagedFileIsNeverTouched(t *testing.T) {
	good := `"/src/a": {"id":"a","expires_at":"2026-11-30T07:00:00Z"}`
	for _, tt := range []struct{ name, file, says string }{
		{"zero bytes", "", "line 1"},
		{"white space", " \n\n", ""},
		{"NUL bytes", strings.Repeat("\x00", 4096), "line 1"},
		{"a list", "[]\n", "line 1"},
		{"null", "null\n", "line 1"},
		{"cut short", "{\n" + good + ",\n\"/src/b\": {\"id\":\"b\",", "line 3"},
		{"trailing text", "{\n" + good + "\n}\nand more\n", "line 4"},
		{"two documents", "{}{}", "line 1"},
		{"an entry without a time", "{\n" + good + ",\n\"/src/b\": {\"id\":\"b\"}\n}\n", "/src/b"},
		{"an entry with a bad time", "{\n" + good + ",\n\"/src/b\": {\"id\":\"b\",\"expires_at\":\"tomorrow\"}\n}\n", "/src/b"},
		{"an entry that is no object", "{\n\"/src/b\": 5\n}\n", "/src/b"},
		{"a newer format", "{\n\"$format\": \"fleetdeck.reservations/2\"\n}\n", "fleetdeck.reservations/2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, _ := newBook(t)
			if err := os.WriteFile(b.Path(), []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			calls := map[string]func() error{
				"Reserve": func() error { _, err := b.Reserve(t.Context(), window, draft("/src/api"), nobody); return err },
				"Admit": func() error {
					return b.Admit(t.Context(), window, "/src/a", "a", func(fleet.Entry) error { return nil })
				},
				"Prune": func() error { _, err := b.Prune(t.Context(), window, fleet.Roster{}); return err },
				"Read":  func() error { _, err := b.Read(); return err },
			}
			for name, call := range calls {
				err := call()
				if name == "Admit" && strings.Contains(tt.says, "/src/b") {
					continue // it asks about one entry only
				}
				if codeOf(err) != fleet.CodeFileCorrupt {
					t.Errorf("%s: %v, want %s", name, err, fleet.CodeFileCorrupt)
				} else if !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), b.Path()) {
					t.Errorf("%s: %q names neither %q nor the file", name, err, tt.says)
				}
			}
			if got, _ := os.ReadFile(b.Path()); string(got) != tt.file {
				t.Errorf("the file changed to %q", got)
			}
		})
	}
}

func TestRepairSetsACorruptFileAsideAndRebuilds(t *testing.T) {
	b, c := newBook(t)
	if err := os.WriteFile(b.Path(), []byte("{garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	launch := fleet.Launch{ID: "l1", Tree: "/src/api", Reservation: "r1", Deadline: fleet.DeadlineAfter(c.at, time.Minute)}
	done, err := b.Repair(t.Context(), window, fleet.Roster{Launches: []fleet.Launch{launch}})
	if err != nil || done.Rebuilt != 1 {
		t.Fatalf("Repair = %+v, %v", done, err)
	}
	if got, _ := os.ReadFile(done.Aside); string(got) != "{garbage" {
		t.Errorf("set aside: %q", got)
	}
	if entries, err := b.Read(); err != nil || len(entries) != 1 || entries[0].ID != "r1" || entries[0].Expired(c.at) {
		t.Errorf("rebuilt: %+v, %v", entries, err)
	}
	if again, err := b.Repair(t.Context(), window, fleet.Roster{}); err != nil || again.Aside != "" {
		t.Errorf("Repair of a whole file = %+v, %v, want nothing done", again, err)
	}
	newer := []byte(`{"$format":"fleetdeck.reservations/9"}`)
	if err := os.WriteFile(b.Path(), newer, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Repair(t.Context(), window, fleet.Roster{}); codeOf(err) != fleet.CodeFileCorrupt {
		t.Errorf("Repair of a newer format: %v, want it refused", err)
	}
}

func TestEntryIsWrittenAsDocumented(t *testing.T) {
	b, c := newBook(t)
	e := reserve(t, b, "/src/api")
	data, err := os.ReadFile(b.Path())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) != 4 || lines[0] != "{" || lines[3] != "}" {
		t.Fatalf("the file is not one entry a line:\n%s", data)
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(doc["/src/api"], &r); err != nil {
		t.Fatal(err)
	}
	boot := r["boot"].(map[string]any)
	if r["id"] != e.ID || r["expires_at"] != "2026-11-30T06:01:30Z" || r["slot"] != "" || boot["id"] != "b1" ||
		boot["deadline_ns"] != float64(c.at.Mono+90*time.Second) {
		t.Errorf("entry: %s", doc["/src/api"])
	}
}
