package attach_test

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/term"

	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/screen"
)

func TestTheTerminalIsGivenBackOnEveryWayOut(t *testing.T) {
	// All that an agent can do to a terminal.
	const greeting = "ready\x1b[?1049h\x1b[?25l\x1b[?1h\x1b=\x1b[?2004h\x1b[?1003h\x1b[?1006h\x1b[?1004h\x1b[31;7mstyled\x1b[5;10r"
	signal := func(sig syscall.Signal) func(*testing.T, *operator) {
		return func(t *testing.T, o *operator) {
			if err := o.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name string
		end  func(t *testing.T, o *operator)
		want string // printed after the terminal was given back
	}{
		{"detach", func(t *testing.T, o *operator) { o.types(t, "\x1d") }, "[detached <nil>]"},
		{"agent's exit", func(t *testing.T, o *operator) { o.types(t, "exit") }, "[exited <nil>]"},
		{"holder killed", func(t *testing.T, o *operator) {
			s, err := o.held.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := process.Signal(s.Holder, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}, "[gone <nil>]"},
		{"panic", func(t *testing.T, o *operator) { o.types(t, "boom") }, "panic: boom"},
		{"SIGTERM", signal(syscall.SIGTERM), "[hangup ended by signal: terminated]"},
		{"SIGHUP", signal(syscall.SIGHUP), "[hangup ended by signal: hangup]"},
		{"SIGINT", signal(syscall.SIGINT), "[hangup ended by signal: interrupt]"},
		{"SIGQUIT", signal(syscall.SIGQUIT), "[hangup ended by signal: quit]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := sit(t, greeting)
			o.sees(t, "styled")
			eventually(t, "the modes are passed on", func() bool {
				m := o.screen.Modes()
				return m.AltScreen && m.AppCursorKeys && m.AppKeypad && m.BracketedPaste && m.MouseAny && m.MouseSGR && m.FocusEvents && m.CursorHidden
			})
			tt.end(t, o)
			o.waits(t)
			eventually(t, "it says why it ended", func() bool { return bytes.Contains(o.raw(), []byte(tt.want)) })
			raw := o.raw()
			if i, j := bytes.LastIndex(raw, []byte(tt.want)), bytes.LastIndex(raw, []byte("\x1b[?1049l")); i < j {
				t.Errorf("%q was printed on the alternate screen", tt.want)
			}
			if got := o.screen.Modes(); got != (screen.Modes{}) {
				t.Errorf("modes are left behind: %+v", got)
			}
			after, err := term.GetState(int(o.tty.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(*o.before, *after, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Errorf("the terminal's settings differ (-before +after):\n%s", diff)
			}
		})
	}
}

// allowed is all that attach may send besides text: places, erasing, colours, its own modes and those that it passes on.
var allowed = regexp.MustCompile(`\x1b\[(\d+;\d+)?H|\x1b\[2[JK]|\x1b\[[0-9;:]*m|\x1b\[\?(1|7|9|25|1000|1002|1003|1004|1006|1049|2004|2026)[hl]|\x1b[=>]`)

func TestWhatTheAgentPrintsNeverReachesTheTerminalRaw(t *testing.T) {
	hostile := []string{
		"\x1b]52;c;ZXZpbA==\x07", "\x1b]0;owned title\x07", "\x1b]2;owned\x1b\\", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "\x1b]1337;File=:AA==\x07",
		"\x1bPq#0;2;0;0;0\x1b\\", "\x1b_Gf=100;AAAA\x1b\\", "\x1b^private\x1b\\", "\x1bc", "\x1b[!p", "\x1b[?1049l", "\x1b[5i", "\x1b[21t", "\x1b[c", "\x1b]11;#ff0000\x07",
		"\x07", "\x1b[2;5r", "\x1b[3;4;5;6;7;8$r", "\x1b[?5h", "\x1b[20h", "\x1b(0", "\x0e", "\u202egnirts\u202c", "\x9b31m", "\x1b[8;10;10t",
	}
	o := sit(t, strings.Join(hostile, "")+"\x1b(B\x0fthe end")
	o.sees(t, "the end")
	o.types(t, "\x1d")
	o.waits(t)
	eventually(t, "it ends", func() bool { return bytes.Contains(o.raw(), []byte("[detached")) })
	rest := allowed.ReplaceAllString(string(o.raw()), "")
	for _, r := range rest {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e {
			t.Fatalf("the terminal was sent %q: %q", r, rest)
		}
	}
	if strings.Contains(rest, "owned") || strings.Contains(rest, "evil") {
		t.Errorf("the terminal was sent %q", rest)
	}
}

func TestWhatIsTypedReachesTheAgentRaw(t *testing.T) {
	o := sit(t, "ready")
	o.sees(t, "ready")
	o.types(t, "\x03\x1a\x1c\x11\x13\x04\x7f\r\x1b[A\x00é")
	o.sees(t, `"\x03\x1a\x1c\x11\x13\x04\x7f\r\x1b[A\x00é"`)
	o.types(t, "last\x1dlost")
	o.waits(t)
	var log []byte
	eventually(t, "the agent has what was typed before the detach key", func() (ok bool) {
		var err error
		log, err = o.held.Log(0)
		return err == nil && bytes.Contains(log, []byte(`"last"`))
	})
	if bytes.Contains(log, []byte("lost")) {
		t.Errorf("the agent got %q, want nothing of what was typed after the detach key", log)
	}
}

func TestTheAgentGetsTheWindowLessOneLine(t *testing.T) {
	o := sit(t, "ready")
	o.sees(t, "ready")
	o.types(t, "size")
	o.sees(t, "80x23")
	o.sees(t, "ctrl-] detaches")
	if last := o.screen.Snapshot().Lines[23]; !strings.HasPrefix(last, " api  running") || !strings.HasSuffix(last, "ctrl-] detaches") {
		t.Errorf("the bottom line is %q", last)
	}
	o.resize(t, 60, 10)
	eventually(t, "the agent gets the new size", func() bool {
		s, err := o.held.Status(t.Context())
		return err == nil && s.Cols == 60 && s.Rows == 9
	})
	o.sees(t, "ctrl-] detaches")
}

func TestTwoMayAttach(t *testing.T) {
	o := sit(t, "ready")
	o.sees(t, "ready")
	m := screen.NewMirror(t.Context(), o.held)
	o.types(t, "hello")
	o.sees(t, `"hello"`)
	eventually(t, "the other sees it too", func() bool {
		shot, err := m.Wait(t.Context(), 0)
		return err == nil && strings.Contains(shot.Lines[0], `"hello"`)
	})
}
