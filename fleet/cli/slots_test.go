package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
)

// twoArchitects has two slots. Its agent keeps the charter that it read.
const twoArchitects = agents + `
[profiles.reader]
command = ["sh", "-c", "cat \"$FLEETDECK_CHARTER_FILE\" > DIR/read-$FLEETDECK_MEMBER; echo $FLEETDECK_MEMBER >> DIR/starts; exec sleep 600"]
[[slots]]
name = "architect-1"
role = "architect"
profile = "reader"
[[slots]]
name = "architect-2"
role = "architect"
profile = "reader"
`

func TestASlotHasOneMemberHoweverManyAsk(t *testing.T) {
	t.Parallel()
	r := newRig(t, twoArchitects)
	r.must(nil, "up")
	trees := make([]string, racers)
	for i := range trees {
		trees[i] = r.repo(fmt.Sprintf("tree%02d", i))
	}
	outs, codes := make([]fleet.Outcome, racers), make([]int, racers)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, tree := range trees {
		cmd := r.command("dispatch", "--json", tree, "--role", "architect", "--profile", "reader", "--wait")
		wg.Go(func() {
			<-start
			stdout, _ := cmd.Output()
			json.Unmarshal(stdout, &outs[i])
			codes[i] = cmd.ProcessState.ExitCode()
		})
	}
	close(start)
	wg.Wait()

	accepted := map[string]bool{}
	for i, out := range outs {
		switch {
		case codes[i] == 0 && out.Outcome == fleet.Accepted:
			accepted[out.Member] = true
		case codes[i] != 3 || out.Code != fleet.CodeSlotUnavailable:
			t.Errorf("%s: exit %d, %s %s %s; want %s", trees[i], codes[i], out.Outcome, out.Code, out.Message, fleet.CodeSlotUnavailable)
		}
	}
	if len(accepted) != 2 {
		t.Errorf("%d architects were accepted, want 2", len(accepted))
	}
	if got := r.starts(); len(got) != 2 || !accepted[got[0]] || !accepted[got[1]] {
		t.Errorf("started were %v, want the two accepted, %v", got, accepted)
	}
	want := string(config.BuiltinCharter("architect"))
	for id := range accepted {
		if got := r.text("read-" + id); got != want {
			t.Errorf("%s read the charter %q, want the architect's", id, got)
		}
	}
	r.await("no reservation is left", func() bool { return len(r.reservations()) == 0 })
}

func TestARefusedSlotReachesNoLauncher(t *testing.T) {
	t.Parallel()
	r := newRig(t, twoArchitects)
	r.must(nil, "up")
	for _, name := range []string{"api", "web"} {
		if out, code := r.dispatch(r.repo(name), "--role", "architect", "--profile", "reader", "--wait"); code != 0 {
			t.Fatalf("exit %d: %s", code, out.Message)
		}
	}
	before := r.memberDirs()
	tree := r.repo("third")
	for _, tt := range []struct {
		name, profile string
		want          fleet.Code
	}{
		{"every slot is taken", "reader", fleet.CodeSlotUnavailable},
		{"no slot carries the profile", "worker", fleet.CodeSlotUnconfigured},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, code := r.dispatch(tree, "--role", "architect", "--profile", tt.profile)
			if code != 3 || out.Code != tt.want {
				t.Errorf("exit %d, %s, want 3, %s", code, out.Code, tt.want)
			}
			if tt.want == fleet.CodeSlotUnavailable {
				for _, m := range r.alive() { // it says by whom
					if !strings.Contains(out.Message, m.ID) {
						t.Errorf("message %q does not name %s", out.Message, m.ID)
					}
				}
			}
			if after := r.memberDirs(); len(after) != len(before) {
				t.Errorf("directories %v, want %v", after, before)
			}
			if got := r.starts(); len(got) != 2 {
				t.Errorf("%d agents were started, want 2", len(got))
			}
			if row := r.tree(tree); row.Occupancy != fleet.Free {
				t.Errorf("the tree is %s, want free", row.Occupancy)
			}
		})
	}
}

// memberDirs are the directories of all that was ever launched.
func (r *rig) memberDirs() []string {
	r.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(r.state, "members", "*"))
	if err != nil {
		r.t.Fatal(err)
	}
	return dirs
}
