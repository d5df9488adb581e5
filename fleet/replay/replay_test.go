package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
)

var began = fleet.Instant{Wall: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Mono: time.Hour, Boot: "b", Host: "kite", Machine: "m"}

func after(d time.Duration) fleet.Instant {
	now := began
	now.Wall, now.Mono = now.Wall.Add(d), now.Mono+d
	return now
}

// differ is a same that finds every two snapshots different.
func differ(a, b fleet.Snapshot) bool { return false }

// fill gives every field below v a value that is not zero.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(began.Wall.Add(time.Duration(*n) * time.Second)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	default:
		panic("a kind that this does not know: " + v.Kind().String())
	}
}

func create(t *testing.T, same func(a, b fleet.Snapshot) bool) (*Recorder, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "incident")
	r, err := Create(path, began, same)
	if err != nil {
		t.Fatal(err)
	}
	return r, path
}

func open(t *testing.T, path string) *Reader {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// all reads every record, and the error that ends them.
func all(t *testing.T, path string) ([]Record, error) {
	t.Helper()
	r := open(t, path)
	var list []Record
	for {
		rec, err := r.Next()
		if err != nil {
			return list, err
		}
		list = append(list, rec)
	}
}

func TestEveryFieldOfASnapshotSurvives(t *testing.T) {
	var s fleet.Snapshot
	n := 0
	fill(reflect.ValueOf(&s).Elem(), &n)
	s.Rev = 7
	r, path := create(t, differ)
	r.Snapshot(after(time.Second), s)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := all(t, path)
	if !errors.Is(err, io.EOF) || len(list) != 1 {
		t.Fatalf("%d records, %v", len(list), err)
	}
	if d := cmp.Diff(Record{At: time.Second, Snapshot: &s}, list[0]); d != "" {
		t.Error(d)
	}
}

func TestScreensAndChoicesSurvive(t *testing.T) {
	var s fleet.Screen
	var c fleet.Choices
	n := 0
	fill(reflect.ValueOf(&s).Elem(), &n)
	fill(reflect.ValueOf(&c).Elem(), &n)
	r, path := create(t, differ)
	r.Choices(began, c)
	r.Screen(after(time.Second), "m1", s)
	r.Screen(after(time.Second), "m1", s) // the same again
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	list, _ := all(t, path)
	if d := cmp.Diff([]Record{{Choices: &c}, {At: time.Second, Member: "m1", Screen: &s}}, list); d != "" {
		t.Error(d)
	}
}

func TestListsThatGrowAreWrittenOnce(t *testing.T) {
	event := func(seq uint64) fleet.Event { return fleet.Event{Seq: seq, Time: began.Wall, Kind: "listed"} }
	steps := [][]fleet.Event{
		{}, {event(1)}, {event(1), event(2), event(3)}, {event(1), event(2), event(3)}, {event(3), event(4)}, {event(1)}, {}, {event(9)},
	}
	r, path := create(t, differ)
	for i, events := range steps {
		r.Snapshot(began, fleet.Snapshot{Rev: uint64(i + 1), Events: events})
	}
	r.Close()
	list, _ := all(t, path)
	for i, events := range steps {
		if len(list) != len(steps) || len(list[i].Snapshot.Events) != len(events) || len(events) > 0 && cmp.Diff(list[i].Snapshot.Events, events) != "" {
			t.Fatalf("step %d: %v, want %v", i, list[i].Snapshot.Events, events)
		}
	}
	if g := grown(steps[1], steps[2]); len(g.Add) != 2 || g.Drop != 0 {
		t.Errorf("growth %+v, want two added", g)
	}
	if g := grown(steps[3], steps[4]); len(g.Add) != 1 || g.Drop != 2 {
		t.Errorf("growth %+v, want two dropped and one added", g)
	}
}

func TestASnapshotThatDiffersInItsAgeOnlyIsAShortLine(t *testing.T) {
	var s fleet.Snapshot
	n := 0
	fill(reflect.ValueOf(&s).Elem(), &n)
	s.Rev = 1
	later := s
	later.Rev, later.At, later.File.ReadAt, later.Daemon.AnsweredAt = 2, after(time.Minute), began.Wall.Add(time.Minute), began.Wall.Add(59*time.Second)
	r, path := create(t, func(a, b fleet.Snapshot) bool { return a.Rev > 0 })
	r.Snapshot(began, s)
	r.Snapshot(began, s) // known already
	r.Snapshot(after(time.Minute), later)
	r.Close()
	data, _ := os.ReadFile(path)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 3 || len(lines[2]) > 400 {
		t.Errorf("%d lines, the last of %d bytes", len(lines), len(lines[len(lines)-1]))
	}
	list, _ := all(t, path)
	if d := cmp.Diff(&later, list[1].Snapshot); d != "" {
		t.Error(d)
	}
}

func TestARecordingIsPrivateAndOverwritesNothing(t *testing.T) {
	r, path := create(t, differ)
	r.Close()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
	if _, err := Create(path, began, differ); !errors.Is(err, os.ErrExist) {
		t.Errorf("Create over a file = %v, want %v", err, os.ErrExist)
	}
	target := filepath.Join(t.TempDir(), "elsewhere")
	link := filepath.Join(t.TempDir(), "link")
	os.Symlink(target, link)
	if _, err := Create(link, began, differ); !errors.Is(err, os.ErrExist) {
		t.Errorf("Create through a link = %v, want %v", err, os.ErrExist)
	}
}

func TestWhatCannotBePlayedIsToldFromWhatEndsEarly(t *testing.T) {
	r, path := create(t, differ)
	r.Snapshot(began, fleet.Snapshot{Rev: 1})
	r.Snapshot(after(time.Second), fleet.Snapshot{Rev: 2})
	r.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(data)
	lines := strings.SplitAfter(whole, "\n")
	for _, test := range []struct {
		name, text string
		open, next error
		records    int
	}{
		{"whole", whole, nil, io.EOF, 2},
		{"a torn last line", whole[:len(whole)-9], nil, io.EOF, 1},
		{"nothing but its head", lines[0], nil, io.EOF, 0},
		{"a damaged line", lines[0] + "{\"at_ns\":\n" + lines[2], nil, ErrDamaged, 0},
		{"a line that says nothing", lines[0] + "{}\n", nil, ErrDamaged, 0},
		{"the same twice", lines[0] + lines[1] + lines[1], nil, ErrDamaged, 1},
		{"an impossible growth", lines[0] + `{"at_ns":1,"snapshot":{"Rev":1,"Events":{"drop":3}}}` + "\n", nil, ErrDamaged, 0},
		{"another version", strings.Replace(whole, "recording/1", "recording/2", 1), ErrFormat, nil, 0},
		{"another file", "# Reference\n", ErrFormat, nil, 0},
		{"an empty file", "", ErrFormat, nil, 0},
		{"one long line", strings.Repeat("x", 1<<20), ErrFormat, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "recording")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if test.open != nil {
				if _, err := Open(path); !errors.Is(err, test.open) || !strings.Contains(err.Error(), path) {
					t.Errorf("Open = %v, want %v of %s", err, test.open, path)
				}
				return
			}
			list, err := all(t, path)
			if !errors.Is(err, test.next) || len(list) != test.records {
				t.Errorf("%d records, then %v, want %d, then %v", len(list), err, test.records, test.next)
			}
			if test.next != io.EOF && !strings.Contains(err.Error(), path+":") {
				t.Errorf("%v names no line", err)
			}
		})
	}
}

func TestAFullDiskEndsARecordingAndNothingElse(t *testing.T) {
	r, _ := create(t, differ)
	r.file.Close()
	r.Snapshot(began, fleet.Snapshot{Rev: 1})
	r.Snapshot(began, fleet.Snapshot{Rev: 2})
	if err := r.Close(); err == nil {
		t.Error("Close says that all is well")
	}
}

// play records three snapshots a minute apart and plays them.
func play(t *testing.T, speed float64) *Player {
	t.Helper()
	r, path := create(t, differ)
	r.Snapshot(began, fleet.Snapshot{Rev: 3, Lock: fleet.LockInfo{State: "free"}})
	r.Screen(after(time.Second), "m1", fleet.Screen{Rev: 5, Title: "one"})
	r.Snapshot(after(time.Minute), fleet.Snapshot{Rev: 5, Reservations: []fleet.ReservationRow{{ID: "a", Droppable: true}, {ID: "b"}}})
	r.Snapshot(after(2*time.Minute), fleet.Snapshot{Rev: 9, Lock: fleet.LockInfo{State: "held"}})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := Play(ctx, open(t, path), speed)
	t.Cleanup(func() { cancel(); <-p.Done() })
	return p
}

func TestAPlayerStandsOnTheLastSnapshot(t *testing.T) {
	p := play(t, 1e9)
	<-p.Done()
	s, err := p.Snapshot(t.Context(), 5)
	if err != nil || s.Rev != 9 || p.Lock().State != "held" {
		t.Errorf("snapshot %d, %v, lock %v", s.Rev, err, p.Lock())
	}
	if d := cmp.Diff(after(2*time.Minute), p.Now()); d != "" {
		t.Errorf("the clock goes on: %s", d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s, err := p.Snapshot(ctx, 9); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the last: %+v, %v, want to wait", s, err)
	}
	if s, err := p.Screen(t.Context(), "m1", 0); err != nil || s.Title != "one" {
		t.Errorf("screen %+v, %v", s, err)
	}
	if _, err := p.Screen(t.Context(), "m2", 0); fleet.RefusalOf(err) == nil {
		t.Errorf("a screen that nobody looked at: %v", err)
	}
}

func TestAPlayersClockIsTheRecordedOne(t *testing.T) {
	p := play(t, 1)
	s, err := p.Snapshot(t.Context(), 0)
	if err != nil || s.Rev != 3 {
		t.Fatalf("snapshot %d, %v", s.Rev, err)
	}
	now := p.Now()
	if now.Boot != began.Boot || now.Host != began.Host || now.Mono < began.Mono || now.Mono > began.Mono+time.Minute || now.Wall.Sub(began.Wall) != now.Mono-began.Mono {
		t.Errorf("now is %+v", now)
	}
	fast := play(t, 60)
	if s, err = fast.Snapshot(t.Context(), 3); err != nil || s.Rev != 5 {
		t.Fatalf("snapshot %d, %v, want the second", s.Rev, err)
	}
	if at := fast.Now().Mono - began.Mono; at < time.Minute {
		t.Errorf("it is %s on the recorded clock, want a minute or later", at)
	}
	if plan, _ := fast.PrunePlan(t.Context()); len(plan.Pruned) != 1 || plan.Kept != 1 {
		t.Errorf("plan %+v", plan)
	}
}

func TestAPlayersClockRunsAtTheSpeedAskedFor(t *testing.T) {
	r, path := create(t, differ)
	r.Snapshot(began, fleet.Snapshot{Rev: 1})
	r.Snapshot(after(1e6*time.Second), fleet.Snapshot{Rev: 2})
	r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	p := Play(ctx, open(t, path), 1e4)
	t.Cleanup(func() { cancel(); <-p.Done() })
	for deadline := time.Now().Add(10 * time.Second); p.Now().Mono-began.Mono < time.Minute; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it is %s on the recorded clock", p.Now().Mono-began.Mono)
		}
	}
}

func TestAPlayerRefusesEveryAct(t *testing.T) {
	p := play(t, 1)
	ctx := t.Context()
	_, perr := p.Prune(ctx)
	_, aerr := p.Attach("")
	for what, err := range map[string]error{
		"prune": perr, "release": p.Release(ctx, "", ""), "send": p.Send(ctx, "", "", true), "stop": p.Stop(ctx, ""),
		"enqueue": p.Enqueue(ctx, fleet.Order{}), "unqueue": p.Unqueue(ctx, ""), "attach": aerr,
	} {
		if err == nil || !strings.Contains(err.Error(), "this is a recording") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, out := range []fleet.Outcome{p.Dispatch(ctx, fleet.Order{}), p.Restart(ctx, "")} {
		if out.Outcome != fleet.Refused || out.Code != fleet.CodeNotAllowed {
			t.Errorf("outcome %+v", out)
		}
	}
}

func TestAPlayerTellsOfADamagedRecording(t *testing.T) {
	r, path := create(t, differ)
	r.Snapshot(began, fleet.Snapshot{Rev: 1})
	r.Close()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	file.WriteString("no JSON\n")
	file.Close()
	p := Play(t.Context(), open(t, path), 1)
	<-p.Done()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if s, err := p.Snapshot(ctx, 0); err != nil || s.Rev != 1 {
		t.Errorf("what is whole: %d, %v", s.Rev, err)
	}
	if _, err := p.Snapshot(ctx, 1); !errors.Is(err, ErrDamaged) {
		t.Errorf("what is not: %v", err)
	}
}
