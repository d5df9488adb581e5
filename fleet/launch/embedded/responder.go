package embedded

import (
	"fmt"
	"regexp"
	"sync"
	"time"
)

const (
	// cursorPatience is how long a follower has to answer a cursor position query.
	cursorPatience = 300 * time.Millisecond
	// latePatience is how long after that an answer is known for a late or second one.
	latePatience = 2 * time.Second
)

// responder types the answers to the agent's questions, in the order of the questions: many programs ask something
// that every terminal answers last, and take its answer for the end of all others.
type responder struct {
	mu      sync.Mutex
	waiting []*reply
	owed    int       // answers of followers that still may come, and count no more
	until   time.Time // when the last of them is forgotten
	typ     func([]byte) error
}

type reply struct {
	text    string
	ready   bool
	private bool
	askers  int
	timer   *time.Timer
}

// answer puts a known answer in its place.
func (r *responder) answer(text string) {
	if text == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, &reply{text: text, ready: true})
	r.advance()
}

// cursor makes a place for a cursor position that so many followers were asked for.
func (r *responder) cursor(private bool, askers int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := &reply{private: private, askers: askers}
	r.waiting = append(r.waiting, q)
	if askers == 0 {
		r.settle(q, "1;1", 0)
		return
	}
	q.timer = time.AfterFunc(cursorPatience, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !q.ready {
			r.settle(q, "1;1", q.askers)
		}
	})
}

var cursorReport = regexp.MustCompile(`^\x1b\[\??(\d{1,5};\d{1,5})(;\d{1,5})?R$`)

// claim reports whether p is a follower's answer to a cursor position query, and uses it if it is the first one. Such
// an answer looks like a function key with modifiers, so that it is one only while it is expected.
func (r *responder) claim(p []byte) bool {
	m := cursorReport.FindSubmatch(p)
	if m == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.waiting {
		if !q.ready {
			q.timer.Stop()
			r.settle(q, string(m[1]), q.askers-1)
			return true
		}
	}
	if r.owed > 0 && time.Now().Before(r.until) {
		r.owed--
		return true
	}
	return false
}

// settle gives q its answer; so many more answers to it may come. r.mu is held.
func (r *responder) settle(q *reply, position string, late int) {
	q.ready = true
	if q.private {
		q.text = fmt.Sprintf("\x1b[?%s;1R", position)
	} else {
		q.text = fmt.Sprintf("\x1b[%sR", position)
	}
	now := time.Now()
	if now.After(r.until) {
		r.owed = 0
	}
	r.owed += late
	r.until = now.Add(latePatience)
	r.advance()
}

// advance types the answers whose turn it is. r.mu is held.
func (r *responder) advance() {
	for len(r.waiting) > 0 && r.waiting[0].ready {
		r.typ([]byte(r.waiting[0].text)) // an agent that asks without reading gets no answer
		r.waiting = r.waiting[1:]
	}
}
