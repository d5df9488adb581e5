package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/lockfile"
)

var soakFor = flag.Duration("soak", 3*time.Second, "how long TestSoak works a fleet hard")

const (
	soakLanes  = 4 // launches under way at once
	soakConfig = `
grace = "60s"
lock_wait = "20s"
prune_wait = "500ms"
roots = ["DIR/src"]
[profiles.steady]
command = ["sh", "-c", "while :; do echo still here; sleep 0.2; done"]
[profiles.worker]
command = ["sh", "-c", "echo at work; exec cat"]
ready = "output"
[profiles.chore]
command = ["sh", "-c", "echo through; sleep 0.2"]
[profiles.talker]
command = ["sh", "-c", "yes 'a line of what agents print all day long' | head -c 5000000; exec sleep 600"]
[profiles.dies]
command = ["sh", "-c", "exit 9"]
ready = "pattern:never"
[profiles.hangs]
command = ["sh", "-c", "exec sleep 600"]
ready = "pattern:never"
[[staff]]
tree = "DIR/src/kept"
profile = "chore"
restart = "always"
[keeper]
interval = "1s"
backoff = "1s"
backoff_max = "1s"
`
)

// soak is a fleet that is worked hard: agents come and go in every way, while a console, followers and lookers look on.
type soak struct {
	*rig
	book     *book.Book
	daemon   *client.Client
	d        *dispatch.Dispatcher
	console  *terminal
	steady   string // the member that lives from the beginning to the end
	patients map[string]*patient
	launches atomic.Int64
	rotated  atomic.Int64 // logs that were seen to be
	seen     atomic.Int64 // events
	late     atomic.Int64 // what was given up, or refused, because the machine was busy
	last     uint64       // the event that the follower saw last
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{rig: newRig(t, soakConfig), patients: map[string]*patient{}}
	for i := range soakLanes {
		s.repo(fmt.Sprintf("lane-%d", i))
	}
	for _, name := range []string{"steady", "kept", "reserved"} {
		s.repo(name)
	}
	door := func(name string) string { return filepath.Join(s.dir, name+".vitals") }
	up := s.command("up")
	up.Env = append(os.Environ(), vitalsEnv+"="+door("daemon"))
	up.Args = append(up.Args, "--foreground")
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	go up.Wait() // the rig ends it
	s.daemon = client.New(filepath.Join(s.state, "fleetd.sock"), "")
	s.await("the daemon answers", func() bool { _, err := s.daemon.Health(t.Context()); return err == nil })
	var err error
	if s.book, err = book.Open(s.state, process.Now); err != nil {
		t.Fatal(err)
	}
	s.d = &dispatch.Dispatcher{Ledger: s.book, Daemon: s.daemon, LockWait: 20 * time.Second, Grace: time.Minute,
		Now: process.Now, Self: fleet.Dispatcher{Program: "soak"}}

	console := s.command("--no-color")
	console.Env = append(os.Environ(), vitalsEnv+"="+door("console"))
	s.console = s.in(120, 40, console)
	s.console.shows("steady")

	out, err := s.d.Dispatch(t.Context(), s.order("steady", "steady"))
	if err == nil {
		out, err = s.d.Wait(t.Context(), out)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.steady = out.Member
	if _, err := s.daemon.Screen(t.Context(), s.steady, 0); err != nil { // the screen of one that lives is kept
		t.Fatal(err)
	}
	s.patients["daemon"] = newPatient(up.Process.Pid, door("daemon"))
	s.patients["console"] = newPatient(console.Process.Pid, door("console"))
	for _, pid := range marked(filepath.Join("members", s.steady)) {
		if strings.Contains(commandLine(pid), "\x00holder\x00") {
			s.patients["holder"] = newPatient(pid, "")
		}
	}
	if s.patients["holder"] == nil {
		t.Fatal("the agent has no holder")
	}
	return s
}

func (s *soak) order(tree, profile string) fleet.Order {
	return fleet.Order{Tree: filepath.Join(s.dir, "src", tree), Role: fleet.RoleDev, Profile: profile}
}

// launch is one agent's way from its dispatch to a tree that is free again.
func (s *soak) launch(ctx context.Context, tree, profile string) error {
	s.launches.Add(1)
	order := s.order(tree, profile)
	if profile == "hangs" {
		order.Grace = time.Second
	}
	out, err := s.d.Dispatch(ctx, order)
	if r := fleet.RefusalOf(err); r != nil && r.Code == fleet.CodeReservationStale && profile == "hangs" {
		return nil // on a machine that busy it came too late
	}
	if err != nil {
		return fmt.Errorf("dispatch %s: %w", profile, err)
	}
	id := out.Member
	out, err = s.d.Wait(ctx, out)
	fails := profile == "dies" || profile == "hangs"
	if fails != (err != nil) && profile != "chore" { // which may be through before it is listed
		return fmt.Errorf("wait for %s: %+v, %w", profile, out, err)
	}
	switch profile {
	case "worker":
		_, err = s.daemon.Screen(ctx, id, 0)
		err = errors.Join(err, s.daemon.Send(ctx, id, "a line", true), s.daemon.Stop(ctx, id))
	case "talker":
		err = errors.Join(s.talks(ctx, id), s.daemon.Stop(ctx, id))
	default:
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", profile, id, err)
	}
	return until(ctx, "the tree of "+profile+" is free", func() (bool, error) {
		roster, err := s.daemon.Roster(ctx)
		if err != nil {
			return false, err
		}
		entries, err := s.book.Read()
		return fleet.Occupancy(fleet.Tree{Path: order.Tree}, entries, roster, process.Now()).State == fleet.Free, err
	})
}

// talks waits until an agent has said all that it has to say, which is more than its logs hold.
func (s *soak) talks(ctx context.Context, id string) error {
	const limit = 8 << 20 // of a member, as the daemon sets it
	dir := filepath.Join(s.state, "members", id)
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	err := until(ctx, "the log is rotated", func() (bool, error) { return size("log.1") > 0, nil })
	if n := size("log") + size("log.1"); n > limit {
		return fmt.Errorf("the logs of %s have %d bytes, want at most %d", id, n, limit)
	}
	s.rotated.Add(1)
	return err
}

// until waits for a condition.
func until(ctx context.Context, what string, ok func() (bool, error)) error {
	deadline := time.Now().Add(4 * patience) // the machine may be busy for longer than a user would wait
	for {
		done, err := ok()
		if done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s", what, patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// soakWays are the launches of a lane, one after the other.
var soakWays = []string{"worker", "chore", "dies", "worker", "hangs", "talker", "chore"}

// work is everything that goes on at once.
func (s *soak) work() (all []func(ctx context.Context, round int) error) {
	for lane := range soakLanes {
		all = append(all, func(ctx context.Context, round int) error {
			return s.launch(ctx, fmt.Sprintf("lane-%d", lane), soakWays[(round+lane)%len(soakWays)])
		})
	}
	return append(all,
		func(ctx context.Context, _ int) error { // a dispatcher that dies, and a prune
			order := s.order("reserved", "worker")
			order.Grace = 300 * time.Millisecond
			e, err := s.d.Reserve(ctx, order)
			if err != nil {
				return err
			}
			return until(ctx, "the entry is pruned", func() (bool, error) {
				roster, err := s.daemon.Roster(ctx)
				if err != nil {
					return false, err
				}
				if _, err := s.book.Prune(ctx, 20*time.Second, roster); err != nil {
					return false, err
				}
				entries, err := s.book.Read()
				return !slices.ContainsFunc(entries, func(x fleet.Entry) bool { return x.ID == e.ID }), err
			})
		},
		func(ctx context.Context, _ int) error { // a follower, who leaves and comes back
			ctx, leave := context.WithTimeout(ctx, 2*time.Second)
			defer leave()
			err := s.daemon.Events(ctx, s.last, true, func(e fleet.Event) {
				s.last = e.Seq
				s.seen.Add(1)
			})
			if ctx.Err() != nil {
				return nil
			}
			return err
		},
		func(ctx context.Context, _ int) error { // somebody who looks at screens and logs
			roster, err := s.daemon.Roster(ctx)
			if err != nil {
				return err
			}
			for _, m := range roster.Members {
				if !m.Alive() {
					continue
				}
				if _, err := s.daemon.Screen(ctx, m.ID, 0); err != nil && fleet.RefusalOf(err) == nil {
					return err
				}
			}
			log, err := s.daemon.Log(ctx, s.steady, false)
			if err != nil {
				return err
			}
			return errors.Join(log.Close(), rest(ctx, 200*time.Millisecond))
		},
		func(ctx context.Context, round int) error { // the operator
			keys := []string{"j", "j", "2", "k", "3", "j", "4", "\t", "1", "?", "\x1b", "j", "6", "1"}
			if _, err := s.console.pty.WriteString(keys[round%len(keys)]); err != nil {
				return err
			}
			return rest(ctx, 150*time.Millisecond)
		},
		func(ctx context.Context, round int) error { // a script
			commands := [][]string{{"status"}, {"trees"}, {"prune"}, {"events"}, {"screen", s.steady}, {"reservations"}}
			args := commands[round%len(commands)]
			if out, errs, code := s.fleetdeck(args...); code == 4 || code == 6 {
				s.late.Add(1)
			} else if code != 0 {
				return fmt.Errorf("%v: exit %d: %s%s", args, code, out, errs)
			}
			return rest(ctx, time.Second)
		})
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return nil
}

// churn works the fleet hard for a time, and calls each now and then.
func (s *soak) churn(d time.Duration, each func()) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	var ended atomic.Bool
	var wg sync.WaitGroup
	for _, work := range s.work() {
		wg.Go(func() {
			for round := 0; !ended.Load(); round++ {
				err := work(ctx, round)
				if err == nil || ctx.Err() != nil {
					continue
				}
				if r := fleet.RefusalOf(err); errors.Is(err, context.DeadlineExceeded) || r != nil && (r.Code == fleet.CodeLockBusy || r.Code == fleet.CodeLaunchFailed) {
					s.late.Add(1) // slow is not what this is about
					continue
				}
				s.t.Error(err)
				return
			}
		})
	}
	every := max(d/120, 200*time.Millisecond)
	for end := time.Now().Add(d); time.Now().Before(end) && !s.t.Failed(); {
		time.Sleep(every)
		each()
	}
	ended.Store(true)
	// Launches under way end in their own time; who only looks on is sent home then.
	s.await("no agent is left but the steady one", func() bool {
		roster, err := s.daemon.Roster(ctx)
		if err != nil || len(roster.Launches) > 0 {
			return false
		}
		return !slices.ContainsFunc(roster.Members, func(m fleet.Member) bool { return m.Alive() && m.ID != s.steady })
	})
	stop()
	wg.Wait()
}

// quiet is the least that each process uses in a second or two in which nothing but the keeper does anything.
func (s *soak) quiet() map[string]vitals {
	s.t.Helper()
	least := map[string]vitals{}
	for i := range 15 {
		for name, v := range s.look(true) {
			if l, ok := least[name]; ok && i > 0 {
				v = vitals{min(l.RSS, v.RSS), min(l.Threads, v.Threads), min(l.Descriptors, v.Descriptors), min(l.Goroutines, v.Goroutines), min(l.Heap, v.Heap)}
			}
			least[name] = v
		}
		time.Sleep(100 * time.Millisecond)
	}
	return least
}

func (s *soak) look(heap bool) map[string]vitals {
	s.t.Helper()
	now := map[string]vitals{}
	for name, p := range s.patients {
		v, err := p.look(heap)
		if err != nil {
			s.t.Fatalf("look at the %s: %v", name, err)
		}
		now[name] = v
	}
	return now
}

// records is how many launches and members the daemon remembers.
func (s *soak) records() int {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.state, "registry.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	doc, err := lockfile.Parse(data, "fleetdeck.registry/1")
	if err != nil {
		s.t.Fatal(err)
	}
	return doc.Len()
}

// What may grow, and by how much. The daemon remembers each agent for an hour after its end, since a keeper may ask, and
// so does a console; the newest events stay in memory up to a bound. All else has to be what it was.
const (
	perRecord = 0.006 // MB of live heap for a record: twice what was measured
	forEvents = 4.0   // MB of live heap: the daemon's 8,192 events, a console's 1,000
	// loose is goroutines and descriptors: connections that the churn's own client keeps for half a minute, each with two
	// goroutines at the daemon.
	loose = 2*soakLanes + 2
	// unread is RSS over live heap: a collection starts when the heap has doubled, and freed pages go back later.
	unread = 2.5
)

// Work that goes on for hours must leave every process as small as it found it, every descriptor closed, and no file
// behind but the records that are kept on purpose.
func TestSoakLeavesNothingThatGrows(t *testing.T) {
	t.Parallel()
	full(t)
	if runtime.GOOS != "linux" {
		t.Skip("memory and descriptors of other processes are read from /proc")
	}
	s := newSoak(t)
	before, recordsBefore := s.quiet(), s.records()
	var samples []map[string]vitals
	var records []int
	s.churn(*soakFor, func() {
		samples, records = append(samples, s.look(false)), append(records, s.records())
	})
	grown := s.records() - recordsBefore
	most := func(name string) float64 { return before[name].Heap + forEvents + perRecord*float64(grown) }
	// The screens that were looked at are put away after a minute.
	after := s.quiet()
	for end := time.Now().Add(2 * time.Minute); after["daemon"].Heap > most("daemon") && time.Now().Before(end); {
		after = s.quiet()
	}
	t.Logf("%s: %d launches, %d records more, %d logs seen rotated, %d events followed, %d calls given up", *soakFor, s.launches.Load(), grown, s.rotated.Load(), s.seen.Load(), s.late.Load())
	if s.late.Load() > s.launches.Load() {
		t.Errorf("%d calls were given up in %d launches: that was no work", s.late.Load(), s.launches.Load())
	}

	for name := range s.patients {
		b, a := before[name], after[name]
		t.Logf("%-8s at rest before %+v, after %+v", name, b, a)
		if a.Goroutines > b.Goroutines+loose {
			t.Errorf("the %s has %d goroutines after %d launches, and had %d", name, a.Goroutines, s.launches.Load(), b.Goroutines)
		}
		if a.Descriptors > b.Descriptors+loose {
			t.Errorf("the %s has %d descriptors after %d launches, and had %d", name, a.Descriptors, s.launches.Load(), b.Descriptors)
		}
		if a.Heap > most(name) {
			t.Errorf("the %s has %.1f MB of live heap, want at most %.1f: it had %.1f, and %d records came", name, a.Heap, most(name), b.Heap, grown)
		}
		s.flat(name, samples, records)
	}
	s.files()
}

// flat compares the last third of a process's samples with the second: in the first it comes to the screens that are looked at, each
// of which it keeps for a minute, and its heap finds its size. Runs that are too short for that are only told.
func (s *soak) flat(name string, samples []map[string]vitals, records []int) {
	third := len(samples) / 3
	if third == 0 {
		return
	}
	median := func(of func(i int) float64) (first, last float64) {
		mid := func(from, to int) float64 {
			var all []float64
			for i := from; i < to; i++ {
				all = append(all, of(i))
			}
			slices.Sort(all)
			return all[len(all)/2]
		}
		return mid(third, 2*third), mid(len(samples)-third, len(samples))
	}
	kept0, kept1 := median(func(i int) float64 { return float64(records[i]) })
	for what, of := range map[string]struct {
		get  func(v vitals) float64
		more float64 // than in the second third
	}{
		"MB resident": {func(v vitals) float64 { return v.RSS }, unread * (forEvents + perRecord*(kept1-kept0))},
		"descriptors": {func(v vitals) float64 { return float64(v.Descriptors) }, loose},
		"goroutines":  {func(v vitals) float64 { return float64(v.Goroutines) }, loose},
		"threads":     {func(v vitals) float64 { return float64(v.Threads) }, loose},
	} {
		first, last := median(func(i int) float64 { return of.get(samples[i][name]) })
		s.t.Logf("%-8s %-11s second third %.1f, last third %.1f", name, what, first, last)
		if *soakFor >= 5*time.Minute && last > first+of.more {
			s.t.Errorf("the %s has %.1f %s in the last third and had %.1f in the second, want at most %.1f more", name, last, what, first, of.more)
		}
	}
}

// files checks that the state directory holds what is kept on purpose, and no more.
func (s *soak) files() {
	s.t.Helper()
	top, err := os.ReadDir(s.state)
	if err != nil {
		s.t.Fatal(err)
	}
	most := map[string]int64{"events.jsonl": 4 << 20, "events.jsonl.1": 4 << 20, "history.jsonl": 2 << 20, "history.jsonl.1": 2 << 20, "daemon.log": 1 << 20}
	for _, e := range top {
		info, err := e.Info()
		if err != nil {
			continue // a file of a write that is under way
		}
		if limit, ok := most[e.Name()]; ok && info.Size() > limit {
			s.t.Errorf("%s has %d bytes, want at most %d", e.Name(), info.Size(), limit)
		}
	}
	if len(top) > 20 {
		s.t.Errorf("the state directory holds %d files: %v", len(top), top)
	}
	members, err := os.ReadDir(filepath.Join(s.state, "members"))
	if err != nil {
		s.t.Fatal(err)
	}
	if records := s.records(); len(members) > records+2 { // a launch has its directory before it has a record
		s.t.Errorf("there are %d directories of members for %d records", len(members), records)
	}
	for _, m := range members {
		if files, err := os.ReadDir(filepath.Join(s.state, "members", m.Name())); err == nil && len(files) > 14 {
			s.t.Errorf("member %s has %d files: %v", m.Name(), len(files), files)
		}
	}
}
