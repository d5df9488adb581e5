package embedded

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// sift runs s through a filter in chunks of n bytes and gives what passed and what was answered.
func sift(s string, n int) (passed, answered string) {
	var f filter
	var out, answers strings.Builder
	pass := func(p []byte) { out.Write(p) }
	ask := func(q query) {
		if q.cursor {
			fmt.Fprintf(&answers, "(cursor %v)", q.private)
		}
		answers.WriteString(q.reply)
	}
	for len(s) > 0 {
		k := min(n, len(s))
		f.scan([]byte(s[:k]), winsize{80, 24}, sink{pass, ask, func(string, int) {}})
		s = s[k:]
	}
	f.flush(pass)
	return out.String(), answers.String()
}

func TestQuestionsAreTakenOutHoweverTheyArrive(t *testing.T) {
	tests := []struct {
		name, in, passed, answered string
	}{
		{"text", "hello\r\n", "hello\r\n", ""},
		{"colours and moves stay", "\x1b[31;1mred\x1b[m\x1b[2J\x1b[5;6H", "\x1b[31;1mred\x1b[m\x1b[2J\x1b[5;6H", ""},
		{"modes stay", "\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b=", "\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b=", ""},
		{"title stays", "\x1b]0;name\x07\x1b]2;other\x1b\\", "\x1b]0;name\x07\x1b]2;other\x1b\\", ""},
		{"link stays", "\x1b]8;;http://a\x1b\\x\x1b]8;;\x1b\\", "\x1b]8;;http://a\x1b\\x\x1b]8;;\x1b\\", ""},
		{"set colour stays", "\x1b]11;#102030\x07\x1b]4;1;rgb:1/2/3\x07\x1b]104\x07", "\x1b]11;#102030\x07\x1b]4;1;rgb:1/2/3\x07\x1b]104\x07", ""},
		{"cursor shape and soft reset stay", "\x1b[2 q\x1b[!p", "\x1b[2 q\x1b[!p", ""},
		{"restore cursor and kitty push stay", "\x1b[u\x1b[>1u\x1b[<u", "\x1b[u\x1b[>1u\x1b[<u", ""},
		{"scroll stays", "\x1b[3S\x1b[2t", "\x1b[3S\x1b[2t", ""},
		{"sixel stays", "\x1bPq#0;2;0\x1b\\", "\x1bPq#0;2;0\x1b\\", ""},
		{"escapes in a row", "a\x1b\x1b\x1b[cb", "a\x1b\x1bb", deviceAttributes},
		{"DA1, DA2, DA3", "a\x1b[c\x1b[>c\x1b[=cb", "ab", deviceAttributes + "\x1b[>1;10;0c" + "\x1bP!|00000000\x1b\\"},
		{"version", "\x1b[>q\x1b[>0q", "", strings.Repeat("\x1bP>|fleetdeck\x1b\\", 2)},
		{"cursor", "x\x1b[6ny\x1b[?6nz", "xyz", "(cursor false)(cursor true)"},
		{"colours", "\x1b]4;1;?\x07\x1b]10;?;?\x1b\\", "", "\x1b]4;1;rgb:cdcd/0000/0000\x1b\\\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\\x1b]11;rgb:1414/1414/1414\x1b\\"},
		{"capability", "\x1bP+q544e\x1b\\\x1bP$qm\x1b\\", "", "\x1bP0+r\x1b\\\x1bP0$r\x1b\\"},
		{"kitty keyboard", "\x1b[?u", "", ""},
		{"pixels", "\x1b[14t\x1b[16t", "", "\x1b[4;480;800t\x1b[6;20;10t"},
		{"title is not read back", "\x1b[21t", "", ""},
		{"endless control sequence", "\x1b[" + strings.Repeat("1;", 100) + "m", "\x1b[" + strings.Repeat("1;", 100) + "m", ""},
		{"endless control string", "\x1b]4;" + strings.Repeat("1;", 2000), "\x1b]4;" + strings.Repeat("1;", 2000), ""},
		{"unfinished", "a\x1b[", "a\x1b[", ""},
		{"broken off by another", "\x1b[1\x1b[c", "\x1b[1", deviceAttributes},
		{"broken off string", "\x1b]11;\x1b[c", "\x1b]11;", deviceAttributes},
		{"wide text", "日本\x1b[c語", "日本語", deviceAttributes},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for n := 1; n <= len(tt.in); n++ {
				passed, answered := sift(tt.in, n)
				if passed != tt.passed || answered != tt.answered {
					t.Fatalf("in pieces of %d: passed %q, answered %q, want %q, %q", n, passed, answered, tt.passed, tt.answered)
				}
			}
		})
	}
}

func FuzzPiecesMakeNoDifference(f *testing.F) {
	for _, s := range []string{"\x1b[c", "a\x1b]11;?\x07b", "\x1bP+q00\x1b\\", "\x1b[?2026$p\x1b[1;2", "\x1b\x1b]\x1b["} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, n int) {
		n = 1 + max(0, n%16)
		wholeOut, wholeAnswers := sift(string(in), max(1, len(in)))
		out, answers := sift(string(in), n)
		if out != wholeOut || answers != wholeAnswers {
			t.Errorf("in pieces of %d: %q, %q; at once: %q, %q", n, out, answers, wholeOut, wholeAnswers)
		}
		if !bytes.Contains(in, []byte{0x1b}) && out != string(in) {
			t.Errorf("plain text %q became %q", in, out)
		}
	})
}
