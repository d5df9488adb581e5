package attach

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// pasteGap is how long a paste may pause. A paste whose end was lost must not take the detach key with it.
const pasteGap = time.Second

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// keys finds the detach key in what is typed. Inside a bracketed paste it is a character like any other.
type keys struct {
	detach  byte
	pasting bool
	last    time.Time // when something was typed
	tail    []byte    // the end of what was typed before: a paste's mark may be split
}

// take gives what is to be passed on of p, which was read at now, and whether the detach key came after it.
func (k *keys) take(p []byte, now time.Time) (typed []byte, detach bool) {
	if k.pasting && now.Sub(k.last) > pasteGap {
		k.pasting, k.tail = false, nil
	}
	k.last = now
	for i, c := range p {
		if c == k.detach && !k.pasting {
			return p[:i], true
		}
		k.tail = append(k.tail, c)
		if over := len(k.tail) - len(pasteBegin); over > 0 {
			k.tail = append(k.tail[:0], k.tail[over:]...)
		}
		switch {
		case bytes.HasSuffix(k.tail, []byte(pasteBegin)):
			k.pasting = true
		case bytes.HasSuffix(k.tail, []byte(pasteEnd)):
			k.pasting = false
		}
	}
	return p, false
}

// keyName is a control character as people write it.
func keyName(c byte) string {
	if c < 0x20 {
		return "ctrl-" + strings.ToLower(string(rune(c+0x40)))
	}
	return fmt.Sprintf("%q", c)
}
