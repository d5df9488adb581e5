package lockfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

var (
	// ErrBusy says that the lock stayed with others for the whole acquire window. Nothing was changed. See [BusyError].
	ErrBusy = errors.New("lock is busy")

	// ErrNotHeld says that a [Held] was used after its Unlock.
	ErrNotHeld = errors.New("lock is no longer held")

	// ErrLockLost says that somebody removed or replaced the lock file while it was held, so that another process may
	// have entered the section. Nothing was written; start over from Lock.
	ErrLockLost = errors.New("lock file was removed or replaced while it was held")

	// ErrNoExclusion says that locks do not exclude here: a second descriptor got the lock while it was held.
	ErrNoExclusion = errors.New("locks have no effect on this file system")

	// ErrCorrupt says that the file is no document. It must not be overwritten. See [CorruptError].
	ErrCorrupt = errors.New("corrupt document")

	// ErrFormat says that the document is of another or of a newer format. It must not be overwritten. See [FormatError].
	ErrFormat = errors.New("unknown document format")

	// ErrKey says that a string is not valid UTF-8 and so cannot be a key.
	ErrKey = errors.New("key is not valid UTF-8")
)

// A BusyError is [ErrBusy] with who held the lock when the window ended.
type BusyError struct {
	Path    string // of the document
	Window  time.Duration
	Holders []Holder // empty when the system does not say
}

func (e *BusyError) Error() string {
	var b strings.Builder
	b.WriteString(filepath.Base(e.Path) + " is busy")
	for i, h := range e.Holders {
		switch i {
		case 0:
			b.WriteString(": held by ")
		case maxNamed:
			fmt.Fprintf(&b, " and %d more", len(e.Holders)-i)
			return b.String()
		default:
			b.WriteString(", ")
		}
		b.WriteString(h.String())
	}
	return b.String()
}

// maxNamed is how many holders a message names.
const maxNamed = 3

func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// A DurabilityError says that the replacement is done and visible to every reader, but that it may not outlast a power
// failure. It is not a failed replacement: repeating the change would make it twice.
type DurabilityError struct {
	Path string
	Err  error
}

func (e *DurabilityError) Error() string {
	return fmt.Sprintf("%s was replaced, but whether that outlasts a power failure is unknown: %v", e.Path, e.Err)
}

func (e *DurabilityError) Unwrap() error { return e.Err }

// A CorruptError is [ErrCorrupt] with the place.
type CorruptError struct {
	Line int // counted from 1
	Why  string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt document: line %d: %s", e.Line, e.Why)
}

func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// A FormatError is [ErrFormat] with the two formats.
type FormatError struct {
	Have, Want string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("document has format %q, this program understands %q: use the program version that wrote it", e.Have, e.Want)
}

func (e *FormatError) Is(target error) bool { return target == ErrFormat }
