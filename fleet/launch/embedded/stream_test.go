package embedded_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/process"
)

func follow(t *testing.T, term launch.Terminal, opts launch.FollowOptions) <-chan launch.Frame {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	frames, err := term.Follow(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// next takes frames until one satisfies want.
func next(t *testing.T, frames <-chan launch.Frame, what string, want func(launch.Frame) bool) launch.Frame {
	t.Helper()
	timeout := time.After(60 * time.Second)
	for {
		select {
		case f, ok := <-frames:
			if !ok {
				t.Fatalf("the stream ended before: %s", what)
			}
			if want(f) {
				return f
			}
		case <-timeout:
			t.Fatalf("gave up waiting: %s", what)
		}
	}
}

func TestQuestionsAreAnsweredThoughNobodyLooks(t *testing.T) {
	tests := []struct {
		name, ask, want string
	}{
		{"device attributes", "\x1b[c", "\x1b[?62;22c"},
		{"in pieces", "\x1b|[|c", "\x1b[?62;22c"},
		{"cursor position", "\x1b[6n", "\x1b[1;1R"},
		{"cursor position, the other form", "\x1b[?6n", "\x1b[?1;1;1R"},
		{"status", "\x1b[5n", "\x1b[0n"},
		{"size in characters", "\x1b[18t", "\x1b[8;24;80t"},
		{"mode", "\x1b[?2026$p", "\x1b[?2026;2$y"},
		{"unknown mode", "\x1b[?1337$p", "\x1b[?1337;0$y"},
		{"background", "\x1b]11;?\x1b\\", "\x1b]11;rgb:1414/1414/1414\x1b\\"},
		{"several, in their order", "\x1b[6n\x1b]10;?\x07\x1b[?u\x1b[c", "\x1b[1;1R\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\\x1b[?62;22c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			term := start(t, specOf(t, "ask", tt.ask, strconv.Itoa(len(tt.want))))
			out := printed(t, term, "up")
			if want := fmt.Sprintf("got %q", tt.want); !strings.Contains(out, want) {
				t.Errorf("the agent printed %q, want %s", out, want)
			}
			if !strings.Contains(out, "<>") {
				t.Errorf("the stream is %q: the question was left in it", out)
			}
		})
	}
}

func TestAFollowerAnswersForTheCursorOnce(t *testing.T) {
	const want = "\x1b[7;9R\x1b[?62;22c"
	spec := specOf(t, "cat")
	// The agent asks when told to, so that both followers are there.
	spec.Argv = []string{"/bin/sh", "-c", `stty raw -echo; echo ready; read -r go; printf 'ab\033[6n\033[c'; dd bs=1 count=` + strconv.Itoa(len(want)) + ` 2>/dev/null | od -An -c; sleep 1000`}
	term := start(t, spec)
	one := follow(t, term, launch.FollowOptions{Output: true, Cursor: true})
	two := follow(t, term, launch.FollowOptions{Cursor: true})
	printed(t, term, "ready")
	isStatus := func(f launch.Frame) bool { return f.Status != nil }
	next(t, two, "the second follower is served", isStatus)
	if err := term.Input(t.Context(), []byte("go\n")); err != nil {
		t.Fatal(err)
	}
	isQuery := func(f launch.Frame) bool { return f.Query }
	var seen []byte
	q := next(t, one, "the first follower is asked", func(f launch.Frame) bool {
		seen = append(seen, f.Data...)
		return f.Query
	})
	if q.Offset != uint64(len(seen)) || !bytes.HasSuffix(seen, []byte("ab")) {
		t.Errorf("asked at %d after %q", q.Offset, seen)
	}
	next(t, two, "the second follower is asked", isQuery)
	for _, answer := range []string{"\x1b[7;9R", "\x1b[2;2R"} {
		if err := term.Input(t.Context(), []byte(answer)); err != nil {
			t.Fatal(err)
		}
	}
	if err := term.Input(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	out := printed(t, term, "2   c")
	if got := strings.Join(strings.Fields(out[strings.Index(out, "033"):]), ""); !strings.HasPrefix(got, `033[7;9R033[?62;22c`) {
		t.Errorf("the agent got %s, want the first answer only, then what was asked later", got)
	}
}

func TestASilentFollowerDoesNotKeepTheAgentWaiting(t *testing.T) {
	t.Parallel()
	spec := specOf(t, "ask", "\x1b[6n", "6")
	spec.Argv = append([]string{"/bin/sh", "-c", `read -r go; exec "$@"`, "sh"}, spec.Argv...)
	term := start(t, spec)
	frames := follow(t, term, launch.FollowOptions{Cursor: true})
	next(t, frames, "it is followed", func(f launch.Frame) bool { return f.Status != nil })
	if err := term.Input(t.Context(), []byte("go\n")); err != nil {
		t.Fatal(err)
	}
	next(t, frames, "the follower is asked", func(f launch.Frame) bool { return f.Query })
	printed(t, term, fmt.Sprintf("got %q", "\x1b[1;1R"))
	// Its answer comes too late, and must not be typed.
	if err := term.Input(t.Context(), []byte("\x1b[5;5R")); err != nil {
		t.Fatal(err)
	}
	if err := term.Input(t.Context(), []byte("end\n")); err != nil {
		t.Fatal(err)
	}
	if out := printed(t, term, "end"); strings.Contains(out, "5;5R") {
		t.Errorf("a late answer was typed: %q", out)
	}
}

func TestALoneEscapeIsNotLost(t *testing.T) {
	spec := specOf(t, "idle")
	spec.Argv = []string{"/bin/sh", "-c", `printf 'a\033'; exec sleep 1000`}
	term := start(t, spec)
	if out := printed(t, term, "a\x1b"); out != "a\x1b" {
		t.Errorf("output = %q", out)
	}
}

func TestFollowersGetTheSameStream(t *testing.T) {
	const size = 100_000
	term := start(t, specOf(t, "print", strconv.Itoa(size)))
	printed(t, term, "up")
	want, err := term.Log(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []uint64{0, 12345} {
		var got []byte
		next(t, follow(t, term, launch.FollowOptions{Output: true, From: from}), "all of the output", func(f launch.Frame) bool {
			if f.Data != nil && f.Offset != from+uint64(len(got)) {
				t.Errorf("data at %d, want it at %d", f.Offset, from+uint64(len(got)))
			}
			got = append(got, f.Data...)
			return from+uint64(len(got)) >= uint64(len(want))
		})
		if !bytes.Equal(got, want[from:]) {
			t.Errorf("from %d: got %d bytes that differ from the %d of the log", from, len(got), len(want[from:]))
		}
	}
}

func TestTheLastBytesComeBeforeTheExit(t *testing.T) {
	t.Parallel()
	spec := specOf(t, "exit", "4")
	spec.Argv = append([]string{"/bin/sh", "-c", `read -r go; exec "$@"`, "sh"}, spec.Argv...)
	term := start(t, spec)
	collect := func(frames <-chan launch.Frame) (text string, exit *launch.Exit) {
		for f := range frames {
			text += string(f.Data)
			if f.Status != nil {
				exit = f.Status.Exit
			}
		}
		return text, exit
	}
	frames := follow(t, term, launch.FollowOptions{Output: true})
	if err := term.Input(t.Context(), []byte("go\n")); err != nil {
		t.Fatal(err)
	}
	live, exit := collect(frames)
	if exit == nil || exit.Code != 4 || !strings.Contains(live, "last words") {
		t.Errorf("followed %q, exit %+v", live, exit)
	}
	s := exited(t, term)
	eventually(t, "the holder ends", func() bool { return !process.Alive(s.Holder) })
	later, exit := collect(follow(t, term, launch.FollowOptions{Output: true}))
	if exit == nil || exit.Code != 4 || later != live {
		t.Errorf("followed after the end: %q, exit %+v, want %q", later, exit, live)
	}
}

func TestTheLogIsBounded(t *testing.T) {
	spec := specOf(t, "print", "100000")
	spec.LogLimit = 20_000
	term := start(t, spec)
	printed(t, term, "up")
	total := int64(0)
	for _, name := range []string{"log", "log.1"} {
		info, err := os.Stat(filepath.Join(spec.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > spec.LogLimit {
		t.Errorf("the log takes %d bytes, want at most %d", total, spec.LogLimit)
	}
	got, err := term.Log(0)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(got)) != total || !strings.HasSuffix(string(got), "000099980\r\n000099990\r\nup\r\n") {
		t.Errorf("Log(0) = %d bytes ending in %q, want the newest %d", len(got), got[max(0, len(got)-30):], total)
	}
	if tail, _ := term.Log(15); string(tail) != string(got[len(got)-15:]) {
		t.Errorf("Log(15) = %q", tail)
	}
}

func TestAFloodNeitherGrowsTheHolderNorBlocksStop(t *testing.T) {
	t.Parallel()
	term := start(t, specOf(t, "flood"))
	s := running(t, term)
	stuck := follow(t, term, launch.FollowOptions{Output: true}) // nobody reads it
	eventually(t, "far more was printed than is kept", func() bool { return status(t, term).Output > 100*256<<10 })
	if kb := residentKB(s.Holder); kb > 64<<10 {
		t.Errorf("the holder takes %d kB", kb)
	}
	// Another follower is served all the same, from what the ring still holds.
	last := status(t, term).Output
	next(t, follow(t, term, launch.FollowOptions{Output: true}), "the newest output", func(f launch.Frame) bool { return f.Offset > last })
	if err := term.Stop(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	// The stuck one finds itself skipped ahead.
	at, jumped := uint64(0), false
	for f := range stuck {
		if f.Data != nil {
			jumped = jumped || f.Offset > at
			at = f.Offset + uint64(len(f.Data))
		}
	}
	if !jumped {
		t.Errorf("the stuck follower got all %d bytes", at)
	}
}

// residentKB is the resident memory of p, or 0 where the system does not tell.
func residentKB(p fleet.Process) int { return procKB(p, "status", "VmRSS:") }

func procKB(p fleet.Process, file, key string) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.Pid, file))
	_, rest, _ := strings.Cut(string(b), key)
	var kb int
	fmt.Sscan(rest, &kb)
	return kb
}

func TestAnAgentThatDoesNotReadBlocksNobody(t *testing.T) {
	term := start(t, specOf(t, "deaf"))
	printed(t, term, "up")
	block := bytes.Repeat([]byte("x"), 100_000)
	var err error
	for range 100 {
		if err = term.Input(t.Context(), block); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "does not read") {
		t.Errorf("10 MB were typed: %v", err)
	}
	if err := term.Stop(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestTheAgentIsToldOfANewSize(t *testing.T) {
	term := start(t, specOf(t, "size"))
	printed(t, term, "size 80x24")
	if err := term.Resize(t.Context(), 100, 30); err != nil {
		t.Fatal(err)
	}
	printed(t, term, "size 100x30")
	if s := status(t, term); s.Cols != 100 || s.Rows != 30 {
		t.Errorf("status says %dx%d", s.Cols, s.Rows)
	}
	if err := term.Resize(t.Context(), 0, 70000); err == nil {
		t.Error("a size of 0x70000 was accepted")
	}
}

// Whoever draws what comes needs the size that it was drawn for.
func TestANewSizeIsToldBeforeWhatWasDrawnForIt(t *testing.T) {
	term := start(t, specOf(t, "size"))
	printed(t, term, "size 80x24")
	frames := follow(t, term, launch.FollowOptions{Output: true})
	for i := range 100 {
		cols, rows := 81+i, 25+i%2
		if err := term.Resize(t.Context(), cols, rows); err != nil {
			t.Fatal(err)
		}
		var told launch.Status
		text := ""
		next(t, frames, "it is drawn", func(f launch.Frame) bool {
			if f.Status != nil {
				told = *f.Status
			}
			text += string(f.Data)
			return strings.Contains(text, fmt.Sprintf("size %dx%d\r\n", cols, rows))
		})
		if told.Cols != cols || told.Rows != rows {
			t.Fatalf("%dx%d was drawn when the size was told to be %dx%d", cols, rows, told.Cols, told.Rows)
		}
	}
}

func TestFilesAreTheUsersAlone(t *testing.T) {
	spec := specOf(t, "idle")
	start(t, spec)
	for name, want := range map[string]os.FileMode{".": 0o700, "spec.json": 0o600, "terminal.json": 0o600, "log": 0o600, "holder.sock": 0o600} {
		info, err := os.Stat(filepath.Join(spec.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s = %04o, want %04o", name, got, want)
		}
	}
}

func TestAHolderSurvivesNonsense(t *testing.T) {
	spec := specOf(t, "idle")
	term := start(t, spec)
	for _, nonsense := range []string{"", "GET / HTTP/1.1\r\n\r\n", "r\xff\xff\xff\xff", "r\x00\x00\x00\x02{]", "x\x00\x00\x00\x00", "r\x00\x00\x00\x0c{\"do\":\"fly\"}"} {
		conn, err := net.Dial("unix", filepath.Join(spec.Dir, "holder.sock"))
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(nonsense))
		conn.Close()
	}
	running(t, term)
}

func TestALongPathGetsASocketElsewhere(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	spec := specOf(t, "idle")
	spec.Dir = filepath.Join(spec.Dir, strings.Repeat("long/", 30))
	term := start(t, spec)
	running(t, term)
	t.Setenv("XDG_RUNTIME_DIR", "/elsewhere") // as for a daemon that is started from another session
	if _, err := embedded.New(exe()).Find(t.Context(), spec.ID, spec.Dir); err != nil {
		t.Error(err)
	}
	if err := term.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkStart(b *testing.B) {
	l := embedded.New(exe())
	var rss, pss, private int
	for i := range b.N {
		b.StopTimer()
		dir := b.TempDir()
		id := fmt.Sprintf("01BENCH%d", i)
		spec := launch.Spec{
			ID: id, Dir: filepath.Join(dir, "member"), Tree: fleet.Tree{Path: dir}, Argv: []string{"/bin/sleep", "1000"},
			Env: []string{"FLEETDECK_MEMBER=" + id}, Cols: 120, Rows: 40,
		}
		b.StartTimer()
		term, err := l.Start(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		frames, err := term.Follow(b.Context(), launch.FollowOptions{})
		if err != nil {
			b.Fatal(err)
		}
		var s launch.Status
		for s.Phase != launch.Running {
			if f := <-frames; f.Status != nil {
				s = *f.Status
			}
		}
		b.StopTimer()
		rss, pss = rss+residentKB(s.Holder), pss+procKB(s.Holder, "smaps_rollup", "Pss:")
		private += procKB(s.Holder, "smaps_rollup", "Anonymous:")
		if err := term.Stop(context.Background(), 0); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(rss)/float64(b.N), "kB-RSS")
	b.ReportMetric(float64(pss)/float64(b.N), "kB-PSS")
	b.ReportMetric(float64(private)/float64(b.N), "kB-private")
}
