package embedded

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"fleetdeck/fleet/launch"
)

// protocol is the version of what holder and terminal say to each other.
const protocol = 1

// maxInput bounds what is typed in one call, and what waits for an agent that does not read.
const maxInput = 1 << 20

// maxFrame bounds the payload of a frame.
const maxFrame = maxInput + 64<<10

// The kinds of frames.
const (
	frameRequest = 'r'
	frameInput   = 'i'
	frameAnswer  = 'a'
	frameData    = 'd'
	frameQuery   = 'q'
	frameStatus  = 's'
)

// request is what a terminal asks of its holder.
type request struct {
	Version  int    `json:"v"`
	Do       string `json:"do"`
	Cols     int    `json:"cols,omitempty"`
	Rows     int    `json:"rows,omitempty"`
	Patience int64  `json:"patience_ns,omitempty"`
	Output   bool   `json:"output,omitempty"`
	From     uint64 `json:"from,omitempty"`
	Cursor   bool   `json:"cursor,omitempty"`
	Every    int64  `json:"every_ns,omitempty"`
	Until    int64  `json:"until_ns,omitempty"`
}

// answer is what the holder says to a request.
type answer struct {
	Version int    `json:"v"`
	Error   string `json:"error,omitempty"`
	// Ended says that the error is the agent's end.
	Ended  bool           `json:"ended,omitempty"`
	Status *launch.Status `json:"status,omitempty"`
	// Prelude answers "prelude".
	Prelude string `json:"prelude,omitempty"`
}

// writeFrame writes a frame whose payload is the parts, one after the other.
func writeFrame(w io.Writer, kind byte, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b := make([]byte, 5, 5+n)
	b[0] = kind
	binary.BigEndian.PutUint32(b[1:], uint32(n))
	for _, p := range parts {
		b = append(b, p...)
	}
	_, err := w.Write(b)
	return err
}

func writeFrameJSON(w io.Writer, kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFrame(w, kind, b)
}

// writeFrameAt writes a frame that begins with an offset.
func writeFrameAt(w io.Writer, kind byte, offset uint64, data []byte) error {
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], offset)
	return writeFrame(w, kind, at[:], data)
}

func readFrame(r io.Reader) (kind byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes is longer than %d", n, maxFrame)
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(r, payload)
	return head[0], payload, err
}

// cutOffset splits the payload of a frame that begins with an offset.
func cutOffset(payload []byte) (uint64, []byte, error) {
	if len(payload) < 8 {
		return 0, nil, fmt.Errorf("a frame of %d bytes is too short for an offset", len(payload))
	}
	return binary.BigEndian.Uint64(payload), payload[8:], nil
}

func readRequest(r io.Reader, req *request) error {
	kind, b, err := readFrame(r)
	if err != nil {
		return err
	}
	if kind != frameRequest {
		return fmt.Errorf("a frame of kind %q came instead of a request", kind)
	}
	return json.Unmarshal(b, req)
}
