package embedded

import (
	"time"
	"unicode/utf8"

	"fleetdeck/fleet/witness"
)

// pace is how often a follower gets output, where it need not have each piece by itself.
type pace struct {
	every time.Duration // zero: as it comes
	last  time.Time     // when it last was its turn
	until uint64        // it may have all before this offset
	timer *time.Timer   // has it look again; nil while nobody need
}

// due reports whether there is output that f gets now. Where there is some that has to wait, f is woken in time. o.mu is held.
func (o *output) due(f *follower) bool {
	if !f.output || f.at >= o.end {
		return false
	}
	p := &f.pace
	if p.every <= 0 || f.at < p.until {
		return true
	}
	now := time.Now()
	left := p.last.Add(p.every).Sub(now)
	// Half a ring is left for what comes until the follower has taken what waits for it.
	if left <= 0 || o.news.until > f.at || o.closed || o.end-f.at >= ringSize/2 {
		p.last, p.until = now, o.end
		return true
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(left, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			p.timer = nil
			o.changed.Broadcast()
		})
	}
	return false
}

// news finds in the output what nobody should wait for: it may mean that a person is waited for.
type news struct {
	until           uint64 // the offset after the last of it
	scanner         witness.Scanner
	title, progress string
}

// scan reports whether there is some in p.
func (n *news) scan(p []byte) (found bool) {
	n.scanner.Feed(p, func(s witness.Signal) {
		switch s.Kind {
		case witness.Notice:
			found = true
		case witness.SetTitle:
			// While it works, an agent has the first character turn, many times a second.
			_, first := utf8.DecodeRuneInString(s.Text)
			found = found || s.Text[first:] != n.title
			n.title = s.Text[first:]
		case witness.Busy, witness.NotBusy, witness.Cleared:
			found = found || s.Text != n.progress
			n.progress = s.Text
		}
	})
	return found
}
