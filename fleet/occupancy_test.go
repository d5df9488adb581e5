package fleet_test

import (
	"testing"
	"time"

	"fleetdeck/fleet"
)

var (
	start = time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	now   = fleet.Instant{Wall: start, Mono: time.Hour, Boot: "boot-1", Host: "kite", Machine: "m1"}
	api   = fleet.Tree{Path: "/src/api", File: "1:10"}
)

// entry is a reservation of the tree api with left to run, written on this boot.
func entry(id string, left time.Duration) fleet.Entry {
	d := fleet.DeadlineAfter(now, left)
	return fleet.Entry{Tree: api.Path, Reservation: fleet.Reservation{
		ID: id, File: api.File, ExpiresAt: d.Wall, Boot: d.Boot,
		Dispatcher: fleet.Dispatcher{Host: now.Host, Machine: now.Machine},
	}}
}

func member(reservation string, state fleet.State) fleet.Roster {
	return fleet.Roster{Members: []fleet.Member{{ID: "m-" + reservation, Tree: api.Path, File: api.File, Reservation: reservation, State: state}}}
}

func TestOccupancyNeverShowsATakenTreeAsFree(t *testing.T) {
	launching := fleet.Roster{Launches: []fleet.Launch{{ID: "l", Tree: api.Path, Reservation: "r1", Deadline: fleet.DeadlineAfter(now, 30*time.Second)}}}
	elsewhere := entry("r1", time.Minute)
	elsewhere.Tree = "/mnt/bind/api"
	strangers := fleet.Roster{Foreign: []fleet.ForeignAgent{{Dir: "/mnt/bind/api/sub", Tree: "/mnt/bind/api", File: api.File}}}
	nameless := entry("", time.Minute)
	for _, tt := range []struct {
		name    string
		entries []fleet.Entry
		roster  fleet.Roster
		want    fleet.Occupied
	}{
		{"nobody", nil, fleet.Roster{}, fleet.Free},
		{"an entry whose grace runs", []fleet.Entry{entry("r1", time.Minute)}, fleet.Roster{}, fleet.Reserved},
		{"an entry whose grace ran out", []fleet.Entry{entry("r1", -time.Second)}, fleet.Roster{}, fleet.Free},
		{"a launch without an entry", nil, launching, fleet.Reserved},
		{"a launch whose entry ran out", []fleet.Entry{entry("r1", -time.Second)}, launching, fleet.Reserved},
		{"a live member", nil, member("r1", fleet.StateWorking), fleet.Taken},
		{"a live member whose entry is still there", []fleet.Entry{entry("r1", time.Minute)}, member("r1", fleet.StateIdle), fleet.Taken},
		{"a member that ended, its entry not pruned", []fleet.Entry{entry("r1", time.Minute)}, member("r1", fleet.StateExited), fleet.Free},
		{"a member that ended, and the entry of another", []fleet.Entry{entry("r2", time.Minute)}, member("r1", fleet.StateExited), fleet.Reserved},
		{"an entry under another path of the same directory", []fleet.Entry{elsewhere}, fleet.Roster{}, fleet.Reserved},
		{"a foreign agent", nil, strangers, fleet.Foreign},
		{"a foreign agent, and an entry whose grace runs", []fleet.Entry{entry("r1", time.Minute)}, strangers, fleet.Reserved},
		{"a foreign agent elsewhere", nil, fleet.Roster{Foreign: []fleet.ForeignAgent{{Dir: "/src/apis", Tree: "/src/apis", File: "1:11"}}}, fleet.Free},
		{"an entry without an id", []fleet.Entry{nameless}, fleet.Roster{}, fleet.Reserved},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fleet.Occupancy(api, tt.entries, tt.roster, now).State; got != tt.want {
				t.Errorf("Occupancy(…) = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestGraceIsDeafToTheWallClockOnItsOwnBoot(t *testing.T) {
	e := entry("r1", 90*time.Second)
	for _, step := range []time.Duration{-time.Hour, 0, time.Hour} {
		later := now
		later.Wall, later.Mono = now.Wall.Add(step+30*time.Second), now.Mono+30*time.Second
		if got, want := e.Remaining(later), 60*time.Second; got != want {
			t.Errorf("clock stepped by %s: Remaining = %s, want %s", step, got, want)
		}
		later.Mono = now.Mono + 91*time.Second
		if !e.Expired(later) {
			t.Errorf("clock stepped by %s: the grace goes on after its end", step)
		}
	}
}

func TestEntryOfAnEarlierBootIsStale(t *testing.T) {
	reboot := now
	reboot.Boot, reboot.Mono = "boot-2", time.Second
	other := reboot
	other.Host = "crow"
	clone := reboot
	clone.Machine = "m2"
	for _, tt := range []struct {
		name string
		at   fleet.Instant
		want bool
	}{
		{"the same boot", now, false},
		{"this host, rebooted", reboot, true},
		{"another host", other, false},
		{"another host of the same name", clone, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := entry("r1", time.Minute)
			if got := e.Expired(tt.at); got != tt.want {
				t.Errorf("Expired = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestJudgeDropsOnlyForAReason(t *testing.T) {
	relative := entry("r1", time.Minute)
	relative.Tree = "src/api"
	oldRelative := entry("r1", -time.Minute)
	oldRelative.Tree = "src/api"
	for _, tt := range []struct {
		name   string
		entry  fleet.Entry
		roster fleet.Roster
		want   fleet.Verdict
		drop   bool
	}{
		{"its grace runs", entry("r1", time.Minute), fleet.Roster{}, fleet.VerdictPending, false},
		{"its grace runs, another is listed there", entry("r1", time.Minute), member("r0", fleet.StateWorking), fleet.VerdictPending, false},
		{"its worker is listed", entry("r1", time.Minute), member("r1", fleet.StateWorking), fleet.VerdictListed, true},
		{"its worker was listed and ended", entry("r1", time.Minute), member("r1", fleet.StateExited), fleet.VerdictListed, true},
		{"its grace ran out", entry("r1", 0), fleet.Roster{}, fleet.VerdictExpired, true},
		{"no id, its time runs", entry("", time.Minute), fleet.Roster{Members: []fleet.Member{{Tree: api.Path}}}, fleet.VerdictInvalid, false},
		{"no absolute path, its time runs", relative, fleet.Roster{}, fleet.VerdictInvalid, false},
		{"no absolute path, its time is over", oldRelative, fleet.Roster{}, fleet.VerdictInvalid, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, drop := fleet.Judge(tt.entry, tt.roster, now); got != tt.want || drop != tt.drop {
				t.Errorf("Judge = %s, %t, want %s, %t", got, drop, tt.want, tt.drop)
			}
		})
	}
}
