package lockfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

var sizes = []int{10, 100, 1000, 10_000}

// sampleEntry is an entry's value of about 420 bytes with its key, as a dispatch leaves one.
func sampleEntry(i int) json.RawMessage {
	return fmt.Appendf(nil, `{"id":"01JE%022d","role":"dev","profile":"claude","slot":"","file":{"dev":64768,"ino":%d},`+
		`"dispatcher":{"pid":4242,"host":"kite","program":"fleetdeck dispatch","machine":"0f8fad5bd9cb469fa16570867728950e"},`+
		`"reserved_at":"2026-11-30T06:10:22.123Z","expires_at":"2026-11-30T06:11:52.123Z",`+
		`"boot":{"id":"7c9e6679-7425-40de-944b-e07fc1f90ae7","deadline_ns":123456789%04d}}`, i, i, i%10_000)
}

func sampleKey(i int) string { return fmt.Sprintf("/home/kim/src/project-%d", i) }

// sample is a document with n entries.
func sample(n int) []byte {
	d := NewDocument(testFormat)
	for i := range n {
		d.Set(sampleKey(i), sampleEntry(i))
	}
	return d.Bytes()
}

func bySize(b *testing.B, run func(b *testing.B, text []byte)) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			text := sample(n)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			run(b, text)
		})
	}
}

func BenchmarkParseSetBytes(b *testing.B) {
	entry := sampleEntry(7)
	bySize(b, func(b *testing.B, text []byte) {
		for b.Loop() {
			d, err := Parse(text, testFormat)
			if err != nil {
				b.Fatal(err)
			}
			d.Set("/home/kim/src/new", entry)
			_ = d.Bytes()
		}
	})
}

// BenchmarkRoundTripJSON is what BenchmarkParseSetBytes is measured against: all entries decoded and encoded.
func BenchmarkRoundTripJSON(b *testing.B) {
	bySize(b, func(b *testing.B, text []byte) {
		for b.Loop() {
			var all map[string]any
			if err := json.Unmarshal(text, &all); err != nil {
				b.Fatal(err)
			}
			all["/home/kim/src/new"] = 1
			if _, err := json.Marshal(all); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkFields(b *testing.B) {
	bySize(b, func(b *testing.B, text []byte) {
		d, err := Parse(text, testFormat)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			for _, value := range d.All() {
				for range Fields(value) {
				}
			}
		}
	})
}

func BenchmarkLockUnlock(b *testing.B) {
	f := newFile(b)
	for b.Loop() {
		held, err := f.Lock(b.Context(), 0)
		if err != nil {
			b.Fatal(err)
		}
		if err := held.Unlock(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHolders(b *testing.B) {
	f := newFile(b)
	hold(b, f)
	for b.Loop() {
		if found, err := f.Holders(); err != nil {
			b.Fatal(found, err)
		}
	}
}

// BenchmarkCycle is one change from first to last: lock, read, parse, set, replace with both fsyncs, unlock.
func BenchmarkCycle(b *testing.B) {
	bySize(b, func(b *testing.B, text []byte) {
		f := newFile(b)
		write(b, f, string(text))
		for b.Loop() {
			if _, err := change(f, patienceOfTests, sampleKey(0)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// change makes one change and returns how long it waited for the lock.
func change(f *File, window time.Duration, key string) (waited time.Duration, err error) {
	begin := time.Now()
	held, err := f.Lock(background, window)
	waited = time.Since(begin)
	if err != nil {
		return waited, err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	text, err := held.Read()
	if err != nil {
		return waited, err
	}
	d, err := Parse(text, testFormat)
	if err != nil {
		return waited, err
	}
	d.Set(key, sampleEntry(1))
	return waited, held.Replace(d.Bytes())
}

// contention is how long processes contend in one round, and the window that each gives a change.
const (
	contention       = 3 * time.Second
	contentionWindow = 2 * time.Second
)

// contend makes changes to args[0] until contention is over and says how many, how many were refused, and the longest
// wait. It begins when told.
func contend(args []string) error {
	f, err := Open(args[0])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var word string
	if _, err := fmt.Scanln(&word); err != nil {
		return err
	}
	var done, refused int
	var longest time.Duration
	for end := time.Now().Add(contention); time.Now().Before(end); {
		waited, err := change(f, contentionWindow, sampleKey(0))
		switch {
		case errors.Is(err, ErrBusy):
			refused++
		case err != nil:
			return err
		default:
			done++
		}
		longest = max(longest, waited)
	}
	fmt.Println(done, refused, longest.Microseconds())
	return nil
}

func BenchmarkContention(b *testing.B) {
	for _, n := range []int{2, 8, 32, 128} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var done, refused, longest, fewest int
			for b.Loop() {
				f := newFile(b)
				write(b, f, string(sample(10)))
				var rivals []*child
				for range n {
					c := startChild(b, "contend", f.Path())
					c.want("ready")
					rivals = append(rivals, c)
				}
				for _, c := range rivals {
					c.tell("go")
				}
				fewest = -1
				for _, c := range rivals {
					var d, r, l int
					line := c.hear()
					if _, err := fmt.Sscan(line, &d, &r, &l); err != nil {
						b.Fatalf("rival says %q", strings.TrimSpace(line))
					}
					done, refused, longest = done+d, refused+r, max(longest, l)
					if fewest < 0 || d < fewest {
						fewest = d
					}
					c.end()
				}
			}
			b.ReportMetric(float64(done)/contention.Seconds()/float64(b.N), "changes/s")
			b.ReportMetric(float64(refused)/float64(b.N), "refused")
			b.ReportMetric(float64(longest)/1000, "longest-wait-ms")
			b.ReportMetric(float64(fewest), "fewest-per-process")
		})
	}
}
