package screen

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzTitlesAreTakenOutInAnyPieces is about the part of the stream that the emulator must not see, as it would misread it.
func FuzzTitlesAreTakenOutInAnyPieces(f *testing.F) {
	for _, s := range []string{
		"\x1b]0;a title\x07text", "\x1b]2;\u201cx\u201d\x1b\\", "\x1b]52;c;ZXZpbA==\x07", "\x1b]8;;http://x\x1b\\link", "\x1b\x1b]0;x\x18\x1b]1;y\x1a",
		"\x1b]0;" + strings.Repeat("x", 5000) + "\x07", "\x1b]\x1b]0;z\x1b\\", "\x9d0;c1\x9c", "\x1bP1$q\x1b\\", "\x1b]0;\xe2\x80\x07",
	} {
		f.Add([]byte(s), uint(4))
	}
	f.Fuzz(func(t *testing.T, p []byte, cut uint) {
		run := func(pieces ...[]byte) (out []byte, all []string) {
			var titles titles
			for _, piece := range pieces {
				out = append(out, titles.filter(piece, func(s string) { all = append(all, s) })...)
				if len(titles.text) > maxCommand {
					t.Errorf("%d bytes are kept", len(titles.text))
				}
			}
			return out, all
		}
		at := int(cut % uint(len(p)+1))
		out, all := run(p)
		out2, all2 := run(p[:at], p[at:])
		if !bytes.Equal(out, out2) || strings.Join(all, "\x00") != strings.Join(all2, "\x00") {
			t.Errorf("whole: %q, %q; cut at %d: %q, %q", out, all, at, out2, all2)
		}
		if _, again := run(out); len(again) > 0 {
			t.Errorf("what goes on to the emulator sets the titles %q: %q", again, out)
		}
	})
}
