package daemon

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/plain"
)

const (
	keepEvents    = 4096
	eventsMaxSize = 4 << 20
)

// events is what happened: the newest in memory, all of them, up to a bound, on disk. Numbers go on over restarts.
type events struct {
	path string
	now  func() fleet.Instant

	mu   sync.Mutex // guards all below
	ring []fleet.Event
	last uint64
	file *os.File
	size int64
	// more is closed and replaced at each event.
	more chan struct{}
}

func openEvents(path string, now func() fleet.Instant) (*events, error) {
	e := &events{path: path, now: now, more: make(chan struct{})}
	for _, p := range []string{path + ".1", path} {
		if err := e.load(p); err != nil {
			return nil, fmt.Errorf("read the events: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the events: %w", err)
	}
	e.file = file
	if info, err := file.Stat(); err == nil {
		e.size = info.Size()
	}
	return e, nil
}

// load reads events from a file; a line that a crash cut short is passed over.
func (e *events) load(path string) error {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var ev fleet.Event
		if json.Unmarshal(lines.Bytes(), &ev) == nil && ev.Seq > e.last {
			e.keep(ev)
		}
	}
	return lines.Err()
}

func (e *events) keep(ev fleet.Event) {
	e.last = ev.Seq
	e.ring = append(e.ring, ev)
	if len(e.ring) > 2*keepEvents {
		e.ring = append(e.ring[:0:0], e.ring[len(e.ring)-keepEvents:]...)
	}
}

// add records an event. What it quotes was cleaned: it is drawn on many screens.
func (e *events) add(level, kind, tree, member, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ev := fleet.Event{
		Seq: e.last + 1, Time: e.now().Wall.UTC().Truncate(time.Millisecond), Level: level, Kind: kind, Tree: tree, Member: member,
		Message: plain.Clean(fmt.Sprintf(format, args...), 2000),
	}
	e.keep(ev)
	if data, err := json.Marshal(ev); err == nil {
		e.append(append(data, '\n'))
	}
	close(e.more)
	e.more = make(chan struct{})
}

// append writes a line, and starts a new file when this one is full. Events that cannot be written are still told.
func (e *events) append(line []byte) {
	if e.file == nil {
		return
	}
	if e.size+int64(len(line)) > eventsMaxSize {
		e.file.Close()
		os.Rename(e.path, e.path+".1")
		file, err := os.OpenFile(e.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			e.file = nil
			return
		}
		e.file, e.size = file, 0
	}
	n, _ := e.file.Write(line)
	e.size += int64(n)
}

// after gives the events after seq, oldest first, and a channel that is closed at the next one.
func (e *events) after(seq uint64) ([]fleet.Event, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if seq > e.last {
		seq = 0 // of another fleet's numbers: tell everything
	}
	i := len(e.ring)
	for i > 0 && e.ring[i-1].Seq > seq {
		i--
	}
	return append([]fleet.Event(nil), e.ring[i:]...), e.more
}

func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.file != nil {
		e.file.Close()
		e.file = nil
	}
}
