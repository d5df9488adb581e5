package proof_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
)

var mutantsFlag = flag.String("mutants", "some", "which planted faults TestEveryMutantIsCaught looks for: some, all, or one by its tag")

// mutants are the planted faults of fleet/mutant: the tag, the test that must catch it, and what that must say.
var mutants = []mutant{
	{"prune_without_lock", ledgerTest, "no order of its", true},
	{"settle_without_id", ledgerTest, "no order of its", false},
	{"release_without_id", ledgerTest, "no order of its", false},
	{"roster_before_lock", ledgerTest, "no order of its|two worked at once", false},
	{"admit_without_fence", ledgerTest, "no order of its|two worked at once", true},
	{"slot_checked_only", ledgerTest, "no order of its|two worked at once", false},
	{"slot_kept_on_failure", programTest, "left behind: slot", false},
	{"refused_not_settled", programTest, "left behind: reservation", false},
	{"cluster_slot_not_compared", clusterTest, "held twice|held in part|and no hold|no order of its|two worked at once", false},
	{"cluster_put_without_fence", clusterTest, "held twice|held in part|and no hold|no order of its|two worked at once", false},
	{"cluster_lost_is_refused", clusterTest, "no order of its", false},
	{"cluster_drop_without_fence", clusterTest, "held in part|and no hold|no order of its|two worked at once", false},
}

type mutant struct {
	tag, test, says string
	often           bool // looked for without -mutants all too
}

const (
	ledgerTest  = "^TestEveryAnswerOfTheLedgerHasAnOrder$"
	clusterTest = "^TestEveryAnswerOfTheClusterHasAnOrder$"
	programTest = "^TestEveryAnswerOfTheProgramHasAnOrder$/^of_one_daemon$"
)

var skipped = regexp.MustCompile("SKIPPED: .*")

// A net that catches nothing proves nothing: each planted fault must be seen within a minute.
func TestEveryMutantIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("no go command to build the faults with: %v", err)
	}
	one := func(m mutant) bool { return m.tag == *mutantsFlag }
	if *mutantsFlag != "some" && *mutantsFlag != "all" && !slices.ContainsFunc(mutants, one) {
		t.Fatalf("-mutants %s: no planted fault has this tag", *mutantsFlag)
	}
	for _, m := range mutants {
		t.Run(m.tag, func(t *testing.T) {
			if *mutantsFlag != "all" && !one(m) && (*mutantsFlag != "some" || !m.often) {
				t.Skipf("it runs with -mutants all or -mutants %s", m.tag)
			}
			exe := filepath.Join(t.TempDir(), "proof.test")
			build := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "mutant_"+m.tag, "-o", exe, ".")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("build: %v: %s", err, out)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			said := regexp.MustCompile(m.says)
			for seed, began := 1, time.Now(); ctx.Err() == nil; seed++ {
				run := exec.CommandContext(ctx, exe, "-test.run", m.test, "-test.v", "-seed", strconv.Itoa(seed))
				run.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // the drawing of a fault that was planted is of no use
				run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
				run.WaitDelay = time.Second
				out, err := run.CombinedOutput()
				switch {
				case err == nil && skipped.Match(out):
					t.Skipf("%s", skipped.Find(out))
				case err != nil && said.Match(out):
					t.Logf("caught in %s, with seed %d: %s", time.Since(began).Round(100*time.Millisecond), seed, said.Find(out))
					return
				case err != nil && ctx.Err() == nil:
					t.Fatalf("failed in another way: %v: %s", err, out)
				}
			}
			t.Error("not caught within a minute")
		})
	}
}
