package plain_test

import (
	"testing"
	"unicode/utf8"

	"fleetdeck/fleet/plain"
)

func FuzzTextIsPrintableAndStaysAsItIs(f *testing.F) {
	for _, s := range []string{"a\tb", "\x1b]52;c;eA==\x07", "a\u202eb\u200b", "e\u0301\u0301\u0301\u0301\u0301", "\xff\xc2", "\u009b2J", "\U000E0041"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		once := plain.Text(in)
		if !utf8.ValidString(once) {
			t.Errorf("Text(%q) = %q: not UTF-8", in, once)
		}
		for _, r := range once {
			if !plain.Printable(r) {
				t.Errorf("Text(%q) = %q holds %U", in, once, r)
			}
		}
		if again := plain.Text(once); again != once {
			t.Errorf("Text(%q) = %q, and of that %q", in, once, again)
		}
		clean := plain.Clean(in, -1)
		if again := plain.Clean(clean, -1); again != clean {
			t.Errorf("Clean(%q) = %q, and of that %q", in, clean, again)
		}
	})
}
