package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Document is a JSON object of entries, kept one a line:
//
//	{
//	"$format": "fleetdeck.reservations/1",
//	"/home/kim/src/api": {"id":"01JE…"},
//	"/home/kim/src/web": {"id":"01JF…"}
//	}
//
// Keys that begin with "$" say something of the document and are no entries. A change touches its own line only: every
// other line, also a "$" line that this program does not know, is carried over byte for byte. Values may be of any JSON
// type; what they mean is their reader's business. A Document is not for several goroutines at once.
type Document struct {
	members []member       // in file order; a deleted one has no key
	index   map[string]int // key to place in members
	entries int
	size    int // about how long Bytes will be
}

type member struct {
	key   string
	raw   []byte // the key as the file writes it, quotes included
	value json.RawMessage
}

const formatKey = "$format"

// NewDocument returns a document without entries.
func NewDocument(format string) *Document {
	d := &Document{index: map[string]int{}}
	d.Set(formatKey, quote(format))
	return d
}

// Parse reads a document. It accepts any JSON object, however it is laid out, and keeps data: the caller must not change it
// afterwards. A document without a "$format" is one of version 1.
//
// It returns a [CorruptError] for text that is not one JSON object, has a key twice or is not UTF-8, and a [FormatError]
// for a format of another name or of a higher version than format, which is such as "fleetdeck.reservations/1".
func Parse(data []byte, format string) (*Document, error) {
	if err := checkText(data); err != nil {
		return nil, err
	}
	lines := bytes.Count(data, []byte{'\n'})
	d := &Document{members: make([]member, 0, lines), index: make(map[string]int, lines)}
	s := scanner{data: data}
	s.space()
	if s.peek() != '{' {
		return nil, s.fault(s.pos, "not a JSON object")
	}
	err := s.object(1, func(start int, raw, value []byte) error {
		if d.add(raw, value) {
			return nil
		}
		return s.fault(start, "duplicate key %.200s", raw)
	})
	if err != nil {
		return nil, err
	}
	s.space()
	if s.pos < len(data) {
		return nil, s.fault(s.pos, "text behind the end of the document")
	}
	if err := d.settleFormat(&s, format); err != nil {
		return nil, err
	}
	return d, nil
}

// checkText finds what makes text no document at all, to say it in plainer words than a parser can.
func checkText(data []byte) error {
	switch {
	case len(data) == 0:
		return &CorruptError{Line: 1, Why: "the file is empty (zero bytes)"}
	case len(bytes.Trim(data, " \t\r\n")) == 0:
		return &CorruptError{Line: 1, Why: "nothing but white space"}
	case len(bytes.Trim(data, "\x00")) == 0:
		return &CorruptError{Line: 1, Why: "nothing but NUL bytes"}
	case bytes.HasPrefix(data, []byte("\ufeff")):
		return &CorruptError{Line: 1, Why: "a byte order mark before the document"}
	case !utf8.Valid(data):
		return &CorruptError{Line: lineAt(data, invalidAt(data)), Why: "not valid UTF-8"}
	}
	return nil
}

// invalidAt is where the first byte is that is not UTF-8.
func invalidAt(data []byte) int {
	for pos := 0; pos < len(data); {
		r, size := utf8.DecodeRune(data[pos:])
		if r == utf8.RuneError && size == 1 {
			return pos
		}
		pos += size
	}
	return len(data)
}

// add appends a member that was read. It reports false if the key is there already.
func (d *Document) add(raw, value []byte) bool {
	key := unquote(raw)
	if _, dup := d.index[key]; dup {
		return false
	}
	d.put(member{key: key, raw: raw, value: oneLine(value)})
	return true
}

// put appends a member whose key is new.
func (d *Document) put(m member) {
	d.index[m.key] = len(d.members)
	d.members = append(d.members, m)
	d.size += len(m.raw) + len(m.value)
	if isEntry(m.key) {
		d.entries++
	}
}

// settleFormat compares the document's format with the wanted one, and puts in the format that a document without one has.
func (d *Document) settleFormat(s *scanner, want string) error {
	wantName, wantVersion, err := splitFormat(want)
	if err != nil {
		panic("lockfile.Parse: " + err.Error())
	}
	value, ok := d.Get(formatKey)
	if !ok {
		d.Set(formatKey, quote(wantName+"/1"))
		return nil
	}
	var have string
	if err := json.Unmarshal(value, &have); err != nil || value[0] != '"' {
		return s.fault(max(0, bytes.Index(s.data, []byte(formatKey))), "%s is no string", formatKey)
	}
	name, version, err := splitFormat(have)
	if err != nil || name != wantName || version > wantVersion {
		return &FormatError{Have: have, Want: want}
	}
	return nil
}

func splitFormat(format string) (name string, version uint64, err error) {
	name, number, _ := strings.Cut(format, "/")
	version, err = strconv.ParseUint(number, 10, 32)
	if err != nil || name == "" || version == 0 {
		return "", 0, fmt.Errorf("format %q is not a name, a slash and a version", format)
	}
	return name, version, nil
}

// Get returns the value of key. The caller must not change its bytes.
func (d *Document) Get(key string) (json.RawMessage, bool) {
	i, ok := d.index[key]
	if !ok {
		return nil, false
	}
	return d.members[i].value, true
}

// CheckKey returns [ErrKey] if key cannot be a key: JSON is UTF-8, and a file's name need not be.
func CheckKey(key string) error {
	if utf8.ValidString(key) {
		return nil
	}
	return fmt.Errorf("%w: %q", ErrKey, key)
}

// Set makes raw the value of key, in its old place or at the end. A value that is no JSON and a key that [CheckKey] refuses
// are errors of the program, and panic.
func (d *Document) Set(key string, raw json.RawMessage) {
	if err := CheckKey(key); err != nil {
		panic("lockfile.Document.Set: " + err.Error())
	}
	var line bytes.Buffer
	line.Grow(len(raw))
	if err := json.Compact(&line, raw); err != nil {
		panic("lockfile.Document.Set: " + err.Error())
	}
	if i, ok := d.index[key]; ok {
		m := &d.members[i]
		d.size += line.Len() - len(m.value)
		m.value = line.Bytes()
		return
	}
	d.put(member{key: key, raw: quote(key), value: line.Bytes()})
}

// Delete removes key. It reports whether it was there.
func (d *Document) Delete(key string) bool {
	i, ok := d.index[key]
	if !ok {
		return false
	}
	delete(d.index, key)
	if isEntry(key) {
		d.entries--
	}
	d.size -= len(d.members[i].raw) + len(d.members[i].value)
	d.members[i] = member{}
	return true
}

// Len is the number of entries.
func (d *Document) Len() int { return d.entries }

// All returns the entries in file order. The caller must not change their bytes.
func (d *Document) All() iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for _, m := range d.members {
			if m.raw != nil && isEntry(m.key) && !yield(m.key, m.value) {
				return
			}
		}
	}
}

// Bytes returns the document as text: the format first, then the rest in file order.
func (d *Document) Bytes() []byte {
	const perLine = len(": ,\n")
	text := make([]byte, 0, d.size+perLine*len(d.members)+len("{\n}\n"))
	text = append(text, '{')
	end := "\n"
	line := func(m member) {
		text = append(text, end...)
		text = append(text, m.raw...)
		text = append(text, ": "...)
		text = append(text, m.value...)
		end = ",\n"
	}
	if i, ok := d.index[formatKey]; ok {
		line(d.members[i])
	}
	for _, m := range d.members {
		if m.raw != nil && m.key != formatKey {
			line(m)
		}
	}
	return append(text, "\n}\n"...)
}

func isEntry(key string) bool { return !strings.HasPrefix(key, "$") }

// oneLine returns a valid value without line breaks, as it stands if it has none.
func oneLine(value []byte) json.RawMessage {
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return value
	}
	var line bytes.Buffer
	if err := json.Compact(&line, value); err != nil {
		panic("lockfile: scanner passed what encoding/json refuses: " + err.Error())
	}
	return line.Bytes()
}

// Fields returns the members of a valid JSON object, in order. It decodes and copies no value. Of anything else than an
// object it returns nothing.
func Fields(object json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		s := scanner{data: object}
		s.space()
		if s.peek() != '{' {
			return
		}
		// The only error is errStop.
		_ = s.object(1, func(_ int, key, value []byte) error {
			if !yield(unquote(key), value) {
				return errStop
			}
			return nil
		})
	}
}

// errStop ends a walk early.
var errStop = errors.New("stop")

// unquote returns what a valid JSON string says.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		panic("lockfile: scanner passed what encoding/json refuses: " + err.Error())
	}
	return s
}

// quote is a JSON string that says s, without the escapes that only HTML needs.
func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string can always be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
