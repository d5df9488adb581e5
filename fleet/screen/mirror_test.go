package screen_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/screen"
)

// look waits until the mirror shows text, and gives the screen.
func look(t *testing.T, m *screen.Mirror, text string) fleet.Screen {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var shot fleet.Screen
	for {
		var err error
		if shot, err = m.Wait(ctx, shot.Rev); err != nil {
			t.Fatalf("the mirror never showed %q: %v; last:\n%s", text, err, strings.Join(m.Snapshot().Lines, "\n"))
		}
		if strings.Contains(strings.Join(shot.Lines, "\n"), text) {
			return shot
		}
	}
}

// watch keeps a reader at the mirror until the test ends.
func watch(t *testing.T, m *screen.Mirror) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		for rev := uint64(0); ctx.Err() == nil; {
			if shot, err := m.Wait(ctx, rev); err == nil {
				rev = shot.Rev
			}
		}
	}()
}

func output(t *testing.T, held launch.Terminal) uint64 {
	t.Helper()
	s, err := held.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.Output
}

// lookPath finds a program that not every machine has.
func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("SKIPPED, not proved here: %s is not installed", name)
	}
	return path
}

// A holder keeps the newest 256 KB only. What is drawn from these and a repaint must be the screen that somebody sees
// who has looked since the beginning.
func TestAReplayedScreenEqualsTheTrueOne(t *testing.T) {
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
	const cut = 600 << 10 // so much is printed, more than twice the ring
	text := filepath.Join(t.TempDir(), "text.go")
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, "func f%d(日本 string) error { return fmt.Errorf(\"%%d: %%w\", %d, err) } // wide 語 and 🚀 %s\n", i, i, strings.Repeat("x", i%40))
	}
	if err := os.WriteFile(text, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		argv func(t *testing.T) []string
		seen string   // on the screen when it is ready
		keys []string // make it print, over and over
		tmux bool     // compare with tmux as well
	}{
		{"vim", func(t *testing.T) []string {
			return []string{lookPath(t, "vim"), "-u", "NONE", "-i", "NONE", "-n", "--cmd", "set nocp nu mouse=a ruler", "-c", "syntax on", "-c", "split", "-c", "vsplit", text}
		}, "func f0", []string{"\x06", "\x06", "\x06", "\x02", "\x17w"}, true},
		{"htop", func(t *testing.T) []string { return []string{lookPath(t, "htop"), "-d", "5"} }, "Load average", []string{"\x0c", "?", " ", "t"}, false},
		{"codex-like", func(*testing.T) []string { return []string{exe(), "agent", "codex"} }, "Ask me", []string{"+"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			held := start(t, tt.argv(t)...)
			truth := screen.NewMirror(t.Context(), held)
			watch(t, truth)
			look(t, truth, tt.seen)
			for i := 0; output(t, held) < cut; i++ {
				before := output(t, held)
				if err := held.Input(t.Context(), []byte(tt.keys[i%len(tt.keys)])); err != nil {
					t.Fatal(err)
				}
				eventually(t, "it prints", func() bool { return output(t, held) > before })
				// The truth is only true if it keeps up and never skips.
				if _, _, err := truth.CursorAt(t.Context(), before); err != nil {
					t.Fatal(err)
				}
			}
			late := screen.NewMirror(t.Context(), held)
			watch(t, late)
			look(t, late, "")
			if truth.Modes() != late.Modes() {
				t.Errorf("modes: replayed %+v, true %+v", late.Modes(), truth.Modes())
			}
			var diff string
			defer func() {
				if t.Failed() {
					t.Logf("replayed (+), true (-):\n%s", diff)
				}
			}()
			eventually(t, "both screens are equal", func() bool {
				a, b := truth.Snapshot(), late.Snapshot()
				a.Rev, b.Rev = 0, 0
				diff = cmp.Diff(a, b)
				return diff == ""
			})
			if tt.tmux {
				calm(t, held)
				compareWithTmux(t, held, late)
			}
		})
	}
}

// calm waits until an agent that answers each size change with output has had the time to.
func calm(t *testing.T, held launch.Terminal) {
	t.Helper()
	last, since := output(t, held), time.Now()
	eventually(t, "it has drawn", func() bool {
		if now := output(t, held); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > time.Second
	})
}

// compareWithTmux has tmux draw the log from the last full repaint on, and compares.
func compareWithTmux(t *testing.T, held launch.Terminal, late *screen.Mirror) {
	t.Helper()
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Log("SKIPPED, not proved here: tmux is not installed")
		return
	}
	log, err := held.Log(0)
	if err != nil {
		t.Fatal(err)
	}
	// What came before was drawn for other sizes.
	if i := bytes.LastIndex(log, []byte("\x1b[2J")); i > 0 {
		log = log[i:]
	}
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, log, 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "tmux")
	run := func(args ...string) string {
		cmd := exec.Command(tmux, append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("new-session", "-d", "-x", "80", "-y", "24", "stty raw -echo; cat "+file+"; exec sleep 1000")
	t.Cleanup(func() { exec.Command(tmux, "-S", socket, "kill-server").Run() })
	var diff string
	defer func() {
		if t.Failed() {
			t.Logf("replayed (+), tmux (-):\n%s", diff)
		}
	}()
	eventually(t, "tmux shows the same", func() bool {
		want := strings.Split(run("capture-pane", "-p", "-N"), "\n")[:24]
		for i := range want {
			want[i] = strings.TrimRight(want[i], " ")
		}
		diff = cmp.Diff(want, late.Snapshot().Lines)
		return diff == ""
	})
}

func TestAMirrorShowsOutputAndWakesItsReaders(t *testing.T) {
	held := start(t, "/bin/cat")
	m := screen.NewMirror(t.Context(), held)
	first, err := m.Wait(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Input(t.Context(), []byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	shot := look(t, m, "hello")
	if shot.Rev <= first.Rev {
		t.Errorf("rev went from %d to %d", first.Rev, shot.Rev)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	eventually(t, "nothing more comes", func() bool {
		before := m.Snapshot().Rev
		_, err := m.Wait(ctx, before)
		return errors.Is(err, context.DeadlineExceeded)
	})
}

func TestAMirrorComesBackAfterNobodyLooked(t *testing.T) {
	tests := []struct {
		name string
		drop time.Duration
		away func(*screen.Mirror) bool
	}{
		{"soon", time.Hour, func(m *screen.Mirror) bool { return !m.Running() }},
		{"late", 0, (*screen.Mirror).Dropped},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			held := start(t, "/bin/cat")
			m := screen.NewMirror(t.Context(), held)
			m.SetIdle(time.Millisecond, tt.drop)
			look(t, m, "")
			eventually(t, "the mirror rests", func() bool { return tt.away(m) })
			if err := held.Input(t.Context(), []byte("meanwhile\n")); err != nil {
				t.Fatal(err)
			}
			look(t, m, "meanwhile\nmeanwhile")
		})
	}
}

func TestAFloodIsShownAndSkipped(t *testing.T) {
	held := agent(t, "flood")
	m := screen.NewMirror(t.Context(), held)
	shot := look(t, m, "all work")
	for range 3 {
		next, err := m.Wait(t.Context(), shot.Rev)
		if err != nil {
			t.Fatal(err)
		}
		shot = next
	}
	// The mirror is not further behind than the ring and what is on its way.
	at := output(t, held)
	if _, _, err := m.CursorAt(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if err := held.Stop(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestWhatWasSkippedIsRepainted(t *testing.T) {
	held := agent(t, "burst", "2000000")
	eventually(t, "all is printed", func() bool {
		b, err := held.Log(200)
		return err == nil && bytes.Contains(b, []byte("1999950"))
	})
	m := screen.NewMirror(t.Context(), held)
	m.SetPatience(time.Minute) // the agent does answer; how soon is not the question
	shot := look(t, m, "")
	if want := "this is the page of 80x24"; shot.Lines[0] != want || shot.Lines[4] != "at line five" {
		t.Errorf("the first screen that is shown is %q, want it repainted: %q", shot.Lines, want)
	}
	if !m.Modes().AltScreen || !m.Modes().BracketedPaste {
		t.Errorf("modes %+v: those set before the ring are lost", m.Modes())
	}
	if s, _ := held.Status(t.Context()); s.Cols != 80 || s.Rows != 24 {
		t.Errorf("the repaint left a size of %dx%d", s.Cols, s.Rows)
	}
}

func TestCursorAtIsTheCursorAfterThatOutput(t *testing.T) {
	held := agent(t, "idle", "\x1b[5;10Habc")
	m := screen.NewMirror(t.Context(), held)
	x, y, err := m.CursorAt(t.Context(), 10)
	if err != nil || x != 12 || y != 4 {
		t.Errorf("CursorAt = %d, %d, %v, want 12, 4", x, y, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := m.CursorAt(ctx, 1000); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("CursorAt of output that did not come = %v", err)
	}
}

func TestTheLastScreenStaysAfterTheEnd(t *testing.T) {
	held := start(t, "/bin/sh", "-c", "read -r go; echo last words; exit 3")
	m := screen.NewMirror(t.Context(), held)
	look(t, m, "")
	if err := held.Input(t.Context(), []byte("go\n")); err != nil {
		t.Fatal(err)
	}
	look(t, m, "last words")
	if err := held.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := m.Snapshot().Lines[1]; got != "last words" {
		t.Errorf("after the end it shows %q", got)
	}
	look(t, screen.NewMirror(t.Context(), held), "last words") // one that is made after the end
}

// torn is a terminal whose output breaks off inside of a sequence and goes on elsewhere.
type torn struct{ launch.Terminal }

func (torn) Status(context.Context) (launch.Status, error) {
	return launch.Status{Phase: launch.Running, Cols: 80, Rows: 24, Output: 10}, nil
}

func (torn) Resize(context.Context, int, int) error { return nil }

func (torn) Follow(ctx context.Context, _ launch.FollowOptions) (<-chan launch.Frame, error) {
	frames := make(chan launch.Frame, 2)
	frames <- launch.Frame{Data: []byte("\x1b]0;broken off")}
	frames <- launch.Frame{Offset: 1000, Data: []byte("its end\nhello")}
	return frames, nil
}

func TestASequenceThatBreaksOffHidesNothing(t *testing.T) {
	shot := look(t, screen.NewMirror(t.Context(), torn{}), "hello")
	if text := strings.Join(shot.Lines, ""); strings.Contains(text, "its end") {
		t.Errorf("the screen shows %q", text)
	}
}

// gone is a terminal whose holder was killed.
type gone struct{ launch.Terminal }

func (gone) Status(context.Context) (launch.Status, error) { return launch.Status{}, launch.ErrGone }

func TestAReaderIsToldThatThereIsNoTerminal(t *testing.T) {
	m := screen.NewMirror(t.Context(), gone{})
	if _, err := m.Wait(t.Context(), 0); !errors.Is(err, launch.ErrGone) {
		t.Errorf("Wait = %v, want %v", err, launch.ErrGone)
	}
}

func BenchmarkParse(b *testing.B) {
	s := screen.New(120, 40)
	defer s.Close()
	block := bytes.Repeat([]byte("\x1b[32m2026-11-30\x1b[m \x1b[1mINFO\x1b[m all work and no play makes jack a dull boy\r\n"), 400)
	b.SetBytes(int64(len(block)))
	for b.Loop() {
		s.Write(block)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s := screen.New(120, 40)
	defer s.Close()
	for i := range 40 {
		fmt.Fprintf(s, "\x1b[%dH\x1b[3%dm%s\x1b[m", i+1, i%8, strings.Repeat("word ", 24))
	}
	for b.Loop() {
		s.Snapshot()
	}
}
