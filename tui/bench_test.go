package tui

import (
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// crowd is a fleet of so many trees and members.
func crowd(trees, members int) fleet.Snapshot {
	now := instant(0)
	s := fleet.Snapshot{Rev: 1, At: now, Daemon: fleet.DaemonInfo{Running: true, Since: now.Wall, AnsweredAt: now.Wall}, File: fleet.FileInfo{ReadAt: now.Wall}, Lock: fleet.LockInfo{State: "free"}}
	states := []fleet.State{fleet.StateWorking, fleet.StateIdle, fleet.StateWaiting, fleet.StateDone}
	for i := range trees {
		t := fleet.TreeRow{Tree: fmt.Sprintf("%s/src/repository-%05d", home, i), Branch: fmt.Sprintf("feature/%d", i), Occupancy: fleet.Free, Dirty: i%3 == 0}
		switch {
		case i < members:
			m := fleet.Member{ID: fmt.Sprintf("01JE%08d", i), Tree: t.Tree, Role: "dev", Profile: "claude", State: states[i%len(states)], StartedAt: day, StateMessage: "running the tests"}
			s.Members = append(s.Members, m)
			t.Occupancy, t.Member = fleet.Taken, m.ID
		case i < members+50:
			d := fleet.DeadlineAfter(now, 90*time.Second)
			t.Occupancy, t.Deadline = fleet.Reserved, d
			s.Reservations = append(s.Reservations, fleet.ReservationRow{Tree: t.Tree, ID: t.Tree, Role: "dev", Profile: "claude", Verdict: fleet.VerdictPending, ReservedAt: day, ExpiresAt: d.Wall, Deadline: d})
		}
		s.Trees = append(s.Trees, t)
	}
	for i := range 500 {
		s.Events = append(s.Events, fleet.Event{Seq: uint64(i + 1), Time: day.Add(time.Duration(i) * time.Second), Level: levelInfo, Kind: "listed", Tree: s.Trees[i%trees].Tree, Message: "dev on claude is listed"})
	}
	return s
}

// BenchmarkKeypress is from a key to the frame that answers it.
func BenchmarkKeypress(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("%d_trees", n), func(b *testing.B) {
			m := still(crowd(n, n/10), 120, 40, Options{Home: home})
			keys := []tea.KeyPressMsg{keyOf("j"), keyOf("j"), keyOf("j"), keyOf("k")}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.Update(keys[i%len(keys)])
				m.View()
			}
		})
	}
}

// BenchmarkFilter is from a typed letter to the frame with what matches.
func BenchmarkFilter(b *testing.B) {
	m := still(crowd(10_000, 1000), 120, 40, Options{Home: home})
	typed(m, "/")
	keys := []tea.KeyPressMsg{keyOf("9"), keyOf("backspace")}
	for i := 0; b.Loop(); i++ {
		m.Update(keys[i%2])
		m.View()
	}
}

// BenchmarkSnapshot is from a snapshot to the frame that shows it.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("%d_trees", n), func(b *testing.B) {
			s := crowd(n, n/10)
			m := still(s, 120, 40, Options{Home: home})
			b.ReportAllocs()
			for b.Loop() {
				m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(s)})
				m.View()
			}
		})
	}
}

// BenchmarkStorm is a tenth of a second of a storm: from a snapshot with twenty changes to the frame that shows them, however
// the list is ordered.
func BenchmarkStorm(b *testing.B) {
	for _, tt := range []struct {
		name string
		keys []string
	}{
		{"usual_order", nil}, {"sorted_by_now", []string{">", ">", ">", ">"}}, {"grouped_by_repository", []string{"b"}},
		{"filtered", []string{"/", "9", "enter"}}, {"faults", []string{"f"}}, {"members", []string{"2"}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			at := time.Duration(0)
			f := newLoadFleet(storm, func() fleet.Instant { return instant(at) })
			m := still(f.snap, 120, 40, Options{Home: home})
			typed(m, tt.keys...)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				at += 100 * time.Millisecond
				s, err := f.Snapshot(b.Context(), 0)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				m.Update(snapshotMsg{gen: m.polling.gen, ix: newIndex(s)})
				m.View()
			}
		})
	}
}

// BenchmarkOrder is from a key that orders or narrows 10,000 trees to the frame that shows them.
func BenchmarkOrder(b *testing.B) {
	for _, tt := range []struct{ name, key string }{{"sort", ">"}, {"reverse", "-"}, {"group", "b"}, {"faults", "f"}, {"last_row", "G"}} {
		b.Run(tt.name, func(b *testing.B) {
			m := still(crowd(10_000, 1000), 120, 40, Options{Home: home})
			for b.Loop() {
				m.Update(keyOf(tt.key))
				m.View()
			}
		})
	}
}

// BenchmarkCountdown is one tick with fifty graces on the screen.
func BenchmarkCountdown(b *testing.B) {
	m := still(crowd(60, 0), 200, 60, Options{Home: home})
	for b.Loop() {
		m.Update(tickMsg{})
		m.View()
	}
}
