package observe

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
)

// TestSnapshotSaysWhatOccupancySaysOfTheWholeLook holds the index, which spares most of the comparisons, against the rule.
func TestSnapshotSaysWhatOccupancySaysOfTheWholeLook(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	now := process.Now()
	// Few names of each kind, so that rows meet; a tree may be known by its path, by its file or by both.
	name := func() fleet.Tree {
		x := fleet.Tree{Path: fmt.Sprintf("/t%d", random.IntN(5))}
		if random.IntN(3) > 0 {
			x.File = fleet.FileID(fmt.Sprintf("1:%d", random.IntN(5)))
		}
		return x
	}
	id := func() string { return [...]string{"", "a", "b", "c", "d"}[random.IntN(5)] }
	for range 5000 {
		l := look{daemon: fleet.DaemonInfo{Running: true}}
		for range random.IntN(4) {
			x := name()
			expires := now.Wall.Add(time.Duration(random.IntN(3)-1) * time.Minute)
			l.entries = append(l.entries, fleet.Entry{Tree: x.Path + [...]string{"", "/"}[random.IntN(2)], Reservation: fleet.Reservation{ID: id(), File: x.File, ExpiresAt: expires}})
		}
		also := func() (trees []fleet.Tree) {
			for range random.IntN(3) {
				trees = append(trees, name())
			}
			return trees
		}
		for i := range random.IntN(3) {
			x := name()
			l.roster.Launches = append(l.roster.Launches, fleet.Launch{ID: fmt.Sprint("l", i), Tree: x.Path, File: x.File, Reservation: id(), Deadline: fleet.DeadlineAfter(now, time.Minute), Also: also()})
		}
		for i := range random.IntN(4) {
			x := name()
			state := [...]fleet.State{fleet.StateWorking, fleet.StateExited}[random.IntN(2)]
			l.roster.Members = append(l.roster.Members, fleet.Member{ID: fmt.Sprint("m", i), Tree: x.Path, File: x.File, Reservation: id(), State: state, Also: also()})
		}
		for i := range random.IntN(3) {
			f := fleet.ForeignAgent{Process: fleet.Process{Pid: i + 1}, Agent: "claude"}
			if x := name(); random.IntN(2) > 0 {
				f.Tree, f.File, f.Dir = x.Path, x.File, x.Path+"/sub"
			} else {
				f.Dir = x.Path + [...]string{"", "/sub/dir"}[random.IntN(2)]
			}
			l.roster.Foreign = append(l.roster.Foreign, f)
		}
		var trees []fleet.Tree
		var want fleet.Snapshot
		for range 4 {
			x := name()
			trees = append(trees, x)
			want.Trees = append(want.Trees, treeRow(x, fleet.Occupancy(x, l.entries, l.roster, now), now))
		}
		got := Sources{}.snapshot(l, trees, now)
		if d := cmp.Diff(want.Trees, got.Trees); d != "" {
			t.Fatalf("trees of %+v differ from the rule's (-rule +snapshot):\n%s", l, d)
		}
		for i, e := range l.entries {
			verdict, droppable := fleet.Judge(e, l.roster, now)
			if r := got.Reservations[i]; r.Verdict != verdict || r.Droppable != droppable {
				t.Fatalf("%+v in %+v is %s, droppable %t, want %s, %t", e, l, r.Verdict, r.Droppable, verdict, droppable)
			}
		}
	}
}

// What nobody can be asked about is not free: who reads "free" sends an agent there.
func TestNoTreeIsShownAsFreeWhileNobodyKnows(t *testing.T) {
	x := fleet.Tree{Path: "/src/api"}
	for name, l := range map[string]look{
		"the daemon does not answer":    {daemon: fleet.DaemonInfo{Error: "connection refused"}},
		"the file cannot be read":       {daemon: fleet.DaemonInfo{Running: true}, file: fleet.FileInfo{Error: "line 3"}},
		"its last member was elsewhere": {roster: fleet.Roster{Members: []fleet.Member{{ID: "m", Tree: "/src/web"}}}},
	} {
		if got := (Sources{}).snapshot(l, []fleet.Tree{x}, fleet.Instant{}).Trees[0].Occupancy; got != fleet.Unsure {
			t.Errorf("%s: shown as %q", name, got)
		}
	}
}
