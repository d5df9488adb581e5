package embedded_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet/launch"
)

// never is longer than any test: what comes all the same does not come for the time that passed.
const never = 24 * time.Hour

// TestOutputIsJoinedUntilSomethingIsNews: all that was printed since comes in one piece, once something is news.
func TestOutputIsJoinedUntilSomethingIsNews(t *testing.T) {
	for _, tt := range []struct {
		name, before string
		quiet        []string
		news         string
	}{
		{"a notification", "a", []string{"b", "c"}, "\x1b]9;Approval requested\a"},
		{"another title", "\x1b]0;⠋ api\a", []string{"\x1b]0;⠙ api\a", "x", "\x1b]0;✳ api\a"}, "\x1b]0;[ ! ] Action Required\a"},
		{"another progress", "\x1b]9;4;3;\a", []string{"\x1b]9;4;3;\a", "\a"}, "\x1b]9;4;0;\a"},
		{"in pieces", "a", []string{"b", "\x1b]9;Appro"}, "val requested\a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := specOf(t, "cat")
			// What is read is printed, an octal number a byte.
			spec.Argv = []string{"/bin/sh", "-c", `stty raw -echo; printf up; while read -r line; do printf "$line"; done`}
			term := start(t, spec)
			printed(t, term, "up")
			eventually(t, "its gate has reported", func() bool { return status(t, term).Phase == launch.Running }) // a new status brings output along
			frames := follow(t, term, launch.FollowOptions{Output: true, Every: never})
			isData := func(f launch.Frame) bool { return len(f.Data) > 0 }
			next(t, frames, "what was there", isData)
			have := status(t, term).Output
			prints := func(text string) {
				t.Helper()
				var line strings.Builder
				for _, b := range []byte(text) {
					fmt.Fprintf(&line, `\%03o`, b)
				}
				if err := term.Input(t.Context(), []byte(line.String()+"\n")); err != nil {
					t.Fatal(err)
				}
				have += uint64(len(text))
				eventually(t, "it is printed", func() bool { return status(t, term).Output == have })
			}
			prints("\x1b]9;first\a" + tt.before) // news, so that the next one is not the first
			next(t, frames, "the news before", isData)
			want := ""
			for _, text := range tt.quiet {
				prints(text)
				want += text
			}
			from := have - uint64(len(want))
			prints(tt.news)
			if f := next(t, frames, "the news", isData); string(f.Data) != want+tt.news || f.Offset != from {
				t.Errorf("got %q at %d, want %q at %d in one piece", f.Data, f.Offset, want+tt.news, from)
			}
		})
	}
}

func TestJoinedOutputIsNotLostAtTheEnd(t *testing.T) {
	term := start(t, specOf(t, "print", strconv.Itoa(600<<10)))
	frames := follow(t, term, launch.FollowOptions{Output: true, Every: never})
	eventually(t, "it printed much", func() bool { return status(t, term).Output >= 600<<10 })
	kill(t, status(t, term).Agent)
	end := uint64(0)
	next(t, frames, "the exit", func(f launch.Frame) bool {
		if len(f.Data) > 0 {
			end = f.Offset + uint64(len(f.Data))
		}
		return f.Status != nil && f.Status.Exit != nil
	})
	if want := exited(t, term).Output; end != want {
		t.Errorf("it ends at %d, want %d", end, want)
	}
}

// TestJoinedOutputComesInItsTime: nothing needs news to be delivered.
func TestJoinedOutputComesInItsTime(t *testing.T) {
	spec := specOf(t, "cat")
	spec.Argv = []string{"/bin/sh", "-c", `printf up; while read -r line; do printf "<$line>"; done`}
	term := start(t, spec)
	printed(t, term, "up")
	frames := follow(t, term, launch.FollowOptions{Output: true, Every: 200 * time.Millisecond})
	var seen []byte
	for i := range 3 {
		for j := range 5 {
			if err := term.Input(t.Context(), fmt.Appendf(nil, "%d.%d\n", i, j)); err != nil {
				t.Fatal(err)
			}
		}
		next(t, frames, "the last of them", func(f launch.Frame) bool {
			seen = append(seen, f.Data...)
			return strings.Contains(string(seen), fmt.Sprintf("<%d.4>", i))
		})
	}
}
