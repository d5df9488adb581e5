package herdr_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/herdr"
	"fleetdeck/fleet/launch/herdr/herdrtest"
)

// The test binary is also the holder in the pane, the gate and the agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch {
		case filepath.Base(os.Args[0]) == "codex" || os.Args[1] == "agent":
			time.Sleep(time.Hour)
		case os.Args[1] == "pane":
			os.Exit(embedded.PaneMain(os.Args[3]))
		case os.Args[1] == "agent-exec":
			os.Exit(embedded.GateMain(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

func exe(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// specOf makes a spec whose agent idles, in a place whose name a shell would trip over.
func specOf(t *testing.T, l *herdr.Launcher) launch.Spec {
	t.Helper()
	root, err := os.MkdirTemp("", "fd'h $x")
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := launch.Spec{
		ID: "01" + strings.ToUpper(strconv.FormatInt(time.Now().UnixNano(), 36)), Dir: filepath.Join(root, "member"), Tree: fleet.Tree{Path: root},
		Argv: []string{exe(t), "agent"}, Cols: 100, Rows: 30,
	}
	s.Env = []string{"FLEETDECK_MEMBER=" + s.ID, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if held, err := l.Find(ctx, s.ID, s.Dir); err == nil {
			held.Stop(ctx, 0)
		}
		os.RemoveAll(root)
	})
	return s
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
	}
}

func TestTheGenerationIsChosenByPing(t *testing.T) {
	for _, tt := range []struct {
		protocol int
		calls    []string
	}{
		{11, []string{"ping", "agent.start"}},
		{16, []string{"ping", "agent.start"}},
		{17, []string{"ping", "workspace.create", "pane.send_input"}},
		{20, []string{"ping", "workspace.create", "pane.send_input"}},
	} {
		t.Run(strconv.Itoa(tt.protocol), func(t *testing.T) {
			s := herdrtest.Start(t, tt.protocol)
			l := herdr.New(exe(t), s.Socket)
			spec := specOf(t, l)
			spec.Argv[0] = filepath.Join(spec.Tree.Path, "codex")
			if err := os.Symlink(exe(t), spec.Argv[0]); err != nil {
				t.Fatal(err)
			}
			held, err := l.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.calls, s.Calls()); diff != "" {
				t.Error(diff)
			}
			panes := s.Panes()
			if len(panes) != 1 || panes[0].Cwd != spec.Tree.Path || !strings.Contains(panes[0].Name+panes[0].Label, herdr.AgentName(spec.ID)) {
				t.Fatalf("panes %+v, want one in the tree, named for %s", panes, spec.ID)
			}
			if got := panes[0].Env["HERDR_AGENT"]; (got == "codex") != (tt.protocol >= 14) {
				t.Errorf("herdr is told of the agent %q", got)
			}
			if err := held.Stop(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the pane is closed", func() bool { return len(s.Panes()) == 0 })
		})
	}
}

func TestAnAgentsNameIsOneThatHerdrTakes(t *testing.T) {
	name := herdr.AgentName("01KBCDEFGHJKMNPQRSTVWXYZ01")
	if !regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`).MatchString(name) {
		t.Errorf("name %q", name)
	}
}

func TestAStartThatHerdrRefusesLeavesNothing(t *testing.T) {
	for _, tt := range []struct {
		method, code string
		protocol     int
	}{
		{"ping", "server_unavailable", 20},
		{"agent.start", "agent_start_failed", 16},
		{"workspace.create", "server_unavailable", 20},
		{"pane.send_input", "pane_input_failed", 20},
	} {
		t.Run(tt.method, func(t *testing.T) {
			s := herdrtest.Start(t, tt.protocol)
			s.Fail(tt.method, tt.code)
			l := herdr.New(exe(t), s.Socket)
			spec := specOf(t, l)
			_, err := l.Start(t.Context(), spec)
			var said *herdr.Error
			if !errors.Is(err, launch.ErrNotStarted) || !errors.As(err, &said) || said.Code != tt.code {
				t.Errorf("error %v, want that nothing was started, and herdr's %s", err, tt.code)
			}
			eventually(t, "every pane is closed", func() bool { return len(s.Panes()) == 0 })
			s.Fail(tt.method, "")
			if _, err := l.Start(t.Context(), spec); err != nil {
				t.Errorf("another start: %v", err)
			}
		})
	}
}

func TestANameThatIsTakenIsAnEarlierTryOfOurs(t *testing.T) {
	s := herdrtest.Start(t, 16)
	l := herdr.New(exe(t), s.Socket)
	spec := specOf(t, l)
	s.Fail("agent.start", "agent_name_taken")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	// The pane of the earlier try never comes, and what would come later finds nothing to do.
	if _, err := l.Start(ctx, spec); !errors.Is(err, launch.ErrNotStarted) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that it was waited for in vain", err)
	}
	if !slices.Contains(s.Calls(), "agent.start") {
		t.Errorf("calls %v", s.Calls())
	}
}

func TestWithoutAnAnswerOfHerdrsNothingIsStarted(t *testing.T) {
	s := herdrtest.Start(t, 20)
	l := herdr.New(exe(t), s.Socket)
	other := specOf(t, l)
	held, err := l.Start(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	s.Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := l.Start(ctx, specOf(t, l)); !errors.Is(err, launch.ErrNotStarted) {
		t.Errorf("error %v, want that nothing was started", err)
	}
	// Who lives is asked without herdr.
	if st, err := held.Status(t.Context()); err != nil || st.Exit != nil {
		t.Errorf("status %+v, %v, want it alive", st, err)
	}

	nobody := herdr.New(exe(t), filepath.Join(t.TempDir(), "x.sock"))
	if _, err := nobody.Start(t.Context(), specOf(t, nobody)); !errors.Is(err, launch.ErrNotStarted) || !strings.Contains(err.Error(), "is herdr running?") {
		t.Errorf("error %v, want one that says what to do", err)
	}
	old := herdrtest.Start(t, 0)
	unknown := herdr.New(exe(t), old.Socket)
	if _, err := unknown.Start(t.Context(), specOf(t, unknown)); !errors.Is(err, launch.ErrNotStarted) {
		t.Errorf("error %v, want that nothing was started with an unknown herdr", err)
	}
}

func TestTheSocketIsWhereHerdrsOwnCommandsFindIt(t *testing.T) {
	for _, tt := range []struct{ name, asked, path, session, xdg, want string }{
		{"asked for", "/a/b.sock", "/x", "s", "/c", "/a/b.sock"},
		{"by the environment", "", "/x/h.sock", "s", "/c", "/x/h.sock"},
		{"a named session", "", "", "s", "/c", "/c/herdr/sessions/s/herdr.sock"},
		{"usual", "", "", "", "/c", "/c/herdr/herdr.sock"},
		{"usual, no XDG", "", "", "", "", "/home/me/.config/herdr/herdr.sock"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("HERDR_SOCKET_PATH", tt.path)
			t.Setenv("HERDR_SESSION", tt.session)
			t.Setenv("XDG_CONFIG_HOME", tt.xdg)
			t.Setenv("HOME", "/home/me")
			if got, err := herdr.Socket(tt.asked); err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
