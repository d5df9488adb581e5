package book

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/lockfile"
)

// entryError is a defect of one entry that makes the whole file untrustworthy.
type entryError struct {
	Tree string
	Err  error
}

func (e *entryError) Error() string { return fmt.Sprintf("entry %q: %v", e.Tree, e.Err) }
func (e *entryError) Unwrap() error { return e.Err }

// probe reads no more of an entry than every admission must: that it is an object with a good entry time, and the
// directory that it names.
func probe(tree string, raw json.RawMessage) (file string, err error) {
	if len(raw) == 0 || raw[0] != '{' {
		return "", &entryError{tree, fmt.Errorf("is no object")}
	}
	var expires []byte
	for name, value := range lockfile.Fields(raw) {
		switch name {
		case "expires_at":
			expires = value
		case "file":
			file = unquote(value)
		}
	}
	if expires == nil {
		return "", &entryError{tree, fmt.Errorf("has no expires_at")}
	}
	if _, err := time.Parse(time.RFC3339, unquote(expires)); err != nil {
		return "", &entryError{tree, fmt.Errorf("expires_at %s is no RFC 3339 time", expires)}
	}
	return file, nil
}

// unquote is the text of a JSON string; of anything else it is the empty string.
func unquote(raw []byte) string {
	if n := len(raw); n >= 2 && raw[0] == '"' {
		if bytes.IndexByte(raw, '\\') < 0 {
			return string(raw[1 : n-1]) // every admission comes by here for every entry
		}
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
	}
	return ""
}

// decode reads an entry whole. What a foreign writer put into fields that only display needs may be of any shape; the
// entry stands all the same.
func decode(tree string, raw json.RawMessage) (fleet.Entry, error) {
	if _, err := probe(tree, raw); err != nil {
		return fleet.Entry{}, err
	}
	e := fleet.Entry{Tree: tree}
	for name, value := range lockfile.Fields(raw) {
		switch name {
		case "id":
			e.ID = unquote(value)
		case "role":
			e.Role = unquote(value)
		case "profile":
			e.Profile = unquote(value)
		case "slot":
			e.Slot = unquote(value)
		case "file":
			e.File = fleet.FileID(unquote(value))
		case "expires_at":
			e.ExpiresAt, _ = time.Parse(time.RFC3339, unquote(value)) // probed above
		case "reserved_at":
			e.ReservedAt, _ = time.Parse(time.RFC3339, unquote(value))
		case "dispatcher":
			var d fleet.Dispatcher
			if json.Unmarshal(value, &d) == nil {
				e.Dispatcher = d
			}
		case "boot":
			// A boot that cannot be read is as good as none, and expires_at counts: some programs write large numbers
			// as floats.
			var b fleet.BootStamp
			if json.Unmarshal(value, &b) == nil {
				e.Boot = b
			}
		}
	}
	return e, nil
}

// on is the tree that an entry under key stands for.
func on(key, file string) fleet.Tree {
	return fleet.Entry{Tree: key, Reservation: fleet.Reservation{File: fleet.FileID(file)}}.On()
}

// keyOf is the key of the entry that stands for tree, which a foreign writer may have spelled in another way.
func keyOf(doc *lockfile.Document, tree string) string {
	if _, ok := doc.Get(tree); ok {
		return tree
	}
	for key := range doc.All() {
		if on(key, "").Path == tree {
			return key
		}
	}
	return tree
}
