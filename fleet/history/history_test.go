package history

import (
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
)

// TestMain lets the test binary be one of several consoles: it appends deeds of its own.
func TestMain(m *testing.M) {
	if dir := os.Getenv("HISTORY_DIR"); dir != "" {
		log := In(dir)
		log.max = 8 << 10
		if os.Getenv("HISTORY_UNBOUNDED") != "" {
			log.max = maxSize
		}
		for i := range 200 {
			if err := log.Add(deed(fmt.Sprintf("%s-%d", os.Getenv("HISTORY_NAME"), i))); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func deed(message string) fleet.Deed {
	return fleet.Deed{
		Time: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), By: fleet.Dispatcher{Pid: 1, Host: "kite", Program: "fleetdeck console"},
		What: "prune", Command: "fleetdeck prune", Outcome: "done", Message: message,
	}
}

func messages(deeds []fleet.Deed) []string {
	var m []string
	for _, d := range deeds {
		m = append(m, d.Message)
	}
	return m
}

func add(t *testing.T, l *Log, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if err := l.Add(deed(m)); err != nil {
			t.Fatal(err)
		}
	}
}

func tailOf(t *testing.T, l *Log, n int) []fleet.Deed {
	t.Helper()
	deeds, err := l.Tail(n)
	if err != nil {
		t.Fatal(err)
	}
	return deeds
}

func TestADeedIsReadAsItWasWritten(t *testing.T) {
	l := In(t.TempDir())
	if got := tailOf(t, l, 10); len(got) != 0 {
		t.Errorf("a missing history holds %v", got)
	}
	d := deed("a <tag> & \"quotes\"\nand a line")
	d.Tree, d.Member, d.Code = "/src/api", "01JE", fleet.CodeTreeOccupied
	if err := l.Add(d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]fleet.Deed{d}, tailOf(t, l, 10)); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(l.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info.Mode(), err)
	}
}

func TestTornAndForeignLinesArePassedOverAndSpoilNoOther(t *testing.T) {
	for _, test := range []struct{ name, between string }{
		{"nothing", ""},
		{"a torn line", `{"time":"2026-11-30T12:00:00Z","wh`},
		{"a foreign line", "hello\n"},
		{"another's JSON", `{"seq":1,"kind":"listed"}` + "\n"},
		{"zeros", "\x00\x00\x00\x00"},
		{"an empty line", "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := In(t.TempDir())
			add(t, l, "one")
			file, err := os.OpenFile(l.Path(), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteString(test.between); err != nil {
				t.Fatal(err)
			}
			file.Close()
			add(t, l, "two")
			if diff := cmp.Diff([]string{"one", "two"}, messages(tailOf(t, l, 10))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheTailIsTheNewestOldestFirst(t *testing.T) {
	l := In(t.TempDir())
	var want []string
	for i := range 700 {
		want = append(want, fmt.Sprintf("%d %s", i, strings.Repeat("x", 300)))
	}
	add(t, l, want...)
	if diff := cmp.Diff(want[200:], messages(tailOf(t, l, 500))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, messages(tailOf(t, l, 5000))); diff != "" {
		t.Error(diff)
	}
}

func TestAFullHistoryMakesRoomAndIsReadOn(t *testing.T) {
	l := In(t.TempDir())
	l.max = 2 << 10
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprint(i))
	}
	add(t, l, want...)
	got := messages(tailOf(t, l, 1000))
	if len(got) < 10 || len(got) == len(want) {
		t.Fatalf("%d deeds are left of %d", len(got), len(want))
	}
	if diff := cmp.Diff(want[len(want)-len(got):], got); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{l.Path(), l.Path() + ".1"} {
		if info, err := os.Stat(path); err != nil || info.Size() > l.max+1<<10 {
			t.Errorf("%s: %v, %v", path, info.Size(), err)
		}
	}
}

func TestALongTextIsCutAtACharacter(t *testing.T) {
	l := In(t.TempDir())
	d := deed("")
	d.Command = "x" + strings.Repeat("é", 1<<20)
	if err := l.Add(d); err != nil {
		t.Fatal(err)
	}
	got := tailOf(t, l, 1)
	if len(got) != 1 || len(got[0].Command) > maxText+8 || !strings.HasSuffix(got[0].Command, "é…") {
		t.Errorf("%d deeds", len(got))
	}
}

func TestAnUnusableDirectoryIsAnErrorThatNamesIt(t *testing.T) {
	l := In(filepath.Join(t.TempDir(), "gone"))
	var perr *os.PathError
	if err := l.Add(deed("x")); !errors.As(err, &perr) || perr.Path != l.Path() {
		t.Errorf("Add = %v, want an error of %s", err, l.Path())
	}
}

// consoles lets several processes append at once.
func consoles(t *testing.T, dir string, env ...string) {
	t.Helper()
	var cmds []*exec.Cmd
	for _, name := range []string{"a", "b", "c", "d"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(append(os.Environ(), "HISTORY_DIR="+dir, "HISTORY_NAME="+name), env...)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestSeveralConsolesAppendAtOnceAndLoseNothing(t *testing.T) {
	l := In(t.TempDir())
	consoles(t, filepath.Dir(l.Path()), "HISTORY_UNBOUNDED=1")
	next := map[string]int{}
	for _, m := range messages(tailOf(t, l, 10_000)) {
		name, i, _ := strings.Cut(m, "-")
		if fmt.Sprint(next[name]) != i {
			t.Fatalf("%s comes where %s-%d should", m, name, next[name])
		}
		next[name]++
	}
	if diff := cmp.Diff(map[string]int{"a": 200, "b": 200, "c": 200, "d": 200}, next); diff != "" {
		t.Error(diff)
	}
}

func TestOfSeveralConsolesOneOnlyPutsAFullHistoryAside(t *testing.T) {
	l := In(t.TempDir())
	consoles(t, filepath.Dir(l.Path()))
	// Were a file put aside that another had just begun, it would be all but empty, and the full one lost.
	info, err := os.Stat(l.Path() + ".1")
	if err != nil || info.Size() < 8<<10 {
		t.Errorf("the file put aside: %d bytes, %v, want it full", info.Size(), err)
	}
}
