// Package book is the reservation book: one JSON file, keyed by tree, that says which trees a dispatch is under way to.
//
// It guarantees that the file changes only under the admission lock, as one read-modify-write wholly inside it, and
// that an entry is dropped by its id, never by its tree alone. Every dispatcher and every pruner of the program comes
// through here. Callers hand in the roster; [Book.Reserve] asks for it while it holds the lock.
//
// A Book is a [ledger.Ledger] of one host.
package book

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/mutant"
	"fleetdeck/lockfile"
)

// FileName is the reservation file's name in the state directory.
const FileName = "reservations.json"

// Format is the value of the file's "$format".
const Format = "fleetdeck.reservations/1"

var _ ledger.Ledger = (*Book)(nil)

// Book is the reservation file of one state directory. It is safe for use by several goroutines.
type Book struct {
	file *lockfile.File
	now  func() fleet.Instant
	// Warn is told what went wrong without making a call fail, such as a directory that could not be synced.
	Warn func(error)
}

// Open opens the book in the state directory dir, which must exist. A missing file is an empty book.
func Open(dir string, now func() fleet.Instant) (*Book, error) {
	file, err := lockfile.Open(filepath.Join(dir, FileName))
	if err != nil {
		return nil, fmt.Errorf("open the reservation book: %w", err)
	}
	return &Book{file: file, now: now, Warn: func(error) {}}, nil
}

// Path is the real path of the file.
func (b *Book) Path() string { return b.file.Path() }

// LockPath is the path of the admission lock.
func (b *Book) LockPath() string { return b.file.LockPath() }

// Lock takes the admission lock for a purpose of the caller's own.
func (b *Book) Lock(ctx context.Context, window time.Duration) (unlock func() error, err error) {
	held, err := b.lock(ctx, window)
	if err != nil {
		return nil, err
	}
	return held.Unlock, nil
}

// LockInfo looks who holds the admission lock, without waiting for it.
func (b *Book) LockInfo() fleet.LockInfo {
	holders, err := b.file.Holders()
	if err != nil || len(holders) == 0 {
		return fleet.LockInfo{State: "free"}
	}
	h := holders[0]
	return fleet.LockInfo{State: "held", Holder: &fleet.LockHolder{Pid: h.Pid, Program: h.Program, Since: h.Since}}
}

// Watch sends a token whenever the file may have changed.
func (b *Book) Watch(ctx context.Context) <-chan struct{} {
	return b.file.Watch(ctx, lockfile.WatchOptions{})
}

// Read gives the entries as they stand, without the lock: for display only. Whoever decides reads inside the lock.
func (b *Book) Read() ([]fleet.Entry, error) {
	data, err := b.file.Read()
	doc, err := b.parse(data, err)
	if err != nil {
		return nil, err
	}
	entries := make([]fleet.Entry, 0, doc.Len())
	for tree, raw := range doc.All() {
		e, err := decode(tree, raw)
		if err != nil {
			return nil, b.corrupt(err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Reserve writes a reservation for the draft's trees, or says who is in the way. It takes the lock within window, reads
// the file, only then asks view for the roster, decides, and writes. Any doubt refuses, and a refusal leaves the file as it was.
func (b *Book) Reserve(ctx context.Context, window time.Duration, draft ledger.Draft, view ledger.View) (fleet.Entry, error) {
	if mutant.RosterBeforeLock {
		early, err := view(ctx)
		view = func(context.Context) (fleet.Roster, error) { return early, err }
	}
	held, err := b.lock(ctx, window)
	if err != nil {
		return fleet.Entry{}, err
	}
	defer held.Unlock()

	doc, err := b.readLocked(held)
	if err != nil {
		return fleet.Entry{}, err
	}
	trees := append([]fleet.Tree{draft.Tree}, draft.Also...)
	rivals := make([][]fleet.Entry, len(trees))
	for i, t := range trees {
		if slices.ContainsFunc(trees[:i], t.Same) {
			return fleet.Entry{}, fleet.Refuse(fleet.CodeBadRequest, "%s is named twice: each tree is reserved once", t.Path)
		}
		if rivals[i], err = b.entriesOn(doc, t); err != nil {
			return fleet.Entry{}, err
		}
		if draft.Renew {
			rivals[i] = slices.DeleteFunc(rivals[i], func(e fleet.Entry) bool { return e.ID == draft.ID })
		}
	}
	roster, err := view(ctx)
	if err != nil {
		return fleet.Entry{}, err
	}
	for i, t := range trees {
		if h := fleet.Occupancy(t, rivals[i], roster, b.now()); !h.Free(draft.BesideForeign) {
			return fleet.Entry{}, h.Refusal(t, b.now())
		}
	}

	entry := b.entry(draft)
	for _, t := range trees {
		e := entry.Reservation
		e.File = t.File
		raw, err := json.Marshal(e)
		if err != nil {
			return fleet.Entry{}, fmt.Errorf("encode the reservation: %w", err)
		}
		if err := lockfile.CheckKey(t.Path); err != nil {
			return fleet.Entry{}, fmt.Errorf("reserve %q: %w", t.Path, err)
		}
		doc.Set(t.Path, raw)
	}
	if err := b.write(held, doc); err != nil {
		return fleet.Entry{}, err
	}
	return entry, nil
}

func (b *Book) entry(draft ledger.Draft) fleet.Entry {
	now := b.now()
	deadline := fleet.DeadlineAfter(now, draft.Grace)
	id := draft.ID
	if id == "" {
		id = ulid.Make().String()
	}
	return fleet.Entry{Tree: draft.Tree.Path, Reservation: fleet.Reservation{
		ID:         id,
		Role:       draft.Role,
		Profile:    draft.Profile,
		File:       draft.Tree.File,
		Dispatcher: draft.Dispatcher,
		ReservedAt: now.Wall.UTC().Truncate(time.Millisecond),
		ExpiresAt:  deadline.Wall.Truncate(time.Millisecond),
		Boot:       deadline.Boot,
	}}
}

// Admit is the fence at the daemon: under the lock it checks that the reservation id still stands for tree and for those it also names,
// and that its grace is not over, and calls admit with the entry of tree before the lock goes. Nothing is written to the book.
func (b *Book) Admit(ctx context.Context, window time.Duration, tree, id string, admit func(fleet.Entry) error, also ...fleet.Tree) error {
	held, err := b.lock(ctx, window)
	if err != nil {
		return err
	}
	defer held.Unlock()

	doc, err := b.readLocked(held)
	if err != nil {
		return err
	}
	e, err := b.standing(doc, tree, id)
	if err != nil {
		return err
	}
	for _, t := range also {
		other, err := b.standing(doc, t.Path, id)
		if err != nil {
			return err
		}
		if other.File != "" && other.File != t.File {
			return fleet.Refuse(fleet.CodeReservationStale, "%s is another directory than the one that was reserved", t.Path)
		}
	}
	e.Slot = "" // slots are the daemon's to give: what a foreign writer says of one binds nobody
	return admit(e)
}

// standing gives the entry of tree if it is the reservation id, with its grace not over.
func (b *Book) standing(doc *lockfile.Document, tree, id string) (fleet.Entry, error) {
	if mutant.AdmitWithoutFence {
		return b.entry(ledger.Draft{Tree: fleet.Tree{Path: tree}, ID: id, Grace: time.Minute}), nil
	}
	raw, ok := doc.Get(tree)
	if !ok {
		return fleet.Entry{}, fleet.Refuse(fleet.CodeReservationStale, "reservation %s for %s does not stand any more", id, tree).
			WithHint("dispatch again: the tree may have been given away meanwhile")
	}
	e, err := decode(tree, raw)
	if err != nil {
		return fleet.Entry{}, b.corrupt(err)
	}
	switch {
	case e.ID != id:
		return fleet.Entry{}, fleet.Refuse(fleet.CodeReservationStale, "%s is reserved by another dispatch (%s, not %s)", tree, e.ID, id)
	case e.Expired(b.now()):
		return fleet.Entry{}, fleet.Refuse(fleet.CodeReservationStale, "the grace of reservation %s for %s has run out", id, tree).
			WithHint("dispatch again")
	}
	return e, nil
}

// Settle drops the reservation id wherever it stands, in one change: of one tree or of several. That it is gone already is no error.
func (b *Book) Settle(ctx context.Context, window time.Duration, id string) error {
	held, err := b.lock(ctx, window)
	if err != nil {
		return err
	}
	defer held.Unlock()

	doc, err := b.readLocked(held)
	if err != nil {
		return err
	}
	var gone []string
	for tree, raw := range doc.All() {
		e, err := decode(tree, raw)
		if err != nil {
			return b.corrupt(err)
		}
		if mutant.SettleWithoutID || id != "" && e.ID == id {
			gone = append(gone, tree)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	for _, tree := range gone {
		doc.Delete(tree)
	}
	return b.write(held, doc)
}

// Release drops the entry of tree if its id is id; an empty id drops whatever stands there. It reports whether there was
// anything to drop: that the entry is gone already, or is another's by now, is no error.
func (b *Book) Release(ctx context.Context, window time.Duration, tree, id string) (dropped fleet.Entry, ok bool, err error) {
	held, err := b.lock(ctx, window)
	if err != nil {
		return fleet.Entry{}, false, err
	}
	defer held.Unlock()

	doc, err := b.readLocked(held)
	if err != nil {
		return fleet.Entry{}, false, err
	}
	key := keyOf(doc, tree)
	raw, ok := doc.Get(key)
	if !ok {
		return fleet.Entry{}, false, nil
	}
	e, err := decode(key, raw)
	if err != nil {
		return fleet.Entry{}, false, b.corrupt(err)
	}
	if !mutant.ReleaseWithoutID && id != "" && e.ID != id {
		return e, false, nil
	}
	doc.Delete(key)
	if err := b.write(held, doc); err != nil {
		return fleet.Entry{}, false, err
	}
	return e, true, nil
}

func (b *Book) lock(ctx context.Context, window time.Duration) (*lockfile.Held, error) {
	held, err := b.file.Lock(ctx, window)
	switch {
	case err == nil:
		return held, nil
	case errors.Is(err, lockfile.ErrBusy):
		return nil, fleet.Refuse(fleet.CodeLockBusy, "the admission lock of %w", err).
			WithHint("try again; if the holder hangs, end it: the lock goes with the process")
	}
	return nil, fmt.Errorf("take the admission lock: %w", err)
}

func (b *Book) readLocked(held *lockfile.Held) (*lockfile.Document, error) {
	data, err := held.Read()
	return b.parse(data, err)
}

func (b *Book) parse(data []byte, err error) (*lockfile.Document, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return lockfile.NewDocument(Format), nil
	}
	if err != nil {
		return nil, fleet.Refuse(fleet.CodeFileCorrupt, "read the reservation file: %w", err).
			WithHint("make %s readable for this user", b.Path())
	}
	doc, err := lockfile.Parse(data, Format)
	if errors.Is(err, lockfile.ErrFormat) {
		if _, moved, merr := b.parseMoved(data); merr != nil {
			return nil, merr
		} else if moved != nil {
			return nil, moved.Refusal(b.Path())
		}
	}
	if err != nil {
		return nil, b.corrupt(err)
	}
	return doc, nil
}

func (b *Book) corrupt(err error) error {
	if errors.Is(err, lockfile.ErrFormat) {
		return fleet.Refuse(fleet.CodeFileCorrupt, "%s: %w", b.Path(), err).
			WithHint("a newer fleetdeck wrote it: use that one; nothing was changed")
	}
	return fleet.Refuse(fleet.CodeFileCorrupt, "%s: %w", b.Path(), err).
		WithHint("nothing was changed; 'fleetdeck repair' sets the file aside and rebuilds it")
}

// write replaces the file. A change that is visible but perhaps not durable is done, and only worth a warning.
func (b *Book) write(held *lockfile.Held, doc *lockfile.Document) error {
	err := held.Replace(doc.Bytes())
	var unsure *lockfile.DurabilityError
	if errors.As(err, &unsure) {
		b.Warn(unsure)
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the reservation file: %w", err)
	}
	return nil
}

// entriesOn decodes the entries that may stand for t, and checks the entry time of all: a file with one bad time is
// corrupt, since nobody can say which tree it fails to protect.
func (b *Book) entriesOn(doc *lockfile.Document, t fleet.Tree) ([]fleet.Entry, error) {
	var rivals []fleet.Entry
	for tree, raw := range doc.All() {
		file, err := probe(tree, raw)
		if err != nil {
			return nil, b.corrupt(err)
		}
		if !t.Same(on(tree, file)) {
			continue
		}
		e, err := decode(tree, raw)
		if err != nil {
			return nil, b.corrupt(err)
		}
		rivals = append(rivals, e)
	}
	return rivals, nil
}
