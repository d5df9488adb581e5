package witness_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet/witness"
)

func TestSignalsAreFound(t *testing.T) {
	for _, tt := range []struct {
		name, output string
		want         []witness.Signal
	}{
		{"a title", "a\x1b]0;⠂ Claude\ab", []witness.Signal{{witness.SetTitle, "⠂ Claude"}}},
		{"one that ends otherwise", "\x1b]2;x\x1b\\", []witness.Signal{{witness.SetTitle, "x"}}},
		{"an icon's name is none", "\x1b]1;x\a", nil},
		{"progress", "\x1b]9;4;1;50\a\x1b]9;4;3\a\x1b]9;4;0;0\a", []witness.Signal{{witness.Busy, "working"}, {witness.Busy, "working"}, {Kind: witness.NotBusy}}},
		{"another terminal's command", "\x1b]9;9;/src\a", nil},
		{"notifications", "\x1b]9;All done.\a\x1b]777;notify;Codex;yes?\a\x1b]99;i=1;hello\x1b\\\x1b]99;i=1:p=?;\x1b\\",
			[]witness.Signal{{witness.Notice, "All done."}, {witness.Notice, "Codex: yes?"}, {witness.Notice, "hello"}}},
		{"a state of one's own", "\x1b]7501;state=blocked:app=codex:kind=permission\x1b\\\x1b]7501;state=clear\x1b\\",
			[]witness.Signal{{witness.Busy, "blocked"}, {Kind: witness.Cleared}}},
		{"a bell", "ding\a", []witness.Signal{{Kind: witness.Bell}}},
		{"a bell inside another string is none", "\x1bPtmux;\a\x1b\\\x1b[31m", nil},
		{"a title that was broken off", "\x1b]0;half\x18\x1b]0;whole\a", []witness.Signal{{witness.SetTitle, "whole"}}},
		{"a sequence in the middle of a title", "\x1b]0;half\x1b[31m\x1b]0;whole\a", []witness.Signal{{witness.SetTitle, "whole"}}},
		{"a title without an end is bounded", "\x1b]0;" + strings.Repeat("x", 1<<20) + "\a", []witness.Signal{{witness.SetTitle, strings.Repeat("x", 2<<10-2)}}},
		{"bytes that are no text", "\x1b]0;a\xff\xfeb\a", []witness.Signal{{witness.SetTitle, "ab"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{1, 3, len(tt.output)} { // wherever the pieces end
				var s witness.Scanner
				var got []witness.Signal
				for p := []byte(tt.output); len(p) > 0; p = p[min(size, len(p)):] {
					s.Feed(p[:min(size, len(p))], func(sig witness.Signal) { got = append(got, sig) })
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Fatalf("in pieces of %d (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	p := []byte(strings.Repeat("\x1b[32mok\x1b[0m  package/of/some/module  0.123s  some more text of a log that scrolls by\r\n", 400))
	var s witness.Scanner
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		s.Feed(p, func(witness.Signal) {})
	}
}
