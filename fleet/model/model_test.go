package model_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var deep = flag.Bool("deep", false, "search the protocol in the large bounds of docs/model.md: some minutes, and gigabytes of memory")

// bounds are in which the protocol as it is must hold. Deep ones are searched with -deep only.
var bounds = []struct {
	name, macros string
	deep         bool
}{
	{name: "one order and its slot, two daemons after the first", macros: "-DDISPATCHERS=1 -DLIMITED=1 -DCRASHES=2"},
	{name: "two orders for a tree", macros: "-DDISPATCHERS=2 -DREQUESTS=1 -DCRASHES=0"},
	{name: "a task of the keeper", macros: "-DDISPATCHERS=0 -DKEEPER=2 -DCRASHES=0"},
	{name: "two orders for a tree, lost answers, a second daemon", macros: "-DDISPATCHERS=2", deep: true},
	{name: "two orders for a slot, lost answers", macros: "-DDISPATCHERS=2 -DSPLIT=1 -DLIMITED=1 -DCRASHES=0", deep: true},
	{name: "one of two orders comes from a script", macros: "-DDISPATCHERS=2 -DSCRIPT=1", deep: true},
	{name: "a task of the keeper and an order, lost answers", macros: "-DDISPATCHERS=1 -DKEEPER=1 -DCRASHES=0", deep: true},
	{name: "a task of the keeper, two more keepers and daemons", macros: "-DDISPATCHERS=0 -DKEEPER=2 -DCRASHES=2 -DKILLS=2", deep: true},
}

// mutants are the protocol with one thing wrong, in the smallest bounds in which that shows, and what it breaks.
var mutants = []struct{ macro, bounds, broken string }{
	{"PRUNE_NO_LOCK", "", "an entry goes because"},
	{"SETTLE_NO_ID", "", "an entry goes because"},
	{"ROSTER_BEFORE_LOCK", "", "members, launches and standing reservations"},
	{"NO_FENCE", "", "nobody is admitted whose reservation does not stand"},
	{"ADMIT_BLIND", "-DSCRIPT=1 -DCRASHES=0", "members, launches and standing reservations"},
	{"LOOKED_UP_BEFORE_LOCK", "-DDISPATCHERS=1 -DCRASHES=0", "one id, and one task"},
	{"LATER_REFUSAL_IS_PROOF", "-DDISPATCHERS=1", "what was told to be refused"},
	{"LAUNCH_NOT_DURABLE", "", "a tree has one living worker"},
	{"SLOT_CHECK_ONLY", "-DSPLIT=1 -DLIMITED=1", "a slot has one holder"},
	{"RELEASE_MISSING", "-DDISPATCHERS=1 -DLIMITED=1", "at rest no tree, slot"},
	{"FREED_BEFORE_ENDED", "-DREQUESTS=1 -DCRASHES=0 -DREST=0", "a tree has one living worker"},
	{"ERROR_IS_GONE", "-DREQUESTS=1 -DCRASHES=0 -DREST=0", "a tree has one living worker"},
	{"HOLDER_NO_DEADLINE", "-DDISPATCHERS=1", "nobody who is not confirmed"},
	{"ID_WRITTEN_AFTER", "-DDISPATCHERS=0 -DKEEPER=2 -DCRASHES=0", "one id, and one task"},
	{"ANSWER_LOST_NEW_ID", "-DDISPATCHERS=0 -DKEEPER=2 -DCRASHES=0", "one id, and one task"},
	{"FORGOTTEN_TOO_SOON", "-DDISPATCHERS=0 -DKEEPER=2 -DCRASHES=0", "one id, and one task"},
}

func TestTheProtocolHoldsInEveryInterleaving(t *testing.T) {
	needChecker(t)
	for _, b := range bounds {
		t.Run(b.name, func(t *testing.T) {
			if b.deep && !*deep {
				t.Skip("a large search: it runs with -deep")
			}
			s := search(t, b.macros, "-O1")
			if s.broken {
				t.Fatalf("with %s the protocol does not hold:\n%s", b.macros, s.trail(t))
			}
			if !s.complete {
				t.Fatalf("with %s the search did not come to its end:\n%s", b.macros, s.report)
			}
			t.Logf("%s: %s states, all of them", b.macros, s.states)
		})
	}
}

func TestEachMutantOfTheProtocolIsCaught(t *testing.T) {
	needChecker(t)
	for _, m := range mutants {
		t.Run(m.macro, func(t *testing.T) {
			s := search(t, m.bounds+" -D"+m.macro, "-O0")
			if !s.broken {
				t.Fatalf("nothing is found wrong with it:\n%s", s.report)
			}
			trail := s.trail(t)
			_, broken, _ := strings.Cut(trail, "BROKEN: ")
			if broken == "" || !strings.HasPrefix(broken, m.broken) {
				t.Fatalf("it breaks %q, want %q:\n%s", broken, m.broken, trail)
			}
			if testing.Verbose() {
				t.Log("\n" + trail)
			}
		})
	}
}

// needChecker skips a test where the model cannot be searched, or where short is asked for.
func needChecker(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("NOT SEARCHED: the model needs %s (Debian: apt-get install spin gcc): %v", tool, err)
		}
	}
}

// found is what a search came to.
type found struct {
	dir, macros string
	report      string
	states      string
	broken      bool
	complete    bool
}

var (
	errorsIn = regexp.MustCompile(`errors: (\d+)`)
	statesIn = regexp.MustCompile(`(?m)^\s*(\S+) states, stored`)
)

// search has the model of macros searched until something is broken or nothing is left.
func search(t *testing.T, macros, optimise string) found {
	t.Helper()
	s := found{dir: t.TempDir(), macros: macros}
	text, err := os.ReadFile("fleetdeck.pml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "fleetdeck.pml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(t, "spin", append(strings.Fields(macros), "-a", "fleetdeck.pml")...)
	s.run(t, "gcc", optimise, "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048", "-o", "pan", "pan.c")
	s.report = s.run(t, "./pan", "-m100000", "-w22")
	n := errorsIn.FindStringSubmatch(s.report)
	if n == nil {
		t.Fatalf("the search ended without a result:\n%s", s.report)
	}
	s.broken = n[1] != "0"
	s.complete = !strings.Contains(s.report, "Search not completed") && !strings.Contains(s.report, "max search depth too small")
	if m := statesIn.FindStringSubmatch(s.report); m != nil {
		s.states = m[1]
	}
	return s
}

// trail tells in words how it came to what is broken.
func (s found) trail(t *testing.T) string {
	t.Helper()
	told := s.run(t, "spin", append(strings.Fields(s.macros), "-t", "fleetdeck.pml")...)
	var words []string
	for line := range strings.Lines(told) {
		line = strings.TrimSpace(line)
		words = append(words, line)
		if strings.HasPrefix(line, "BROKEN") {
			break
		}
	}
	return strings.Join(words, "\n")
}

// run runs a tool of the checker. Some tell what they found by their exit code too, so that this alone is no failure.
func (s found) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && (!exited || name == "gcc") {
		t.Fatal(fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out))
	}
	return string(out)
}
