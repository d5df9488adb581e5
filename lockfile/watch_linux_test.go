package lockfile

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// awaitLine waits until the child says line, and passes over what it says before.
func awaitLine(c *child, line string) {
	c.t.Helper()
	for c.hear() != line {
	}
}

func TestWatcherThatWasStoppedSeesTheLastOf20000Replacements(t *testing.T) {
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
	f := newFile(t)
	write(t, f, "first")
	c := startChild(t, "agent", f.Path())
	c.tell("watch seeing")
	awaitLine(c, "saw first")

	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 { // more than the kernel's queue of events holds
		next := f.Path() + ".next"
		if err := os.WriteFile(next, fmt.Append(nil, i), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, f.Path()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	awaitLine(c, "saw 19999")
}

func TestWatchWithoutEventsToBeHadPolls(t *testing.T) {
	f := newFile(t)
	write(t, f, "first")
	c := startChild(t, "agent", f.Path())
	c.tell("watch blind")
	awaitLine(c, "saw first")
	write(t, f, "second")
	awaitLine(c, "saw second")
}
