package cli_test

import (
	"flag"
	"os/exec"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/client"
)

var rounds = flag.Int("rounds", 2, "how often the dispatcher of each language competes with ours for a tree")

// TestForeignDispatcherKeepsThePromiseRoundAfterRound lets a dispatcher of each language and two of ours go for one tree, again and
// again. In every other round the foreign one waits for the lock before ours are started, and so it is sent; in the others all
// start at once.
func TestForeignDispatcherKeepsThePromiseRoundAfterRound(t *testing.T) {
	full(t)
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			if why := l.missing(); why != "" {
				t.Skipf("SKIPPED, not tested in %s: %s", l.name, why)
			}
			r := newRig(t, agents)
			r.snippet(l)
			r.must(nil, "up")
			r.must(nil, "lock", "--", "true")
			daemon, tree := client.New(r.socket(), ""), r.repo("api")
			won := map[string]int{}
			for round := 0; round < *rounds || won["theirs"] == 0 && round < *rounds+20; round++ { // a few rounds may all be ours
				won[r.oneRound(l, daemon, tree, round%2 == 0)]++
				if got := len(r.starts()); got != won["theirs"]+won["ours"] {
					t.Fatalf("after %d rounds, won %v, %d agents were started", round+1, won, got)
				}
			}
			if won["theirs"] == 0 {
				t.Error("the foreign dispatcher never won")
			}
			t.Logf("%d rounds, won: %v", *rounds, won)
		})
	}
}

// oneRound lets l's dispatcher and two of ours go for tree, demands that one of them is accepted and its agent runs there alone, and
// ends that agent. It says who won. Nobody may win only where somebody found the lock busy or the daemon silent for too long, as
// happens on a machine that is overloaded.
func (r *rig) oneRound(l language, daemon *client.Client, tree string, foreignFirst bool) (won string) {
	r.t.Helper()
	before := len(r.starts())
	theirs := r.foreign(l, tree, "worker")
	release := func() {}
	if foreignFirst {
		release = r.flockOutside()
		defer func() { release() }()
	}
	if err := theirs.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { theirs.Wait(); close(ended) }()
	defer func() { <-ended }()
	if foreignFirst {
		r.await("the foreign dispatcher waits for the lock", func() bool {
			select {
			case <-ended: // its window was over, on a slow machine
				return true
			default:
				return len(r.lockWaiters()) > 0
			}
		})
	}
	var ours []*exec.Cmd
	for range 2 {
		cmd := r.command("dispatch", tree, "--profile", "worker")
		if err := cmd.Start(); err != nil {
			r.t.Fatal(err)
		}
		ours = append(ours, cmd)
	}
	release()
	release = func() {}
	<-ended
	codes := []int{theirs.ProcessState.ExitCode()}
	for _, cmd := range ours {
		cmd.Wait()
		codes = append(codes, cmd.ProcessState.ExitCode())
	}
	accepted, gaveUp := count(codes, 0), count(codes, 4)+count(codes, 6)
	if accepted > 1 || accepted == 0 && gaveUp == 0 || accepted+count(codes, 3)+gaveUp != len(codes) {
		r.t.Fatalf("exit codes %v, want one 0, and 3, 4 or 6 for the others; the foreign one, first, says %s", codes, theirs.out.String())
	}
	if accepted == 0 {
		return "nobody"
	}
	var member string
	r.await("its agent is listed and runs", func() bool {
		roster := r.roster(daemon)
		for _, m := range roster.Members {
			if m.Alive() {
				member = m.ID
			}
		}
		return member != "" && len(roster.Launches) == 0 && len(r.starts()) > before
	})
	if err := daemon.Stop(r.t.Context(), member); err != nil {
		r.t.Fatal(err)
	}
	for _, m := range r.roster(daemon).Members {
		if m.Alive() {
			r.t.Fatalf("member %s lives though the one of this round, %s, was ended", m.ID, member)
		}
	}
	if codes[0] == 0 {
		return "theirs"
	}
	return "ours"
}

// roster is the daemon's, asked for without a process: thousands of rounds do so.
func (r *rig) roster(daemon *client.Client) fleet.Roster {
	r.t.Helper()
	roster, err := daemon.Roster(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return roster
}
