package embedded

import (
	"errors"
	"io"
	"sync"
)

var errInputFull = errors.New("the agent does not read its input: nothing more was typed")

// input is what was typed and not yet taken by the agent. An agent that does not read makes it full, and nothing wait.
type input struct {
	mu     sync.Mutex
	grown  *sync.Cond // with mu
	buf    []byte
	closed bool
}

func newInput() *input {
	in := &input{}
	in.grown = sync.NewCond(&in.mu)
	return in
}

// add types p as a whole or not at all.
func (in *input) add(p []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.closed:
		return errEnded
	case len(in.buf)+len(p) > maxInput:
		return errInputFull
	}
	in.buf = append(in.buf, p...)
	in.grown.Signal()
	return nil
}

// pump writes to w what is typed, until in is closed or w fails.
func (in *input) pump(w io.Writer) {
	chunk := make([]byte, 0, 4<<10)
	for {
		in.mu.Lock()
		for len(in.buf) == 0 && !in.closed {
			in.grown.Wait()
		}
		if in.closed {
			in.mu.Unlock()
			return
		}
		chunk = chunk[:copy(chunk[:cap(chunk)], in.buf)]
		if in.buf = in.buf[len(chunk):]; len(in.buf) == 0 {
			in.buf = nil // a long paste is not kept for ever
		}
		in.mu.Unlock()
		if _, err := w.Write(chunk); err != nil {
			in.close()
			return
		}
	}
}

func (in *input) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.grown.Broadcast()
}
