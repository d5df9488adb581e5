package lockfile

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Holder is a process that holds the lock, as the system tells.
type Holder struct {
	Pid int
	// Program is how it was called, on one printable line and cut where long: "python3 dispatch.py". Empty when the system
	// does not say.
	Program string
	// Since is when this process first saw it hold the lock. A holder that came back between two looks seems to have stayed.
	Since time.Time
	// Kind is the lock family: "flock", "fcntl", "ofd", or several joined by "+".
	Kind string
}

// String is the holder for a message: "pid 4242 (python3 dispatch.py)".
func (h Holder) String() string {
	if h.Program == "" {
		return fmt.Sprintf("pid %d", h.Pid)
	}
	return fmt.Sprintf("pid %d (%s)", h.Pid, h.Program)
}

// Holders returns who holds the lock now, this process included; who waits for it is no holder. A process that inherited
// the locked descriptor holds it as well. It is empty when the lock is free, and on systems that do not tell.
func (f *File) Holders() ([]Holder, error) {
	holders, err := findHolders(f.LockPath())
	if err != nil {
		return nil, fmt.Errorf("find holders of %s: %w", f.LockPath(), err)
	}
	return f.gate.observed.date(holders, time.Now()), nil
}

// process is a process for as long as its machine runs: a pid alone is used again.
type process struct {
	pid   int
	start string
}

// sighting is a holder, and which process that is.
type sighting struct {
	Holder
	process process
}

// observations remembers since when each present holder has been seen.
type observations struct {
	mu    sync.Mutex
	since map[process]time.Time
}

// date fills in since when each holder has been seen, and forgets those that are gone.
func (o *observations) date(found []sighting, now time.Time) []Holder {
	o.mu.Lock()
	defer o.mu.Unlock()
	since := make(map[process]time.Time, len(found))
	var holders []Holder
	for _, s := range found {
		first, known := o.since[s.process]
		if !known {
			first = now
		}
		since[s.process] = first
		s.Since = first
		holders = append(holders, s.Holder)
	}
	o.since = since
	return holders
}

// maxProgram bounds Holder.Program, in runes.
const maxProgram = 80

// printable makes foreign text one line that a terminal can show: whatever is not a printable character becomes a space,
// spaces are joined, and the end is cut.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= maxProgram {
		return text
	}
	return string([]rune(text)[:maxProgram-1]) + "…"
}
