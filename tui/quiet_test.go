package tui

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"fleetdeck/fleet"
)

// tape counts what a program writes.
type tape struct {
	mu     sync.Mutex // guards all below
	writes int
	bytes  int
}

func (w *tape) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes, w.bytes = w.writes+1, w.bytes+len(p)
	return len(p), nil
}

// during is how many bytes are written in d.
func (w *tape) during(d time.Duration) int {
	w.mu.Lock()
	before := w.bytes
	w.mu.Unlock()
	time.Sleep(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes - before
}

// onTape runs the whole console, the framework's renderer included, on the fake clock of a synctest bubble, over the
// fleet of a kind. The test begins when it has settled, at a full minute.
func onTape(t *testing.T, kind string, cols, rows int, test func(t *testing.T, w *tape, g *guard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() fleet.Instant { return instant(time.Since(start)) }
		ctx, fail := context.WithCancelCause(t.Context())
		m := New(newLoadFleet(kind, now), Options{Home: home})
		m.ctx = ctx
		g, w, ended := &guard{inner: m, fail: fail}, &tape{}, make(chan error, 1)
		go func() {
			ended <- runProgram(g, tea.WithContext(ctx), tea.WithInput(nil), tea.WithOutput(w), tea.WithWindowSize(cols, rows),
				tea.WithoutSignalHandler(), tea.WithEnvironment([]string{"TERM=xterm-256color"}))
		}()
		if w.during(time.Minute) == 0 {
			t.Error("the console draws nothing")
		}
		test(t, w, g)
		g.pulse.program.Quit()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		fail(nil)
		time.Sleep(2 * heartbeat) // the last tea.Ticks cannot be cancelled
	})
}

func TestAtRestNothingIsWritten(t *testing.T) {
	onTape(t, atRest, 120, 40, func(t *testing.T, w *tape, _ *guard) {
		// Between two full minutes, at which what has lasted an hour and a minute has lasted another.
		w.during(time.Second)
		if n := w.during(58 * time.Second); n != 0 {
			t.Errorf("%d bytes were written in 58 s in which nothing happened", n)
		}
	})
}

func TestFiftyCountdownsWriteLittle(t *testing.T) {
	full(t)
	onTape(t, countdowns, 200, 66, func(t *testing.T, w *tape, _ *guard) {
		const most = 2000
		for range 20 {
			if n := w.during(time.Second); n == 0 || n > most {
				t.Fatalf("%d bytes were written in a second, want some and at most %d", n, most)
			}
		}
	})
}

func TestRendererRestsWhileNothingIsDrawnAndWakesWithTheNextFrame(t *testing.T) {
	onTape(t, atRest, 120, 40, func(t *testing.T, w *tape, g *guard) {
		rests := func() bool {
			g.pulse.mu.Lock()
			defer g.pulse.mu.Unlock()
			return g.pulse.rests
		}
		if time.Sleep(time.Second); !rests() {
			t.Error("the renderer's clock goes on although nothing is drawn")
		}
		g.pulse.program.Send(keyOf("j"))
		if n := w.during(10 * time.Millisecond); n == 0 {
			t.Error("the frame that answers a key is not written within 10 ms on the renderer's clock")
		}
		if rests() {
			t.Error("the renderer's clock rests although a frame was drawn")
		}
	})
}

func TestFrameCostsNoMoreWhereThereAreMoreRows(t *testing.T) {
	cost := func(trees int, msg func(m *Model) tea.Msg) float64 {
		m := still(crowd(trees, trees/10), 120, 40, Options{Home: home})
		return testing.AllocsPerRun(5, func() {
			m.Update(msg(m))
			m.View()
		})
	}
	for _, tt := range []struct {
		name string
		msg  func(m *Model) tea.Msg
	}{
		{"a key", func(*Model) tea.Msg { return keyOf("j") }},
		{"a tick", func(*Model) tea.Msg { return tickMsg{} }},
		{"a snapshot", func(m *Model) tea.Msg { return snapshotMsg{gen: m.polling.gen, ix: newIndex(m.ix.Snapshot)} }},
	} {
		few, many := cost(1000, tt.msg), cost(10_000, tt.msg)
		if many > 1.5*few {
			t.Errorf("%s makes %.0f allocations with 10,000 trees and %.0f with 1,000", tt.name, many, few)
		}
	}
}
