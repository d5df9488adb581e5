package embedded

import (
	"io"
	"net"
	"time"

	"fleetdeck/fleet/launch"
)

// maxMarks bounds what waits for one follower at its places in the output.
const maxMarks = 32

// follower is somebody who follows the output. Each is served by a goroutine of its own and only ever waited for by
// that: one that is too slow finds itself skipped ahead to what the ring still holds.
type follower struct {
	output, cursor bool
	at             uint64 // the offset of the next byte that it gets
	size           winsize
	marks          []mark // what it was not told yet, in order
	gone           bool
	pace           pace
}

// mark is something that a follower is told at its place in the output: a question for the cursor's position or a new
// size. What comes after a new size was drawn for it.
type mark struct {
	at   uint64
	size winsize // zero for a question
}

func (m mark) query() bool { return m.size == winsize{} }

// mark gives every follower that wants it a mark at the end of the output, and says how many got it. o.mu is held.
func (o *output) mark(size winsize, wants func(*follower) bool) (n int) {
	for f := range o.followers {
		if !wants(f) || len(f.marks) >= maxMarks {
			continue
		}
		f.marks = append(f.marks, mark{o.end, size})
		n++
	}
	return n
}

// follow serves conn until the terminal has ended or the other side is gone. status tells the present status.
func (o *output) follow(conn net.Conn, req request, status func() launch.Status) error {
	f := &follower{output: req.Output, cursor: req.Cursor, at: req.From, pace: pace{every: time.Duration(req.Every)}}
	defer o.join(f)()
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
		if m := next.mark; m != nil && m.query() {
			if err := writeFrameAt(conn, frameQuery, m.at, nil); err != nil {
				return err
			}
		}
		if next.rev == told && (next.mark == nil || next.mark.query()) {
			continue
		}
		s := status()
		s.Cols, s.Rows = next.size.cols, next.size.rows // as at its place in the output
		if s.Exit != nil && !next.last {
			continue // the exit comes after the last byte
		}
		told = next.rev
		if err := writeFrameJSON(conn, frameStatus, s); err != nil || next.last {
			return err
		}
	}
}

// show writes all output to w until the terminal has ended or w fails, and makes nobody wait for w.
func (o *output) show(w io.Writer) {
	f := &follower{output: true}
	defer o.join(f)()
	buf := make([]byte, 32<<10)
	told, shown := uint64(0), uint64(0)
	for {
		next := o.next(f, buf, told)
		told = next.rev
		if next.n > 0 && next.at != shown { // it was too slow: what comes goes into the modes that were set meanwhile
			if _, err := io.WriteString(w, o.prelude(next.at)); err != nil {
				return
			}
		}
		if _, err := w.Write(buf[:next.n]); err != nil || next.last {
			return
		}
		shown = next.at + uint64(next.n)
	}
}

// join makes f a follower until leave is called.
func (o *output) join(f *follower) (leave func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f.at, f.size = min(f.at, o.end), o.size
	o.followers[f] = struct{}{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.followers, f)
	}
}

// step is what a follower is told next.
type step struct {
	gone bool
	at   uint64 // of the n bytes of output
	n    int
	mark *mark
	size winsize
	rev  uint64 // of the status
	last bool   // nothing comes after this
}

// next waits until there is something to tell f, whose status is of revision told.
func (o *output) next(f *follower, buf []byte, told uint64) step {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !f.gone && len(f.marks) == 0 && !o.due(f) && told == o.statusRev {
		o.changed.Wait()
	}
	s := step{gone: f.gone, rev: o.statusRev}
	if f.output {
		f.at = max(f.at, o.start())
		limit := o.end
		if len(f.marks) > 0 {
			limit = max(f.at, f.marks[0].at)
		}
		s.at, s.n = f.at, o.read(buf, f.at, limit)
		f.at += uint64(s.n)
	}
	if len(f.marks) > 0 && (!f.output || f.at >= f.marks[0].at) {
		m := f.marks[0]
		f.marks = f.marks[1:]
		s.mark = &m
		if !m.query() {
			f.size = m.size
		}
	}
	s.size = f.size
	s.last = o.closed && len(f.marks) == 0 && (!f.output || f.at == o.end)
	return s
}
