package embedded

import (
	"net"

	"fleetdeck/fleet/launch"
)

// maxQueries bounds the cursor position queries that wait for one follower.
const maxQueries = 16

// follower is somebody who follows the output. Each is served by a goroutine of its own and only ever waited for by
// that: one that is too slow finds itself skipped ahead to what the ring still holds.
type follower struct {
	output, cursor bool
	at             uint64   // the offset of the next byte that it gets
	queries        []uint64 // the queries that it was not told yet
	gone           bool
}

// follow serves conn until the terminal has ended or the other side is gone. status tells the present status.
func (o *output) follow(conn net.Conn, req request, status func() launch.Status) error {
	f := &follower{output: req.Output, cursor: req.Cursor, at: req.From}
	o.mu.Lock()
	f.at = min(f.at, o.end)
	o.followers[f] = struct{}{}
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		delete(o.followers, f)
		o.mu.Unlock()
	}()
	go func() {
		conn.Read(make([]byte, 1)) // a follower says nothing: this ends when it goes away
		o.mu.Lock()
		f.gone = true
		o.changed.Broadcast()
		o.mu.Unlock()
	}()

	buf := make([]byte, 32<<10)
	told := uint64(0)
	for {
		next := o.next(f, buf, told)
		if next.gone {
			return nil
		}
		if next.n > 0 {
			if err := writeFrameAt(conn, frameData, next.at, buf[:next.n]); err != nil {
				return err
			}
		}
		if next.query {
			if err := writeFrameAt(conn, frameQuery, next.queryAt, nil); err != nil {
				return err
			}
		}
		if next.rev == told {
			continue
		}
		s := status()
		if s.Exit != nil && !next.last {
			continue // the exit comes after the last byte
		}
		told = next.rev
		if err := writeFrameJSON(conn, frameStatus, s); err != nil || next.last {
			return err
		}
	}
}

// step is what a follower is told next.
type step struct {
	gone    bool
	at      uint64 // of the n bytes of output
	n       int
	query   bool
	queryAt uint64
	rev     uint64 // of the status
	last    bool   // nothing comes after this
}

// next waits until there is something to tell f, whose status is of revision told.
func (o *output) next(f *follower, buf []byte, told uint64) step {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !f.gone && len(f.queries) == 0 && !(f.output && f.at < o.end) && told == o.statusRev {
		o.changed.Wait()
	}
	s := step{gone: f.gone, rev: o.statusRev}
	if f.output {
		f.at = max(f.at, o.start())
		limit := o.end
		if len(f.queries) > 0 {
			limit = max(f.at, f.queries[0])
		}
		s.at, s.n = f.at, o.read(buf, f.at, limit)
		f.at += uint64(s.n)
	}
	if len(f.queries) > 0 && (!f.output || f.at >= f.queries[0]) {
		s.query, s.queryAt = true, f.queries[0]
		f.queries = f.queries[1:]
	}
	s.last = o.closed && len(f.queries) == 0 && (!f.output || f.at == o.end)
	return s
}
