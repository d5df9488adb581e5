package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
)

func TestTreeSaysHowFarItIsFromItsUpstream(t *testing.T) {
	tests := []struct {
		name          string
		ahead, behind int
		upstream      string
		short, words  string
	}{
		{"none", 0, 0, "", "", ""},
		{"level", 0, 0, "origin/main", "=", "level with origin/main"},
		{"ahead", 1, 0, "origin/main", "↑1", "1 commit ahead of origin/main"},
		{"behind", 0, 3, "origin/main", "↓3", "3 commits behind origin/main"},
		{"both", 2, 3, "origin/main", "↑2 ↓3", "2 commits ahead of origin/main, 3 behind"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			row := &fleet.TreeRow{Branch: "fix", Upstream: tt.upstream, Ahead: tt.ahead, Behind: tt.behind}
			if got := apart(row); got != tt.short {
				t.Errorf("apart = %q, want %q", got, tt.short)
			}
			if got := work(row, 80); tt.upstream != "" && got != "fix · clean · "+tt.words {
				t.Errorf("work = %q, want %q in it", got, tt.words)
			}
		})
	}
}

func TestDirtAndUpstreamAreInEachTreesDetail(t *testing.T) {
	s := example(instant(0))
	for i := range s.Trees {
		s.Trees[i].Upstream, s.Trees[i].Ahead, s.Trees[i].Behind = "origin/main", 2, 1
	}
	for _, keys := range [][]string{{}, {"j", "j"}, {"2"}} { // with a member, without one, in the list of members
		m := typed(still(s, 120, 40, Options{Home: home}), keys...)
		frame := ansi.Strip(m.View().Content)
		if !strings.Contains(frame, "2 commits ahead of origin/main, 1 behind") && !strings.Contains(frame, "importer-resume * · ↑2 ↓1 origin/main") {
			t.Errorf("%v: the detail does not say it:\n%s", keys, frame)
		}
	}
	m := still(s, 200, 60, Options{Home: home})
	if frame := ansi.Strip(m.View().Content); !strings.Contains(frame, "UPSTREAM") || !strings.Contains(frame, "↑2 ↓1") {
		t.Errorf("a wide list has no column of it:\n%s", frame)
	}
}

func TestMemberOfSeveralTreesIsShownInEachOfThem(t *testing.T) {
	inLoopOf(t, func(f *fakeFleet) {
		f.snap.Members[0].Also = []fleet.Tree{{Path: home + "/src/docs"}, {Path: home + "/src/mobile"}}
		for _, i := range []int{2, 5} {
			f.snap.Trees[i].Occupancy, f.snap.Trees[i].Member = fleet.Taken, f.snap.Members[0].ID
		}
	}, Options{Home: home}, func(t *testing.T, l *loop) {
		holds := "holds ~/src/api, ~/src/docs, ~/src/mobile"
		l.wants(holds)
		l.press("j", "j")
		l.pass(time.Second)
		l.wants(holds, "─ docs", "with api")
		l.press("2")
		l.wants(holds, "~/src/api +2")
		l.press("/")
		l.typeText("mobile")
		l.wants("~/src/api +2")
		l.press("enter", "X")
		l.pass(time.Second)
		l.wants("Stop this member?", "~/src/docs, ~/src/mobile")
	})
}
