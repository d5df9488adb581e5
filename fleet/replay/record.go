package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"fleetdeck/fleet"
)

// format is what the first line of a recording says.
const format = "fleetdeck.recording/1"

// Record is one line of a recording, after the first: exactly one of its pointers is set.
type Record struct {
	// At is when it was, on the monotonic clock of the recording, from its beginning.
	At       time.Duration
	Snapshot *fleet.Snapshot
	Screen   *fleet.Screen
	// Member is whose screen it is.
	Member  string
	Choices *fleet.Choices
}

// header is the first line.
type header struct {
	Format string        `json:"format"`
	Began  fleet.Instant `json:"began"`
}

// line is a Record as it is written.
type line struct {
	At       time.Duration  `json:"at_ns"`
	Snapshot *snapshot      `json:"snapshot,omitempty"`
	Fresh    *fresh         `json:"fresh,omitempty"`
	Member   string         `json:"member,omitempty"`
	Screen   *fleet.Screen  `json:"screen,omitempty"`
	Choices  *fleet.Choices `json:"choices,omitempty"`
}

// snapshot is a fleet.Snapshot with what that leaves out of its JSON: the tags there are for those who print it. Of the lists that
// only grow, it holds what is new.
type snapshot struct {
	fleet.Snapshot
	Trees        []treeRow
	Reservations []reservationRow
	Events       growth[fleet.Event]
	History      growth[fleet.Deed]
	File         fileInfo
	Daemon       daemonInfo
}

type treeRow struct {
	fleet.TreeRow
	Deadline fleet.Deadline `json:"deadline,omitzero"`
	Launch   string         `json:"launch,omitempty"`
}

type reservationRow struct {
	fleet.ReservationRow
	Deadline  fleet.Deadline `json:"deadline"`
	Droppable bool           `json:"droppable"`
}

type fileInfo struct {
	fleet.FileInfo
	ReadAt time.Time `json:"read_at"`
}

type daemonInfo struct {
	fleet.DaemonInfo
	AnsweredAt time.Time `json:"answered_at"`
}

// fresh is a snapshot that says nothing new, but that it is still so. Without these lines nobody could tell quiet from a
// recording console that stood still.
type fresh struct {
	Rev        uint64        `json:"rev"`
	At         fleet.Instant `json:"at"`
	ReadAt     time.Time     `json:"read_at"`
	AnsweredAt time.Time     `json:"answered_at"`
}

// growth is how a list that only grows at its end and loses its beginning came from the one before it.
type growth[T comparable] struct {
	Drop int `json:"drop,omitempty"`
	Add  []T `json:"add,omitempty"`
}

// grown gives the growth from prev to next.
func grown[T comparable](prev, next []T) growth[T] {
	for drop := max(0, len(prev)-len(next)); drop < len(prev); drop++ {
		if kept := prev[drop:]; slices.Equal(kept, next[:len(kept)]) {
			return growth[T]{drop, next[len(kept):]}
		}
	}
	return growth[T]{len(prev), next}
}

// after gives the list that g makes of prev.
func (g growth[T]) after(prev []T) ([]T, error) {
	if g.Drop < 0 || g.Drop > len(prev) {
		return nil, fmt.Errorf("it drops %d of %d", g.Drop, len(prev))
	}
	if g.Drop == 0 && len(g.Add) == 0 {
		return prev, nil
	}
	return append(prev[g.Drop:len(prev):len(prev)], g.Add...), nil
}

func pack(prev, s fleet.Snapshot) *snapshot {
	p := &snapshot{
		Snapshot: s, Events: grown(prev.Events, s.Events), History: grown(prev.History, s.History),
		File: fileInfo{s.File, s.File.ReadAt}, Daemon: daemonInfo{s.Daemon, s.Daemon.AnsweredAt},
	}
	p.Trees = each(s.Trees, func(r fleet.TreeRow) treeRow { return treeRow{r, r.Deadline, r.Launch} })
	p.Reservations = each(s.Reservations, func(r fleet.ReservationRow) reservationRow {
		return reservationRow{r, r.Deadline, r.Droppable}
	})
	return p
}

// each gives what f makes of each row. An empty list stays one, and none stays none.
func each[A, B any](rows []A, f func(A) B) []B {
	if rows == nil {
		return nil
	}
	made := make([]B, len(rows))
	for i, r := range rows {
		made[i] = f(r)
	}
	return made
}

func (p *snapshot) unpack(prev fleet.Snapshot) (s fleet.Snapshot, err error) {
	s = p.Snapshot
	s.File, s.Daemon = p.File.FileInfo, p.Daemon.DaemonInfo
	s.File.ReadAt, s.Daemon.AnsweredAt = p.File.ReadAt, p.Daemon.AnsweredAt
	var eerr, herr error
	s.Events, eerr = p.Events.after(prev.Events)
	s.History, herr = p.History.after(prev.History)
	s.Trees = each(p.Trees, func(r treeRow) fleet.TreeRow {
		r.TreeRow.Deadline, r.TreeRow.Launch = r.Deadline, r.Launch
		return r.TreeRow
	})
	s.Reservations = each(p.Reservations, func(r reservationRow) fleet.ReservationRow {
		r.ReservationRow.Deadline, r.ReservationRow.Droppable = r.Deadline, r.Droppable
		return r.ReservationRow
	})
	return s, errors.Join(eerr, herr)
}

// Recorder writes a recording. It is safe for use by several goroutines.
type Recorder struct {
	began fleet.Instant
	same  func(a, b fleet.Snapshot) bool

	mu      sync.Mutex // guards all below
	file    *os.File
	last    fleet.Snapshot
	screens map[string]uint64
	err     error
}

// Create begins a recording in a new file; one that is there is never overwritten. Of two snapshots of which same reports
// that they differ in their age only, the second takes up one short line.
func Create(path string, now fleet.Instant, same func(a, b fleet.Snapshot) bool) (*Recorder, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r := &Recorder{began: now, same: same, file: file, screens: map[string]uint64{}}
	r.write(header{format, now})
	return r, nil
}

// Snapshot records a snapshot, made known at the moment now.
func (r *Recorder) Snapshot(now fleet.Instant, s fleet.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Rev <= r.last.Rev {
		return
	}
	l := line{At: now.Mono - r.began.Mono}
	if r.same(r.last, s) {
		l.Fresh = &fresh{s.Rev, s.At, s.File.ReadAt, s.Daemon.AnsweredAt}
	} else {
		l.Snapshot = pack(r.last, s)
	}
	r.last = s
	r.write(l)
}

// Screen records a screen that somebody looked at.
func (r *Recorder) Screen(now fleet.Instant, member string, s fleet.Screen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rev, seen := r.screens[member]; seen && rev == s.Rev {
		return
	}
	r.screens[member] = s.Rev
	r.write(line{At: now.Mono - r.began.Mono, Member: member, Screen: &s})
}

// Choices records what there was to choose from.
func (r *Recorder) Choices(now fleet.Instant, c fleet.Choices) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(line{At: now.Mono - r.began.Mono, Choices: &c})
}

// write writes one line. After a first failure there is no more to write: a recording has no holes.
func (r *Recorder) write(v any) {
	if r.err != nil {
		return
	}
	data, err := json.Marshal(v)
	if err == nil {
		_, err = r.file.Write(append(data, '\n'))
	}
	r.err = err
}

// Close ends the recording, and says what was wrong with it.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.err, r.file.Close()); err != nil {
		return fmt.Errorf("the recording %s ends early: %w", r.file.Name(), err)
	}
	return nil
}
