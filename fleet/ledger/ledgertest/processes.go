package ledgertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/ledger"
)

// workerEnv makes a test binary a dispatcher that reserves and ends, with the ledger that it names.
const workerEnv = "FLEETDECK_TEST_DISPATCHER"

// Main is to be called by TestMain before anything else: it does not return where this process is to be a dispatcher. Open opens the
// ledger that another process named.
func Main(open func(name string) (ledger.Ledger, error)) {
	name, ok := os.LookupEnv(workerEnv)
	if !ok {
		return
	}
	l, err := open(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	hang := os.Args[1] == "hang"
	for _, tree := range os.Args[2:] {
		e, err := l.Reserve(context.Background(), window, draft(tree), nobody)
		switch code := codeOf(err); {
		case err == nil:
			fmt.Println(tree, e.ID)
		case code != fleet.CodeTreeReserved:
			fmt.Fprintln(os.Stderr, tree, err)
			os.Exit(1)
		}
	}
	if hang {
		select {}
	}
	os.Exit(0)
}

func dispatcher(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), workerEnv+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

func processes(t *testing.T, l ledger.Ledger, name string) {
	const racers, trees = 6, 4
	args := []string{"end"}
	for i := range trees {
		args = append(args, fmt.Sprintf("/src/tree%d", i))
	}
	var racing sync.WaitGroup
	var mu sync.Mutex // guards won
	won := map[string][]string{}
	for range racers {
		cmd := dispatcher(t, name, args...)
		racing.Go(func() {
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("a dispatcher: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			for tree, id := range lines(string(out)) {
				won[tree] = append(won[tree], id)
			}
		})
	}
	racing.Wait()
	var ids []string
	for _, tree := range args[1:] {
		if len(won[tree]) != 1 {
			t.Errorf("%s was reserved by %v, want one", tree, won[tree])
		}
		ids = append(ids, won[tree]...)
	}
	wantStanding(t, l, ids...)
}

// lines yields the two words of each line.
func lines(out string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		var tree, id string
		for {
			n, err := fmt.Sscan(out, &tree, &id)
			if n != 2 || err != nil || !yield(tree, id) {
				return
			}
			out = out[len(tree)+len(id)+2:]
		}
	}
}

func killed(t *testing.T, l ledger.Ledger, name string) {
	cmd := dispatcher(t, name, "hang", "/src/api")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var tree, id string
	if _, err := fmt.Fscan(out, &tree, &id); err != nil {
		t.Errorf("the dispatcher said nothing: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	wantStanding(t, l, id)
	wantRefused(t, l, draft("/src/api"), nobody, fleet.CodeTreeReserved)
	if _, err := admit(t, l, "/src/api", id); err != nil {
		t.Errorf("its launch is not admitted: %v", err)
	}
}
