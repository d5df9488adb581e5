package witness_test

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet/witness"
)

func FuzzSignalsAreTheSameInAnyPieces(f *testing.F) {
	for _, s := range []string{
		"\x1b]0;title\x07", "\x1b]2;a\x1b\\b\x07", "\x1b]9;4;1;50\x07\x1b]9;4;0\x07", "\x1b]777;notify;a;b\x1b\\", "\x1b]99;i=1:p=title;hi\x1b\\",
		"\x1b]7501;state=busy\x07", "\x1bP\x07\x1b\\\x07", "\x1b]0;\xff\xc3\x18\x07", "\x1b\x1b]0;x\x1a\x07",
	} {
		f.Add([]byte(s), uint(3))
	}
	f.Fuzz(func(t *testing.T, p []byte, cut uint) {
		hear := func(pieces ...[]byte) (all []witness.Signal) {
			var s witness.Scanner
			for _, piece := range pieces {
				s.Feed(piece, func(sig witness.Signal) { all = append(all, sig) })
			}
			return all
		}
		at := int(cut % uint(len(p)+1))
		whole := hear(p)
		if diff := cmp.Diff(whole, hear(p[:at], p[at:])); diff != "" {
			t.Errorf("cut at %d (-whole +pieces):\n%s", at, diff)
		}
		for _, sig := range whole {
			if !utf8.ValidString(sig.Text) || len(sig.Text) > 4<<10 {
				t.Errorf("a signal of %d bytes, %q", len(sig.Text), sig.Text)
			}
		}
	})
}
