package tui

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"fleetdeck/fleet"
	"fleetdeck/fleet/screen"
)

// loadEnv makes the test binary a console over a [loadFleet]. Its value says which.
const loadEnv = "FLEETDECK_TEST_LOAD"

// The fleets that the console is measured over.
const (
	atRest     = "rest"       // a hundred trees where nothing happens
	countdowns = "countdowns" // fifty graces on one screen
	storm      = "storm"      // 10,000 trees and 1,000 members with 200 changes a second
)

const (
	// changeEvery is the time between two changes of a storm.
	changeEvery = 5 * time.Second / 1000
	// renewEvery is how often an observer says that nothing is new.
	renewEvery = 5 * time.Second
)

// loadFleet is a fleet that lives by the clock alone, as an observer shows it.
type loadFleet struct {
	*fakeFleet
	every time.Duration // between two changes

	mu   sync.Mutex // guards all below
	made uint64     // changes
	snap fleet.Snapshot
}

// newLoadFleet makes the fleet of a kind as it is at the moment now() gives.
func newLoadFleet(kind string, now func() fleet.Instant) *loadFleet {
	var s fleet.Snapshot
	every := renewEvery
	switch kind {
	case countdowns:
		s = crowd(60, 0)
	case storm:
		s, every = crowd(10_000, 1000), changeEvery
	default:
		s = crowd(100, 0)
		s.Reservations = nil
		for i := range s.Trees {
			s.Trees[i].Occupancy, s.Trees[i].Deadline = fleet.Free, fleet.Deadline{}
		}
	}
	f := &loadFleet{fakeFleet: newFake(s), every: every, snap: s}
	f.now = now
	at := now()
	f.snap.Daemon.Since = at.Wall.Add(-2 * time.Hour)
	for i := range s.Members {
		s.Members[i].StartedAt = at.Wall.Add(-time.Hour)
	}
	// Graces that outlast every measurement, each of its own length.
	left := func(i int) fleet.Deadline {
		return fleet.DeadlineAfter(at, 59*time.Minute+time.Duration(i)*time.Second)
	}
	for i := range s.Reservations {
		s.Reservations[i].Deadline = left(i)
	}
	for i := range s.Trees {
		if s.Trees[i].Occupancy == fleet.Reserved {
			s.Trees[i].Deadline = left(i)
		}
	}
	f.renew(at)
	return f
}

// Snapshot makes the changes that are due, if it must wait for the next.
func (f *loadFleet) Snapshot(ctx context.Context, rev uint64) (fleet.Snapshot, error) {
	for {
		f.mu.Lock()
		at := f.now()
		due := uint64(at.Wall.Sub(f.began()) / f.every)
		for ; f.made < due; f.made++ {
			f.change(f.made, at)
		}
		f.renew(at)
		s, next := f.copy(), f.began().Add(time.Duration(due+1)*f.every).Sub(at.Wall)
		f.mu.Unlock()
		if s.Rev > rev {
			return s, nil
		}
		if !sleep(ctx, next) {
			return fleet.Snapshot{}, ctx.Err()
		}
	}
}

func (f *loadFleet) began() time.Time { return f.snap.Daemon.Since.Add(2 * time.Hour) }

// renew says that what is known is known now.
func (f *loadFleet) renew(at fleet.Instant) {
	f.snap.Rev = f.made + 1
	f.snap.At, f.snap.File.ReadAt, f.snap.Daemon.AnsweredAt = at, at.Wall, at.Wall
}

// change makes the nth change: a member says something else, or a tree gets dirty, and now and then there is an event.
func (f *loadFleet) change(n uint64, at fleet.Instant) {
	if len(f.snap.Members) == 0 {
		return
	}
	s := &f.snap
	x := &s.Members[n*7%uint64(len(s.Members))]
	states := []fleet.State{fleet.StateWorking, fleet.StateIdle, fleet.StateDone}
	x.State, x.StateMessage = states[n%3], "step "+strconv.FormatUint(n, 10)
	if n%4 == 0 {
		t := &s.Trees[n*13%uint64(len(s.Trees))]
		t.Dirty = !t.Dirty
	}
	if n%10 == 0 {
		last := s.Events[len(s.Events)-1].Seq
		s.Events = append(s.Events[1:len(s.Events):len(s.Events)], fleet.Event{Seq: last + 1, Time: at.Wall, Level: levelInfo, Kind: "listed", Tree: x.Tree, Message: "step " + strconv.FormatUint(n, 10)})
	}
}

// copy is the snapshot with rows of its own, as an observer makes one.
func (f *loadFleet) copy() fleet.Snapshot {
	s := f.snap
	s.Trees, s.Members, s.Reservations = slices.Clone(s.Trees), slices.Clone(s.Members), slices.Clone(s.Reservations)
	return s
}

// Screen changes ten times a second in a storm, and never otherwise.
func (f *loadFleet) Screen(ctx context.Context, _ string, rev uint64) (fleet.Screen, error) {
	if rev > 0 && (f.every != changeEvery || !sleep(ctx, 100*time.Millisecond)) {
		<-ctx.Done()
		return fleet.Screen{}, ctx.Err()
	}
	s := apiScreen()
	s.Rev = rev + 1
	s.Styled[len(s.Styled)-1] = fmt.Sprintf("\x1b[2mline %d\x1b[m", s.Rev)
	return s, nil
}

func loadMain(kind string) int {
	start := time.Now()
	now := func() fleet.Instant {
		return fleet.Instant{Wall: time.Now(), Mono: time.Hour + time.Since(start), Boot: testBoot, Host: "kite"}
	}
	if err := Run(context.Background(), newLoadFleet(kind, now), Options{Home: home}); err != nil {
		fmt.Fprintln(os.Stderr, "fleetdeck: error:", err)
		return 1
	}
	return 0
}

// measured is a console in a terminal of its own, with what it costs.
type measured struct {
	b   *testing.B
	cmd *exec.Cmd
	pty *os.File

	mu     sync.Mutex // guards all below
	screen *screen.Screen
	bytes  int
	more   chan struct{} // closed at the next output
	seen   func(lines []string, read time.Time)
}

// measure runs a console over the fleet of a kind and waits until it shows that.
func measure(b *testing.B, kind string, cols, rows uint16) *measured {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	x := &measured{b: b, cmd: exec.Command(exe), screen: screen.New(int(cols), int(rows)), more: make(chan struct{})}
	x.cmd.Env = append(os.Environ(), loadEnv+"="+kind, "TERM=xterm-256color")
	if x.pty, err = pty.StartWithSize(x.cmd, &pty.Winsize{Cols: cols, Rows: rows}); err != nil {
		b.Skipf("no pseudo-terminal can be opened here: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 1<<15)
		for {
			n, err := x.pty.Read(buf)
			now := time.Now()
			x.mu.Lock()
			x.screen.Write(buf[:n])
			x.bytes += n
			if x.seen != nil {
				x.seen(x.screen.Snapshot().Lines, now)
			}
			close(x.more)
			x.more = make(chan struct{})
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	b.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		_ = x.cmd.Wait()
		x.pty.Close()
		<-ended
		x.screen.Close()
	})
	x.await(func(lines []string) bool { return strings.Contains(strings.Join(lines, "\n"), "repository-00000") })
	time.Sleep(2 * time.Second) // it settles: the terminal answers none of its questions
	return x
}

// watch has seen called with the screen after each output.
func (x *measured) watch(seen func(lines []string, read time.Time)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen = seen
}

// await waits until the screen is as wanted.
func (x *measured) await(ok func(lines []string) bool) {
	x.b.Helper()
	deadline := time.After(20 * time.Second)
	for {
		x.mu.Lock()
		lines, more := x.screen.Snapshot().Lines, x.more
		x.mu.Unlock()
		if ok(lines) {
			return
		}
		select {
		case <-more:
		case <-deadline:
			x.b.Fatalf("the console does not show it:\n%s", strings.Join(lines, "\n"))
		}
	}
}

// cost is what a process has cost so far.
type cost struct {
	at    time.Time
	cpu   time.Duration
	rss   float64 // in MB
	bytes int
}

func (x *measured) cost() cost {
	c := cost{at: time.Now()}
	x.mu.Lock()
	c.bytes = x.bytes
	x.mu.Unlock()
	dir := filepath.Join("/proc", strconv.Itoa(x.cmd.Process.Pid))
	if stat, err := os.ReadFile(filepath.Join(dir, "stat")); err == nil {
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		for _, f := range fields[11:13] { // utime and stime, in hundredths of a second
			n, _ := strconv.Atoi(string(f))
			c.cpu += time.Duration(n) * 10 * time.Millisecond
		}
	}
	if statm, err := os.ReadFile(filepath.Join(dir, "statm")); err == nil {
		n, _ := strconv.Atoi(string(bytes.Fields(statm)[1]))
		c.rss = float64(n*os.Getpagesize()) / 1e6
	}
	return c
}

// report gives what was written and used since before, by the second.
func (x *measured) report(before cost) {
	after := x.cost()
	took := after.at.Sub(before.at).Seconds()
	x.b.ReportMetric(float64(after.bytes-before.bytes)/took, "B/s")
	x.b.ReportMetric(100*(after.cpu-before.cpu).Seconds()/took, "core-%")
	x.b.ReportMetric(before.rss, "MB-begin")
	x.b.ReportMetric(after.rss, "MB-end")
	x.b.ReportMetric(0, "ns/op") // the time is fixed
}

// BenchmarkConsole measures the console as a process in a terminal. One round is one second.
func BenchmarkConsole(b *testing.B) {
	for _, tt := range []struct {
		kind       string
		cols, rows uint16
	}{{atRest, 120, 40}, {countdowns, 200, 66}, {storm, 120, 40}} {
		b.Run(tt.kind, func(b *testing.B) {
			x := measure(b, tt.kind, tt.cols, tt.rows)
			before := x.cost()
			for b.Loop() {
				time.Sleep(time.Second)
			}
			x.report(before)
		})
	}
}

// cursorRow finds the number of the tree that the cursor is on.
var cursorRow = regexp.MustCompile(`(?m)^▌.*repository-(\d+)`)

// BenchmarkHeldKey holds a key down during a storm, and takes the time until each press shows. One round is one press.
func BenchmarkHeldKey(b *testing.B) {
	x := measure(b, storm, 120, 40)
	var (
		mu      sync.Mutex // guards both below
		pressed []time.Time
		took    []time.Duration
	)
	x.watch(func(lines []string, read time.Time) {
		mu.Lock()
		defer mu.Unlock()
		if row := cursorRow.FindStringSubmatch(strings.Join(lines, "\n")); row != nil {
			for n, _ := strconv.Atoi(row[1]); len(took) < min(n, len(pressed)); {
				took = append(took, read.Sub(pressed[len(took)]))
			}
		}
	})
	before := x.cost()
	key := time.NewTicker(37 * time.Millisecond) // no multiple of a frame, so that every phase comes up
	defer key.Stop()
	for b.Loop() {
		<-key.C
		mu.Lock()
		pressed = append(pressed, time.Now())
		mu.Unlock()
		if _, err := x.pty.WriteString("j"); err != nil {
			b.Fatal(err)
		}
	}
	x.await(func([]string) bool {
		mu.Lock()
		defer mu.Unlock()
		return len(took) == len(pressed)
	})
	x.report(before)
	slices.Sort(took)
	for _, p := range []int{50, 99, 100} {
		b.ReportMetric(took[max(len(took)*p/100, 1)-1].Seconds()*1000, fmt.Sprintf("ms-p%d", p))
	}
}
