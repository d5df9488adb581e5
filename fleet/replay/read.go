package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"fleetdeck/fleet"
)

var (
	// ErrFormat means that the file is no recording, or of a version that this program does not read.
	ErrFormat = errors.New("no recording that this fleetdeck can read")
	// ErrDamaged means that a line within the recording cannot be read.
	ErrDamaged = errors.New("the recording is damaged")
)

// Reader reads a recording from its beginning.
type Reader struct {
	file  *os.File
	lines *bufio.Reader
	began fleet.Instant
	at    int // the line
	last  fleet.Snapshot
}

// Open opens a recording. An [ErrFormat] says that it is none, or of another version.
func Open(path string) (*Reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r := &Reader{file: file, lines: bufio.NewReaderSize(file, 64<<10)}
	var h header
	// What is no recording may be large, and have no lines.
	first, err := r.lines.Peek(1 << 10)
	if end := bytes.IndexByte(first, '\n'); end >= 0 {
		first = first[:end]
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		err = fmt.Errorf("replay %s: %w", path, err)
	case json.Unmarshal(first, &h) != nil || h.Format == "":
		err = fmt.Errorf("replay %s: %w", path, ErrFormat)
	case h.Format != format:
		err = fmt.Errorf("replay %s: %w: it is %q, and this one reads %q", path, ErrFormat, h.Format, format)
	default:
		r.began, r.at = h.Began, 1
		_, err = r.lines.Discard(min(len(first)+1, r.lines.Buffered()))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return r, nil
}

// Began is when the recording began.
func (r *Reader) Began() fleet.Instant { return r.began }

// Next gives the next record, and [io.EOF] after the last: also where the last line was cut short.
func (r *Reader) Next() (Record, error) {
	data, err := r.lines.ReadBytes('\n')
	switch {
	case errors.Is(err, io.EOF):
		return Record{}, io.EOF // what stands there was being written when the recorder ended
	case err != nil:
		return Record{}, fmt.Errorf("replay %s: %w", r.file.Name(), err)
	}
	r.at++
	rec, err := r.decode(data)
	if err != nil {
		return Record{}, fmt.Errorf("%s:%d: %w: %w", r.file.Name(), r.at, ErrDamaged, err)
	}
	return rec, nil
}

func (r *Reader) decode(data []byte) (Record, error) {
	var l line
	if err := json.Unmarshal(data, &l); err != nil {
		return Record{}, err
	}
	rec := Record{At: l.At, Member: l.Member, Screen: l.Screen, Choices: l.Choices}
	switch {
	case l.Snapshot != nil:
		s, err := l.Snapshot.unpack(r.last)
		if err != nil {
			return Record{}, err
		}
		rec.Snapshot = &s
	case l.Fresh != nil:
		s := r.last
		s.Rev, s.At, s.File.ReadAt, s.Daemon.AnsweredAt = l.Fresh.Rev, l.Fresh.At, l.Fresh.ReadAt, l.Fresh.AnsweredAt
		rec.Snapshot = &s
	case l.Screen == nil && l.Choices == nil:
		return Record{}, errors.New("it says nothing")
	}
	if s := rec.Snapshot; s != nil {
		if s.Rev <= r.last.Rev {
			return Record{}, fmt.Errorf("snapshot %d comes after %d", s.Rev, r.last.Rev)
		}
		r.last = *s
	}
	return rec, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }
