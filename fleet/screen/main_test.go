package screen_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/term"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
)

// The test binary is also holder, gate and agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "holder": // holder --dir DIR
			os.Exit(embedded.HolderMain(os.Args[3]))
		case "agent-exec":
			os.Exit(embedded.GateMain(os.Args[2:]))
		case "agent":
			agents[os.Args[2]](os.Args[3:])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

var agents = map[string]func(args []string){
	"idle": func(args []string) {
		fmt.Print(strings.Join(args, " "))
		time.Sleep(time.Hour)
	},
	"codex": codex,
	"flood": func([]string) {
		block := bytes.Repeat([]byte("all work and no play makes jack a dull boy\r\n"), 700)
		for {
			if _, err := os.Stdout.Write(block); err != nil {
				return
			}
		}
	},
	// floods for so many bytes, then shows a page that is drawn again with each new size only
	"burst": func(args []string) {
		changed := make(chan os.Signal, 8)
		signal.Notify(changed, syscall.SIGWINCH)
		n, _ := strconv.Atoi(args[0])
		os.Stdout.WriteString("\x1b[?1049h\x1b[?2004h\x1b[Hthis is the page\x1b[5Hat line five")
		for i := 0; i < n; i += 50 {
			fmt.Printf("\x1b[10H%-40d", i)
		}
		for range changed {
			cols, rows, _ := term.GetSize(0)
			fmt.Printf("\x1b[2J\x1b[Hthis is the page of %dx%d\x1b[5Hat line five", cols, rows)
		}
	},
}

// codex prints as such agents do: history that scrolls above a live area at the bottom, in synchronised updates and a
// scroll region, with links, full colours, emoji and wide text. A new size makes it draw the live area and the end of
// its history again. A line of input makes it go on.
func codex([]string) {
	old, err := term.MakeRaw(0)
	if err != nil {
		panic(err)
	}
	defer term.Restore(0, old)
	changed := make(chan os.Signal, 8)
	signal.Notify(changed, syscall.SIGWINCH)
	keys := make(chan byte)
	go func() {
		for b := make([]byte, 1); ; {
			if _, err := os.Stdin.Read(b); err != nil {
				return
			}
			keys <- b[0]
		}
	}()
	var history []string
	entry := func(i int) string {
		return fmt.Sprintf("\x1b[38;2;%d;120;200m● \x1b[m%03d \x1b]8;;https://example.org/%d\x1b\\file_%d.go\x1b]8;;\x1b\\ \x1b[1m✔ done\x1b[m 日本語 🚀 \x1b[48;5;%dm diff \x1b[m",
			i%256, i, i, i, 16+i%200)
	}
	live := func(out *strings.Builder, cols, rows, n int) {
		fmt.Fprintf(out, "\x1b[%d;1H\x1b[J\x1b[2m%s\x1b[m\r\n\x1b[K\x1b[36m⠋\x1b[m Working (%ds • \x1b[3mesc\x1b[m to interrupt)\r\n\x1b[K› Ask me anything\r\n\x1b[K",
			rows-3, strings.Repeat("─", cols), n)
		fmt.Fprintf(out, "\x1b[%d;3H", rows-1)
	}
	n := 0
	draw := func(all bool) {
		cols, rows, _ := term.GetSize(0)
		var out strings.Builder
		out.WriteString("\x1b[?2026h\x1b[?25l")
		if all {
			out.WriteString("\x1b[r\x1b[2J\x1b[H")
			out.WriteString(strings.Join(history[max(0, len(history)-(rows-5)):], "\r\n"))
		} else {
			history = append(history, entry(n))
			fmt.Fprintf(&out, "\x1b[1;%dr\x1b[%d;1H\r\n%s\x1b[r", rows-4, rows-4, history[len(history)-1])
			n++
		}
		live(&out, cols, rows, n)
		out.WriteString("\x1b[?25h\x1b[?2026l")
		os.Stdout.WriteString(out.String())
	}
	os.Stdout.WriteString("\x1b[?2004h\x1b[?1004h")
	draw(true)
	for {
		select {
		case <-changed:
			draw(true)
		case k := <-keys:
			if k == '+' {
				for range 100 {
					draw(false)
				}
			}
		}
	}
}

func exe() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// start starts argv in a terminal that is ended with the test.
func start(t *testing.T, argv ...string) launch.Terminal {
	t.Helper()
	root := t.TempDir()
	spec := launch.Spec{
		ID: "01" + strconv.FormatInt(time.Now().UnixNano(), 36), Dir: filepath.Join(root, "member"), Argv: argv,
		Tree: fleet.Tree{Path: root}, Cols: 80, Rows: 24, LogLimit: 64 << 20,
	}
	spec.Env = []string{"FLEETDECK_MEMBER=" + spec.ID, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + root}
	held, err := embedded.New(exe()).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := held.Stop(ctx, 0); err != nil {
			t.Error(err)
		}
		eventually(t, "the directory is removed", func() bool { return os.RemoveAll(spec.Dir) == nil })
	})
	return held
}

func agent(t *testing.T, args ...string) launch.Terminal {
	t.Helper()
	return start(t, append([]string{exe(), "agent"}, args...)...)
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
