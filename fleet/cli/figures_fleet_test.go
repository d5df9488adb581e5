package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
)

type ctx = context.Context

// newFiguresRig is a fleet of the program as it is built for users.
func newFiguresRig(t *testing.T, trees int) *rig {
	t.Helper()
	r := newRig(t, "roots = [\"DIR/src\"]\nforeign = false\n"+agents)
	r.exe = filepath.Join(r.dir, "fleetdeck")
	if out, err := exec.Command("go", "build", "-o", r.exe, "fleetdeck").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	for i := range trees {
		r.repo(fmt.Sprintf("tree-%03d", i))
	}
	r.must(nil, "up")
	return r
}

func (r *rig) src(i int) string { return filepath.Join(r.dir, "src", fmt.Sprintf("tree-%03d", i)) }

// heldFigures holds many agents: what each costs, and what the daemon answers meanwhile.
func heldFigures(t *testing.T) {
	r := newFiguresRig(t, *held)
	c := client.New(filepath.Join(r.state, "fleetd.sock"), "")
	b, err := book.Open(r.state, process.Now)
	if err != nil {
		t.Fatal(err)
	}
	d := &dispatch.Dispatcher{Ledger: b, Daemon: c, LockWait: time.Minute, Grace: time.Minute, Now: process.Now, Self: fleet.Dispatcher{Program: "figures"}}
	begin := time.Now()
	var wg sync.WaitGroup
	next := make(chan int)
	for range 8 {
		wg.Go(func() {
			for i := range next {
				out, err := d.Dispatch(t.Context(), fleet.Order{Tree: r.src(i), Role: fleet.RoleDev, Profile: "worker"})
				if err == nil {
					_, err = d.Wait(t.Context(), out)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range *held {
		next <- i
	}
	close(next)
	wg.Wait()
	if t.Failed() {
		return
	}
	started := time.Since(begin)
	roster, err := c.Roster(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	daemon := r.daemonPid()
	var holders []int
	for _, pid := range marked(r.state) {
		if strings.Contains(commandLine(pid), "\x00holder\x00") {
			holders = append(holders, pid)
		}
	}
	if len(holders) == 0 {
		t.Fatal("there are no holders")
	}
	var rss, pss, anonymous []float64
	for _, pid := range holders {
		rss, pss, anonymous = append(rss, rollup(pid, "Rss")), append(pss, rollup(pid, "Pss")), append(anonymous, rollup(pid, "Anonymous"))
	}
	daemonRSS := rollup(daemon, "Rss")
	cpu := func() (all, own time.Duration) {
		for _, pid := range holders {
			u, _ := used(pid)
			all += u
		}
		own, _ = used(daemon)
		return all, own
	}
	const rest = 20 * time.Second
	holdersBefore, daemonBefore := cpu()
	time.Sleep(rest)
	holdersAfter, daemonAfter := cpu()
	share := func(d time.Duration) string { return fmt.Sprintf("%.2f %% of a core", 100*d.Seconds()/rest.Seconds()) }

	look := func() time.Duration {
		begin := time.Now()
		next, wg := make(chan string), sync.WaitGroup{}
		for range 8 {
			wg.Go(func() {
				for id := range next {
					if _, err := c.Screen(t.Context(), id, 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for _, m := range roster.Members {
			next <- m.ID
		}
		close(next)
		wg.Wait()
		return time.Since(begin)
	}
	cold, warm := look(), look()
	mb := func(all []float64) string {
		slices.Sort(all)
		return fmt.Sprintf("%.1f MB; %.1f MB the largest", all[len(all)/2], all[len(all)-1])
	}
	table(fmt.Sprintf("%d agents held", len(holders)), []string{"", "measured"}, [][]string{
		{"started and listed, eight at once", fmt.Sprintf("%s, %s each", lasted(started), lasted(started/time.Duration(*held)))},
		{"holder, resident, with the program that all share", mb(rss)},
		{"holder, its share (PSS; aim 6 MB)", mb(pss)},
		{"holder, its own (anonymous)", mb(anonymous)},
		{"all holders at rest", share(holdersAfter - holdersBefore)},
		{"daemon at rest", share(daemonAfter - daemonBefore)},
		{"all screens for the first time; again", lasted(cold) + "; " + lasted(warm)},
		{"daemon, resident, before and after that", fmt.Sprintf("%.0f MB; %.0f MB", daemonRSS, rollup(daemon, "Rss"))},
	})
	callFigures(t, r, c, roster)
}

// rollup is a line of a process's memory, in MB.
func rollup(pid int, name string) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	var kb float64
	if m := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB`).FindSubmatch(data); m != nil {
		fmt.Sscan(string(m[1]), &kb)
	}
	return kb * 1024 / 1e6
}

// callFigures measures calls of the daemon: by one client, one after the other, and by eight at once.
func callFigures(t *testing.T, r *rig, c *client.Client, roster fleet.Roster) {
	token := ""
	for _, v := range strings.Split(environ(roster.Members[0].Pid), "\x00") {
		if after, ok := strings.CutPrefix(v, "FLEETDECK_TOKEN="); ok {
			token = after
		}
	}
	if token == "" {
		t.Fatal("the agent has no token")
	}
	member := c.As(token)
	calls := []struct {
		name string
		call func(ctx) error
	}{
		{"health", func(ctx ctx) error { _, err := c.Health(ctx); return err }},
		{"whoami", func(ctx ctx) error { _, err := member.Whoami(ctx); return err }},
		{fmt.Sprintf("roster, %d members", len(roster.Members)), func(ctx ctx) error { _, err := c.Roster(ctx); return err }},
	}
	const rounds, slice = 5, 400 * time.Millisecond
	took := make([][2][]time.Duration, len(calls))
	rates := make([][2][]float64, len(calls))
	for range rounds {
		for i, x := range calls {
			for k, clients := range []int{1, 8} {
				var mu sync.Mutex
				var wg sync.WaitGroup
				n, begin := 0, time.Now()
				for range clients {
					wg.Go(func() {
						for time.Since(begin) < slice {
							at := time.Now()
							if err := x.call(t.Context()); err != nil {
								t.Error(err)
								return
							}
							d := time.Since(at)
							mu.Lock()
							n++
							took[i][k] = append(took[i][k], d)
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				rates[i][k] = append(rates[i][k], float64(n)/time.Since(begin).Seconds())
			}
		}
	}
	var rows [][]string
	for i, x := range calls {
		row := []string{x.name}
		for k := range 2 {
			slices.Sort(rates[i][k])
			row = append(row, fmt.Sprintf("%.0f", rates[i][k][rounds/2]), lasted(median(took[i][k])), lasted(percentile(took[i][k], 99)))
		}
		rows = append(rows, row)
	}
	table("Calls of the daemon", []string{"call", "a second, one client", "half within", "99 of 100", "a second, eight clients", "half within", "99 of 100"}, rows)
}

func environ(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return string(data)
}

// consoleFigures measures the real console in a terminal: until it shows something, until it shows the trees, and from a
// change of the file to the frame that shows it.
func consoleFigures(t *testing.T) {
	const trees = 50
	r := newFiguresRig(t, trees)
	within := func(x *terminal, ok func(string) bool) time.Duration {
		begin := time.Now()
		for !ok(x.text()) {
			if time.Since(begin) > patience {
				t.Fatalf("the console does not show it:\n%s", x.text())
			}
			time.Sleep(500 * time.Microsecond)
		}
		return time.Since(begin)
	}
	var first, whole, version []time.Duration
	for range 21 {
		begin := time.Now()
		if err := r.command("version").Run(); err != nil {
			t.Fatal(err)
		}
		version = append(version, time.Since(begin))
		begin = time.Now()
		x := r.open(120, 40)
		within(x, func(s string) bool { return strings.TrimSpace(s) != "" })
		first = append(first, time.Since(begin))
		within(x, func(s string) bool { return strings.Contains(s, "tree-007") })
		whole = append(whole, time.Since(begin))
		x.cmd.Process.Kill()
		<-x.ends
	}

	x := r.open(120, 40)
	x.shows("tree-007")
	b, err := book.Open(r.state, process.Now)
	if err != nil {
		t.Fatal(err)
	}
	var change []time.Duration
	for i := range 200 {
		time.Sleep(time.Duration(100+i%37) * time.Millisecond) // no multiple of anything
		told := func(s string) [2]int {
			return [2]int{strings.Count(s, fmt.Sprintf("tree-%03d", i%10)), strings.Count(s, "reserved")}
		}
		free := told(x.text())
		d := ledger.Draft{Tree: fleet.Tree{Path: r.src(i % 10)}, Role: fleet.RoleDev, Profile: "worker", Grace: time.Minute}
		e, err := b.Reserve(t.Context(), patience, d, func(ctx) (fleet.Roster, error) { return fleet.Roster{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		change = append(change, within(x, func(s string) bool { return told(s) != free }))
		if _, _, err := b.Release(t.Context(), patience, e.Tree, e.ID); err != nil {
			t.Fatal(err)
		}
		within(x, func(s string) bool { return told(s) == free })
	}
	row := func(name string, took []time.Duration) []string {
		return []string{name, lasted(median(took)), lasted(percentile(took, 99)), lasted(percentile(took, 100))}
	}
	table(fmt.Sprintf("The console in a terminal, %d trees", trees), []string{"", "half within", "99 of 100", "slowest"}, [][]string{
		row("fleetdeck version, to its end: the floor of a start", version),
		row("start to the first frame (aim 100 ms)", first),
		row("start to the trees", whole),
		row("file changed to frame (aim 50 ms)", change),
	})
}
