package replay

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fleetdeck/fleet"
)

func FuzzAFileIsARecordingToItsEndOrAnError(f *testing.F) {
	path := filepath.Join(f.TempDir(), "real")
	at := fleet.Instant{Wall: time.Date(2026, 11, 30, 6, 10, 0, 0, time.UTC), Mono: time.Hour}
	rec, err := Create(path, at, func(a, b fleet.Snapshot) bool { return false })
	if err != nil {
		f.Fatal(err)
	}
	for rev := range uint64(3) {
		rec.Snapshot(at, fleet.Snapshot{Rev: rev + 1, At: at, Trees: []fleet.TreeRow{{Tree: "/x"}}, Events: []fleet.Event{{Seq: rev + 1}}})
		rec.Screen(at, "m", fleet.Screen{Rev: rev + 1, Lines: []string{"x"}})
	}
	if err := rec.Close(); err != nil {
		f.Fatal(err)
	}
	real, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(real)
	header := `{"format":"` + format + `","began":{}}` + "\n"
	for _, s := range []string{
		"", "{}", header, header + "{}\n", header + `{"snapshot":{"Events":{"kept":5}}}` + "\n", header + `{"snapshot":{"Rev":1,"Events":{"keep":-1,"drop":9,"new":null}}}` + "\n",
		header + `{"screen":{}}` + "\n" + `{"fresh":{"rev":1}}` + "\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "recording")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("it cannot be opened: %v", err)
			}
			return
		}
		defer r.Close()
		for n, rev := 0, uint64(0); ; n++ {
			rec, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("record %d: %v", n, err)
				}
				return
			}
			if s := rec.Snapshot; s != nil {
				if s.Rev <= rev {
					t.Errorf("snapshot %d comes after %d", s.Rev, rev)
				}
				rev = s.Rev
			}
			if n > len(data) {
				t.Fatal("there is no end")
			}
		}
	})
}
