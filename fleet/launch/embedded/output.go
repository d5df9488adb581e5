package embedded

import (
	"sync"
	"time"
)

// ringSize is how much of the newest output a holder keeps in memory.
const ringSize = 256 << 10

// holdBack is how long an unfinished escape sequence is kept back, since it may become a question.
const holdBack = 50 * time.Millisecond

type winsize struct{ cols, rows int }

// output is all that the agent printed: the newest in a ring, more on disk, and whoever follows it.
type output struct {
	mu sync.Mutex
	// changed tells followers to look again. It goes with mu.
	changed *sync.Cond

	filter filter
	modes  modes
	flush  *time.Timer
	ring   []byte
	end    uint64 // the offset of the next byte
	log    *rotatingLog
	news   news

	responder *responder
	size      winsize
	statusRev uint64 // grows with each change of the status
	closed    bool   // nothing will come any more
	followers map[*follower]struct{}
}

func newOutput(size winsize, log *rotatingLog, r *responder) *output {
	o := &output{ring: make([]byte, ringSize), log: log, responder: r, size: size, statusRev: 1, followers: map[*follower]struct{}{}}
	o.changed = sync.NewCond(&o.mu)
	o.flush = time.AfterFunc(time.Hour, o.release)
	o.flush.Stop()
	return o
}

// feed takes what was read from the terminal.
func (o *output) feed(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush.Stop()
	o.filter.scan(p, o.size, sink{pass: o.append, ask: o.ask, mode: o.noteMode})
	o.modes.forget(o.start())
	if o.news.scan(p) {
		o.news.until = o.end
	}
	if len(o.filter.held) > 0 {
		o.flush.Reset(holdBack)
	}
	o.changed.Broadcast()
}

// release lets out what the filter keeps back.
func (o *output) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.filter.flush(o.append)
	o.changed.Broadcast()
}

// append adds p to ring and log. o.mu is held.
func (o *output) append(p []byte) {
	if o.end == 0 && len(p) > 0 {
		o.statusRev++ // that there is output at all is worth telling
	}
	o.log.write(p)
	if over := len(p) - ringSize; over > 0 {
		o.end += uint64(over)
		p = p[over:]
	}
	for len(p) > 0 {
		n := copy(o.ring[o.end%ringSize:], p)
		o.end += uint64(n)
		p = p[n:]
	}
}

// ask answers a question, or passes it on to those who offered. o.mu is held.
func (o *output) ask(q query) {
	if !q.cursor {
		o.responder.answer(q.reply)
		return
	}
	o.responder.cursor(q.private, o.mark(winsize{}, func(f *follower) bool { return f.cursor }))
}

// noteMode remembers a mode that is set or reset so many bytes after the end. o.mu is held.
func (o *output) noteMode(seq string, ahead int) { o.modes.note(seq, o.end+uint64(ahead)) }

// prelude gives the modes that were set at an offset.
func (o *output) prelude(at uint64) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.modes.prelude(at)
}

// start is the offset of the oldest byte in the ring. o.mu is held.
func (o *output) start() uint64 {
	if o.end < ringSize {
		return 0
	}
	return o.end - ringSize
}

// read copies what the ring holds from offset at on into buf, without passing limit. o.mu is held.
func (o *output) read(buf []byte, at, limit uint64) int {
	n := int(min(uint64(len(buf)), limit-at))
	i := int(at % ringSize)
	c := copy(buf[:n], o.ring[i:])
	copy(buf[c:n], o.ring)
	return n
}

// wake makes followers tell the new status.
func (o *output) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.statusRev++
	o.changed.Broadcast()
}

// close says that nothing will come any more. The status has the exit by then.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.statusRev++
	o.closed = true
	o.changed.Broadcast()
}

// setSize tells followers of a new size, which the terminal gets right after.
func (o *output) setSize(size winsize) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size = size
	o.mark(size, func(*follower) bool { return true })
	o.changed.Broadcast()
}

func (o *output) count() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end
}
