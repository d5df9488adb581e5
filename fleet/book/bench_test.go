package book_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/book/booktest"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
	"fleetdeck/lockfile"
)

// BenchmarkAdmission is what a dispatch costs at the file: one Reserve and one Release, each with its lock, its read, its
// decision, both fsyncs and its rename, beside n entries of other trees. "x10" is the time over that beside 10 entries.
//
// Plain is the same two changes as encoding/json makes them, with the same lock and the same durable replacement.
func BenchmarkAdmission(b *testing.B) {
	for _, kind := range []struct {
		name   string
		change func(b *testing.B, dir string) func()
	}{
		{"Book", admission}, {"Plain", plainAdmission},
	} {
		b.Run(kind.name, func(b *testing.B) {
			var base float64
			for _, n := range []int{10, 100, 1000, 10_000} {
				b.Run(fmt.Sprint(n), func(b *testing.B) {
					dir := b.TempDir()
					booktest.Fill(b, dir, n)
					change := kind.change(b, dir)
					for b.Loop() {
						change()
					}
					if info, err := os.Stat(filepath.Join(dir, book.FileName)); err == nil {
						b.ReportMetric(float64(info.Size()), "file-bytes")
					}
					took := b.Elapsed().Seconds() / float64(b.N)
					if n == 10 {
						base = took
					}
					if base > 0 {
						b.ReportMetric(took/base, "x10")
					}
				})
			}
		})
	}
}

func admission(b *testing.B, dir string) func() {
	open, err := book.Open(dir, process.Now)
	if err != nil {
		b.Fatal(err)
	}
	d := ledger.Draft{Tree: fleet.Tree{Path: "/home/kim/src/api", File: "64768:999999"}, Role: fleet.RoleDev, Profile: "claude", Grace: time.Minute}
	return func() {
		e, err := open.Reserve(b.Context(), window, d, nobody)
		if err != nil {
			b.Fatal(err)
		}
		if _, ok, err := open.Release(b.Context(), window, e.Tree, e.ID); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

func plainAdmission(b *testing.B, dir string) func() {
	file, err := lockfile.Open(filepath.Join(dir, book.FileName))
	if err != nil {
		b.Fatal(err)
	}
	const key = "/home/kim/src/api"
	change := func(edit func(all map[string]any)) {
		held, err := file.Lock(b.Context(), window)
		if err != nil {
			b.Fatal(err)
		}
		defer held.Unlock()
		text, err := held.Read()
		if err != nil {
			b.Fatal(err)
		}
		var all map[string]any
		if err := json.Unmarshal(text, &all); err != nil {
			b.Fatal(err)
		}
		edit(all)
		if text, err = json.MarshalIndent(all, "", ""); err != nil {
			b.Fatal(err)
		}
		if err := held.Replace(text); err != nil {
			b.Fatal(err)
		}
	}
	return func() {
		change(func(all map[string]any) {
			if _, taken := all[key]; taken {
				b.Fatal("taken")
			}
			all[key] = fleet.Reservation{ID: "1", Role: fleet.RoleDev, Profile: "claude", ExpiresAt: time.Now()}
		})
		change(func(all map[string]any) { delete(all, key) })
	}
}
