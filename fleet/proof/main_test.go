package proof_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet/cli"
	"fleetdeck/fleet/proof"
)

var (
	opsFlag      = flag.Int("ops", 0, "how many operations TestLong makes")
	seedFlag     = flag.Uint64("seed", 0, "the seed of what the processes do; 0 is a new one each time")
	programsFlag = flag.Int("programs", 0, "how many operations TestLongOfPrograms makes, each a process")
	clusterFlag  = flag.Int("cluster", 0, "how many operations TestLongOfTheCluster makes")
	workersFlag  = flag.Int("workers", 8, "how many worker processes TestLong runs")
	dirFlag      = flag.String("dir", "", "the directory that the histories are made in; empty is /dev/shm where there is one")
)

// TestMain lets the test binary be each process of the tests: a worker, the owner, an agent, a foreign dispatcher, and fleetdeck itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(be(os.Args[1], os.Args[2:]))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // hundreds of processes would sleep a second each
	flag.Parse()
	os.Exit(m.Run())
}

// be is the process that role names.
func be(role string, args []string) int {
	var err error
	switch role {
	case "proof-owner":
		err = runOwner(args[0])
	case "proof-worker":
		err = runWorker(args[0], args[1], args[2])
	case "proof-dispatcher":
		err = runDispatcher(args)
	case "proof-agent":
		err = runAgent(args[0], args[1])
	default:
		return cli.Main(append([]string{role}, args...), cli.Build{Version: "test"})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		return 1
	}
	return 0
}

// seedOf is the seed of this run, which it prints.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	s := *seedFlag
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: again with -seed %d", s, s)
	return s
}

// scratch makes a directory for a history. In memory a write costs what the program costs, and not what the disk does; its
// name is short, since a socket lies in it.
func scratch(t *testing.T) string {
	t.Helper()
	parent := *dirFlag
	if info, err := os.Stat("/dev/shm"); parent == "" && err == nil && info.IsDir() {
		parent = "/dev/shm"
	}
	dir, err := os.MkdirTemp(parent, "fdproof")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// draw writes the history of a violation where it can be looked at.
func draw(t *testing.T, err error) {
	t.Helper()
	var v *proof.Violation
	if !errors.As(err, &v) {
		return
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("fleetdeck-history-%d.html", time.Now().UnixNano()))
	if derr := v.Draw(path); derr != nil {
		t.Logf("the history could not be drawn: %v", derr)
		return
	}
	t.Logf("the history is drawn in %s", path)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
