// Package history is what consoles did: history.jsonl in the state directory, one command a line with how it ended.
//
// Any number of consoles append at once, each line by one write, without waiting for each other. A line that a crash cut short,
// or that something else wrote, is passed over by readers and spoils no other. The file is for people and for grep: nothing
// decides on what it says, and a full one makes room for the next and is kept as history.jsonl.1 until that is full.
package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"fleetdeck/fleet"
)

const (
	fileName = "history.jsonl"
	// maxSize is the size from which a new file is begun.
	maxSize = 2 << 20
	// maxText bounds what one line quotes: a task may be long.
	maxText = 8 << 10
)

// Log is the history of one state directory. It is safe for use by several goroutines and processes.
type Log struct {
	path string
	max  int64
}

// In is the history in the state directory dir.
func In(dir string) *Log { return &Log{filepath.Join(dir, fileName), maxSize} }

// Path is the file's path.
func (l *Log) Path() string { return l.path }

// Add appends a deed.
func (l *Log) Add(d fleet.Deed) (err error) {
	d.Command, d.Message = cut(d.Command), cut(d.Message)
	var line bytes.Buffer
	line.WriteByte('\n') // dropped again unless the line before was cut short
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d); err != nil {
		return fmt.Errorf("encode a line of the history: %w", err)
	}
	file, err := l.open()
	if err != nil {
		return fmt.Errorf("open the history: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data := line.Bytes()
	if whole(file) {
		data = data[1:]
	}
	if _, err := file.Write(data); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// open opens the file to append to; a full one is put aside first. Who puts it aside holds a lock on that very file, so that of
// several only one does, and none puts aside what another has just begun.
func (l *Log) open() (*os.File, error) {
	file, err := l.openAsIs()
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || info.Size() < l.max || unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return file, nil // where it cannot be put aside it may grow
	}
	if now, err := os.Stat(l.path); err == nil && os.SameFile(now, info) && os.Rename(l.path, l.path+".1") != nil {
		return file, nil
	}
	next, err := l.openAsIs()
	if err != nil {
		return file, nil
	}
	return next, file.Close()
}

func (l *Log) openAsIs() (*os.File, error) {
	return os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
}

// whole reports whether the file ends with the end of a line.
func whole(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return err == nil
	}
	var last [1]byte
	_, err = file.ReadAt(last[:], info.Size()-1)
	return err == nil && last[0] == '\n'
}

// Tail gives the newest n deeds, oldest first. A missing file holds none.
func (l *Log) Tail(n int) ([]fleet.Deed, error) {
	newest, err := tail(l.path, n)
	if err != nil || len(newest) >= n {
		return newest, err
	}
	older, err := tail(l.path+".1", n-len(newest))
	return append(older, newest...), err
}

// tail reads the newest n deeds of one file, from its end.
func tail(path string, n int) ([]fleet.Deed, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	for span := int64(64 << 10); ; span *= 2 {
		from := max(0, info.Size()-span)
		data, err := io.ReadAll(io.NewSectionReader(file, from, info.Size()-from))
		if err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
		if from > 0 {
			_, data, _ = bytes.Cut(data, []byte("\n")) // it begins in the middle of a line
		}
		if deeds := decode(data); len(deeds) >= n || from == 0 {
			return deeds[max(0, len(deeds)-n):], nil
		}
	}
}

// decode reads the deeds of data, and passes over whatever else is in it.
func decode(data []byte) []fleet.Deed {
	var deeds []fleet.Deed
	for line := range bytes.Lines(data) {
		var d fleet.Deed
		if json.Unmarshal(line, &d) == nil && d.What != "" && !d.Time.IsZero() {
			deeds = append(deeds, d)
		}
	}
	return deeds
}

// cut bounds s at the end of a character.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end] + "…"
}
