package book

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/lockfile"
)

// Moved says, in the reservation file, that the reservations of this host are in a cluster, or on their way. A file that says so is of
// a format that nobody else knows: no dispatcher of this host alone reads or changes it, whoever wrote that one.
//
//	         MoveTo importing           imported
//	(plain) ─────────────────► importing ───────► imported
//	   ▲  ▲        refused         │                  │ exporting
//	   │  └────────────────────────┤                  ▼
//	   └───────────────────────────┴───────────── exporting
//	                     MoveBack
type Moved struct {
	Step      string    `json:"step"`
	Fleet     string    `json:"fleet"`
	Node      string    `json:"node"`
	Endpoints []string  `json:"endpoints"`
	At        time.Time `json:"at"`
}

// The steps of a move. One that is neither imported nor back was cut off, and must be asked for again.
const (
	Importing = "importing"
	Imported  = "imported"
	Exporting = "exporting"
)

const (
	movedFormat = "fleetdeck.reservations-in-etcd/1"
	formatKey   = "$format"
	movedKey    = "$moved"
)

// Moved says whether the reservations are elsewhere: nil where they are in this file.
func (b *Book) Moved() (*Moved, error) {
	data, err := b.file.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the reservation file: %w", err)
	}
	_, m, err := b.parseMoved(data)
	return m, err
}

// parseMoved reads a file that may say that it is moved. Any other is left to its usual reader.
func (b *Book) parseMoved(data []byte) (*lockfile.Document, *Moved, error) {
	doc, err := lockfile.Parse(data, movedFormat)
	if err != nil {
		return nil, nil, nil
	}
	raw, ok := doc.Get(movedKey)
	if !ok {
		return nil, nil, nil
	}
	m := &Moved{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, nil, b.corrupt(fmt.Errorf("its %s is damaged: %w", movedKey, err))
	}
	return doc, m, nil
}

// Refusal is why the file cannot be used for a dispatch.
func (m *Moved) Refusal(path string) *fleet.Refusal {
	if m.Step != Imported {
		verb := "import"
		if m.Step == Exporting {
			verb = "export"
		}
		return fleet.Refuse(fleet.CodeMoved, "%s: the %s of this host's fleet, with the cluster at %s, was cut off", path, verb, strings.Join(m.Endpoints, ", ")).
			WithHint("run 'fleetdeck cluster %s' again: it finishes", verb)
	}
	return fleet.Refuse(fleet.CodeMoved, "%s: the reservations of this host are in etcd at %s, as node %s of fleet %s, since %s", path,
		strings.Join(m.Endpoints, ", "), m.Node, m.Fleet, m.At.Format(time.RFC3339)).
		WithHint("use a fleetdeck.toml with that [cluster], or 'fleetdeck cluster export' to move them back")
}

// Move is the book while its reservations go to a cluster or come back. It holds the admission lock until it is closed.
type Move struct {
	// From is how far an earlier move came; nil where the reservations were in the file.
	From *Moved
	book *Book
	held *lockfile.Held
	doc  *lockfile.Document
}

// Move takes the admission lock for a move.
func (b *Book) Move(ctx context.Context, window time.Duration) (*Move, error) {
	held, err := b.lock(ctx, window)
	if err != nil {
		return nil, err
	}
	m := &Move{book: b, held: held}
	data, err := held.Read()
	var merr error
	if m.doc, m.From, merr = b.parseMoved(data); merr == nil && m.From == nil {
		m.doc, merr = b.parse(data, err)
	}
	if merr != nil {
		return nil, errors.Join(merr, held.Unlock())
	}
	return m, nil
}

// Close frees the admission lock.
func (m *Move) Close() error { return m.held.Unlock() }

// Entries gives the entries that stand in the file: those of a move that was cut off are still there.
func (m *Move) Entries() ([]fleet.Entry, error) {
	var entries []fleet.Entry
	for tree, raw := range m.doc.All() {
		e, err := decode(tree, raw)
		if err != nil {
			return nil, m.book.corrupt(err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// MoveTo writes how far the move is, with entries added to those that stand. Once it is imported none does; lines of others stay as
// they are.
func (m *Move) MoveTo(to Moved, entries ...fleet.Entry) error {
	raw, err := json.Marshal(to)
	if err != nil {
		return fmt.Errorf("encode the move: %w", err)
	}
	m.setFormat(movedFormat)
	m.doc.Set(movedKey, raw)
	if to.Step == Imported {
		m.clear()
	}
	for _, e := range entries {
		raw, err := json.Marshal(e.Reservation)
		if err != nil {
			return fmt.Errorf("encode reservation %s: %w", e.ID, err)
		}
		m.doc.Set(e.Tree, raw)
	}
	return m.book.write(m.held, m.doc)
}

// MoveBack makes the file that of a fleet of one host again, with the entries that stand in it.
func (m *Move) MoveBack() error {
	m.setFormat(Format)
	m.doc.Delete(movedKey)
	return m.book.write(m.held, m.doc)
}

func (m *Move) setFormat(format string) {
	raw, _ := json.Marshal(format) // a string always can be
	m.doc.Set(formatKey, raw)
}

func (m *Move) clear() {
	var trees []string
	for tree := range m.doc.All() {
		trees = append(trees, tree)
	}
	for _, tree := range trees {
		m.doc.Delete(tree)
	}
}
