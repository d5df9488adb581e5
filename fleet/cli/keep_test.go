package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/keeper"
	"fleetdeck/fleet/launch/process"
)

// kept is the profiles of agents with two more, and a keeper that is quick; the daemon leaves it to the test. "chore" appends its
// task to the file tasks and is through soon; "crashing" appends to starts and fails.
const kept = agents + `
[profiles.chore]
command = ["sh", "-c", "echo \"$1\" >> DIR/tasks; sleep 0.2", "sh", "{task}"]
[profiles.crashing]
command = ["sh", "-c", "echo $FLEETDECK_MEMBER >> DIR/starts; exit 9"]
ready = "output"
[keeper]
interval = "20ms"
backoff = "10ms"
backoff_max = "40ms"
crashes = 3
in_daemon = false
`

// inDaemon lets the daemon run the keeper.
func inDaemon(config string) string { return strings.Replace(config, "in_daemon = false\n", "", 1) }

// staffing is a [[staff]] entry for the tree name below DIR/src.
func staffing(name, profile, restart string) string {
	return fmt.Sprintf("[[staff]]\ntree = \"DIR/src/%s\"\nprofile = \"%s\"\nrestart = \"%s\"\n", name, profile, restart)
}

// keep starts a keeper process, waits until it works, and gives its command.
func (r *rig) keep() *exec.Cmd {
	r.t.Helper()
	cmd := r.command("keep")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || !strings.Contains(lines.Text(), "keeping") {
		cmd.Wait()
		r.t.Fatalf("keep: %q: %s", lines.Text(), stderr.String())
	}
	go func() {
		for lines.Scan() {
		}
	}()
	r.t.Cleanup(func() { end(cmd) })
	return cmd
}

// end kills a process that this test started.
func end(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

// said is what a keeper told.
type said struct {
	mu   sync.Mutex // guards kinds
	list []string
}

func (s *said) say(_, kind, _, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, kind+": "+message)
}

func (s *said) count(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, line := range s.list {
		if strings.HasPrefix(line, kind+": ") {
			n++
		}
	}
	return n
}

// theDaemon is a keeper's daemon.
type theDaemon struct{ *client.Client }

func (d theDaemon) Reservation(ctx context.Context, _, id string) (api.LaunchStatus, error) {
	return d.Client.Reservation(ctx, id)
}

// keeper makes a keeper of this process over the rig's real daemon, book and dispatcher.
func (r *rig) keeper() (*keeper.Keeper, *said) {
	r.t.Helper()
	conf, err := config.Load(r.config, r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := book.Open(r.state, process.Now)
	if err != nil {
		r.t.Fatal(err)
	}
	c := client.New(filepath.Join(r.state, "fleetd.sock"), "")
	told := &said{}
	k, err := keeper.Open(r.t.Context(), keeper.Options{
		Dir: r.state, Config: conf, Book: b, Daemon: theDaemon{c}, Now: process.Now, Say: told.say,
		Dispatcher: &dispatch.Dispatcher{Ledger: b, Daemon: c, LockWait: conf.LockWait, Grace: conf.Grace, Now: process.Now},
	}, patience)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { k.Close() })
	return k, told
}

func (r *rig) pass(k *keeper.Keeper) keeper.Report {
	r.t.Helper()
	report, err := k.Pass(r.t.Context())
	if err != nil {
		r.t.Fatalf("pass: %v", err)
	}
	return report
}

func (r *rig) keepStatus() keeper.Status {
	r.t.Helper()
	var s keeper.Status
	r.must(&s, "keep", "--status")
	return s
}

// queued is a task as `queue ls --json` shows it.
type queued struct{ ID, Tree, Task, State, Reservation, Error string }

func (r *rig) queue() []queued {
	r.t.Helper()
	var q []queued
	r.must(&q, "queue", "ls")
	return q
}

// chores gives the tasks that agents really started on, in order.
func (r *rig) chores() []string {
	data, err := os.ReadFile(filepath.Join(r.dir, "tasks"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return strings.FieldsFunc(string(data), func(c rune) bool { return c == '\n' })
}

// events counts the events of a kind.
func (r *rig) events(kind string) int {
	r.t.Helper()
	stdout, stderr, code := r.fleetdeck("events", "--json")
	if code != 0 {
		r.t.Fatalf("events: exit %d: %s", code, stderr)
	}
	return strings.Count(stdout, fmt.Sprintf("%q:%q", "kind", kind))
}

func TestKeepersExcludeEachOther(t *testing.T) {
	t.Parallel()
	r := newRig(t, kept+staffing("api", "worker", "always"))
	tree := r.repo("api")
	r.must(nil, "up")
	first := r.keep()
	for _, args := range [][]string{{"keep"}, {"keep", "--once"}} {
		_, stderr, code := r.fleetdeck(args...)
		if code != 4 || !strings.Contains(stderr, fmt.Sprint("pid ", first.Process.Pid)) {
			t.Errorf("%v beside a keeper: exit %d: %s, want 4 and pid %d", args, code, stderr, first.Process.Pid)
		}
	}
	r.awaitOccupancy(tree, fleet.Taken)
	end(first)
	r.must(nil, "keep", "--once")
	if got := r.starts(); len(got) != 1 {
		t.Errorf("%d agents were started, want 1", len(got))
	}
}

func TestKeeperStopsACrashLoopWithOneLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, inDaemon(kept)+staffing("api", "crashing", "on-failure"))
	tree := r.repo("api")
	r.must(nil, "up")
	r.await("the breaker opens", func() bool { return r.keepStatus().Staff[0].State == "broken" })
	look := func(when string, starts, lines int) {
		t.Helper()
		if got := len(r.starts()); got != starts {
			t.Errorf("%s: %d agents were started, want %d", when, got, starts)
		}
		if got := r.events("keeper_broken"); got != lines {
			t.Errorf("%s: told %d times, want %d", when, got, lines)
		}
	}
	look("broken", 3, 1)
	if row := r.keepStatus().Staff[0]; row.Failures != 3 || !strings.Contains(row.Last, "code 9") {
		t.Errorf("status: %+v, want 3 failures, the last with code 9", row)
	}

	r.must(nil, "down")
	k, told := r.keeper()
	r.must(nil, "up")
	for range 10 {
		r.pass(k)
	}
	look("with the next keeper", 3, 1)
	if n := told.count("keeper_broken"); n != 0 {
		t.Errorf("the next keeper told of it %d times, want none", n)
	}
	k.Close()
	r.must(nil, "keep", "--reset", tree)
	r.await("it is tried again and breaks again", func() bool { return r.events("keeper_broken") == 2 })
	look("reset", 6, 2)
	if _, _, code := r.fleetdeck("keep", "--reset", r.repo("other")); code != 7 {
		t.Errorf("reset of a tree that nobody keeps: exit %d, want 7", code)
	}
}

// TestKilledKeeperSendsEachTaskOnce kills keepers, sooner or later after they began to work, and lets the last one finish.
func TestKilledKeeperSendsEachTaskOnce(t *testing.T) {
	full(t)
	t.Parallel()
	r := newRig(t, strings.Replace(kept, `grace = "20s"`, `grace = "3s"`, 1))
	r.must(nil, "up")
	const n = 20
	var want []string
	for i := range n {
		tree := filepath.Join(r.dir, "src", fmt.Sprint("t", i%4))
		if i < 4 {
			r.repo(fmt.Sprint("t", i))
		}
		task := fmt.Sprintf("task-%02d", i)
		want = append(want, task)
		r.must(nil, "queue", "add", tree, "--profile", "chore", "--task", task)
	}
	kills := 0
	for ; kills < 40 && len(r.queue()) > 0; kills++ {
		k := r.keep()
		time.Sleep(time.Duration(kills*7%90) * time.Millisecond) // the pace of the kills, nothing is waited for
		end(k)
	}
	r.keep() // the last is left to finish, however slow this machine is
	r.await("the queue is empty", func() bool { return len(r.queue()) == 0 })
	r.await("no launch is under way", func() bool { return len(r.alive()) == 0 && len(r.reservations()) == 0 })
	got := r.chores()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("after %d kills these were started:\n%v\nwant\n%v", kills, got, want)
	}
	t.Logf("%d kills", kills)
}

// TestNextKeeperFindsOutWhatBecameOfATask puts a task where each crash could have left it.
func TestNextKeeperFindsOutWhatBecameOfATask(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		// crash leaves a trace and gives the reservation that the task was being sent under.
		crash  func(r *rig, tree string) string
		action string
		left   int
		starts int
	}{
		{"before it was reserved", func(*rig, string) string { return "01JE00000000000000000NEVER" }, "start", 0, 1},
		{"between reserving and sending", func(r *rig, tree string) string {
			var out fleet.Outcome
			r.must(&out, "reserve", tree, "--profile", "worker")
			return out.Reservation
		}, "hold", 1, 0},
		{"while it was booting", func(r *rig, tree string) string {
			out, _ := r.dispatch(tree, "--profile", "slow")
			r.await("it was started", func() bool { return len(r.starts()) == 1 })
			return out.Reservation
		}, "done", 0, 1},
		{"after it was listed", func(r *rig, tree string) string {
			out, _ := r.dispatch(tree, "--profile", "worker", "--wait")
			return out.Reservation
		}, "done", 0, 1},
		{"after it ended", func(r *rig, tree string) string {
			out, _ := r.dispatch(tree, "--profile", "worker", "--wait")
			r.must(nil, "stop", out.Member)
			return out.Reservation
		}, "done", 0, 1},
		{"after it failed to launch", func(r *rig, tree string) string {
			out, _ := r.dispatch(tree, "--profile", "crashing")
			r.await("it failed", func() bool { return r.events("launch_failed") == 1 })
			return out.Reservation
		}, "done", 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, kept)
			tree := r.repo("api")
			r.must(nil, "up")
			id := tt.crash(r, tree)
			task := keeper.Task{Tree: tree, Role: "dev", Profile: "worker", Reservation: id, SentAt: time.Now()}
			q, err := keeper.OpenQueue(r.state)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := q.Add(t.Context(), task, process.Now()); err != nil {
				t.Fatal(err)
			}
			k, _ := r.keeper()
			report := r.pass(k)
			if len(report.Queue) != 1 || string(report.Queue[0].Action) != tt.action {
				t.Errorf("pass: %+v, want %s", report.Queue, tt.action)
			}
			if got := r.queue(); len(got) != tt.left {
				t.Errorf("left in the queue: %+v, want %d", got, tt.left)
			}
			for range 3 {
				r.pass(k)
			}
			if tt.starts > 0 {
				r.await("it was started", func() bool { return len(r.starts()) > 0 })
			}
			if got := r.starts(); len(got) != tt.starts {
				t.Errorf("%d agents were started, want %d", len(got), tt.starts)
			}
		})
	}
}

func TestKeeperStartsOneAgentInAHundredPassesOfOneGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, kept+staffing("api", "slow", "always"))
	tree := r.repo("api")
	r.must(nil, "up")
	k, _ := r.keeper()
	r.pass(k)
	r.await("it was started", func() bool { return len(r.starts()) == 1 })
	for i := range 100 {
		if act := r.pass(k).Staff[0]; act.Action != "hold" {
			t.Fatalf("pass %d during the grace: %+v, want hold", i, act)
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.awaitOccupancy(tree, fleet.Taken)
	r.pass(k)
	if got := r.starts(); len(got) != 1 {
		t.Errorf("%d agents were started, want 1", len(got))
	}
}

func TestKeeperStartsNoMoreAtOnceThanItMay(t *testing.T) {
	t.Parallel()
	conf := strings.Replace(kept, "crashes = 3\n", "crashes = 3\nlaunches = 2\n", 1)
	for i := range 5 {
		conf += staffing(fmt.Sprint("t", i), "slow", "always")
	}
	r := newRig(t, conf)
	for i := range 5 {
		r.repo(fmt.Sprint("t", i))
	}
	r.must(nil, "up")
	k, _ := r.keeper()
	actions := func() string {
		var s []string
		for _, a := range r.pass(k).Staff {
			s = append(s, string(a.Action))
		}
		return strings.Join(s, " ")
	}
	if got, want := actions(), "start start capped capped capped"; got != want {
		t.Errorf("first pass: %s, want %s", got, want)
	}
	for range 5 {
		if got, want := actions(), "hold hold capped capped capped"; got != want {
			t.Errorf("next pass: %s, want %s", got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.await("all are staffed", func() bool { r.pass(k); return len(r.alive()) == 5 })
	if got := r.starts(); len(got) != 5 {
		t.Errorf("%d agents were started, want 5", len(got))
	}
}

func TestKeeperStartsRestartNeverOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, inDaemon(kept)+staffing("api", "crashing", "never")+staffing("web", "worker", "never"))
	r.repo("api")
	web := r.repo("web")
	r.must(nil, "up")
	r.awaitOccupancy(web, fleet.Taken)
	r.await("both were started", func() bool { return len(r.starts()) == 2 })
	r.must(nil, "stop", web)
	done := func() bool {
		s := r.keepStatus()
		return s.Staff[0].State == "done" && s.Staff[1].State == "done"
	}
	r.await("both are done", done)
	r.kill()
	k, _ := r.keeper()
	r.must(nil, "up")
	for range 20 {
		for _, act := range r.pass(k).Staff {
			if act.Action != "done" {
				t.Fatalf("the next keeper: %+v, want done", act)
			}
		}
	}
	if got := r.starts(); len(got) != 2 {
		t.Errorf("%d agents were started, want 2", len(got))
	}
}

func TestQueueOutlivesDaemonAndKeeperInItsOrder(t *testing.T) {
	full(t)
	t.Parallel()
	r := newRig(t, inDaemon(kept))
	tree := r.repo("api")
	r.must(nil, "up")
	first, _ := r.dispatch(tree, "--profile", "worker", "--wait")
	want := []string{"one", "two", "three"}
	for _, task := range want {
		r.must(nil, "queue", "add", tree+"/sub", "--profile", "chore", "--task", task)
	}
	for range 3 {
		r.kill()
		r.must(nil, "up")
	}
	if got := r.queue(); len(got) != 3 || got[0].Task != "one" || got[2].Task != "three" || got[0].Tree != tree {
		t.Fatalf("queue: %+v, want the three in order", got)
	}
	r.must(nil, "stop", first.Member)
	r.await("the first is on its way", func() bool { return len(r.chores()) > 0 })
	r.kill()
	r.must(nil, "up")
	r.await("the queue is worked off", func() bool { return len(r.chores()) == 3 && len(r.queue()) == 0 })
	if got := r.chores(); !slices.Equal(got, want) {
		t.Errorf("started: %v, want %v", got, want)
	}
	r.await("the keeper lets go when nothing is left", func() bool { return !r.keepStatus().Running })
}

func TestKeeperLeavesABusyFileAloneAndSaysSoOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, strings.Replace(kept, `prune_wait = "500ms"`, `prune_wait = "20ms"`, 1))
	tree := r.repo("api")
	r.must(nil, "up")
	r.must(nil, "reserve", tree, "--grace", "1ms")
	text, before := r.fileState()
	k, told := r.keeper()
	for busy := range 2 {
		release := r.holdLock()
		for range 5 {
			if got := r.pass(k).Prune.Lock; got != "busy" {
				t.Errorf("prune: lock %s, want busy", got)
			}
		}
		if got := told.count("prune_busy"); got != busy+1 {
			t.Errorf("told %d times, want %d: %v", got, busy+1, told.list)
		}
		if now, after := r.fileState(); busy == 0 && (now != text || !os.SameFile(before, after)) {
			t.Error("the file changed while the lock was held")
		}
		release()
		r.pass(k)
	}
	if got := r.reservations(); len(got) != 0 {
		t.Errorf("left after the lock was free: %+v", got)
	}
}

func TestStopOfAllMembersIsNotUndoneByTheKeeper(t *testing.T) {
	full(t)
	t.Parallel()
	// While the stubborn one is waited for, the other tree is free for long.
	stubborn := "[profiles.stubborn]\ncommand = [\"sh\", \"-c\", \"trap '' TERM; echo up; while :; do sleep 1; done\"]\nready = \"output\"\n"
	r := newRig(t, inDaemon(kept)+stubborn+staffing("api", "worker", "always")+staffing("web", "stubborn", "always"))
	api, web := r.repo("api"), r.repo("web")
	r.must(nil, "up")
	r.awaitOccupancy(api, fleet.Taken)
	r.awaitOccupancy(web, fleet.Taken)
	r.must(nil, "down", "--stop-members")
	if got := r.starts(); len(got) != 1 {
		t.Errorf("%d agents were started, want 1", len(got))
	}
}

// The keeper staffs both trees as soon as its daemon is up, so that some launch is under way when the end comes.
func TestDownWithAllMembersOverlooksNoLaunch(t *testing.T) {
	full(t)
	t.Parallel()
	stubborn := "[profiles.stubborn]\ncommand = [\"sh\", \"-c\", \"trap '' TERM; echo up; while :; do sleep 1; done\"]\nready = \"output\"\n"
	r := newRig(t, inDaemon(kept)+stubborn+staffing("api", "worker", "always")+staffing("web", "stubborn", "always"))
	r.repo("api")
	r.repo("web")
	for range 12 {
		r.must(nil, "up")
		r.must(nil, "down", "--stop-members")
		r.await("no process is left behind", func() bool { return len(marked(r.state)) == 0 })
	}
}

func TestRefusedDispatchMayWaitInTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, kept)
	tree := r.repo("api")
	r.must(nil, "up")
	member, _ := r.dispatch(tree, "--profile", "worker", "--wait")

	out, code := r.dispatch(tree, "--profile", "chore", "--task", "later")
	if code != 3 || !strings.Contains(out.Hint, "--queue") {
		t.Errorf("without --queue: exit %d, hint %q, want 3 and --queue named", code, out.Hint)
	}
	stdout, stderr, code := r.fleetdeck("dispatch", "--json", "--queue", tree, "--profile", "chore", "--task", "later")
	var got struct {
		fleet.Outcome
		Queued string `json:"queued"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 {
		t.Fatalf("dispatch --queue: exit %d: %s%s", code, stdout, stderr)
	}
	if got.Outcome.Outcome != fleet.Refused || got.Code != fleet.CodeTreeOccupied || got.Queued == "" {
		t.Errorf("dispatch --queue: %+v, want refused, %s, queued", got, fleet.CodeTreeOccupied)
	}
	if q := r.queue(); len(q) != 1 || q[0].ID != got.Queued || q[0].State != "queued" {
		t.Errorf("queue: %+v, want %s", q, got.Queued)
	}
	k, _ := r.keeper()
	if act := r.pass(k).Queue[0]; act.Action != "taken" {
		t.Errorf("pass: %+v, want taken", act)
	}
	r.must(nil, "stop", member.Member)
	r.await("it was sent", func() bool { r.pass(k); return len(r.queue()) == 0 })
	r.await("it runs", func() bool { return slices.Equal(r.chores(), []string{"later"}) })

	if _, _, code := r.fleetdeck("dispatch", "--queue", r.repo("web"), "--profile", "no-such"); code != 3 {
		t.Errorf("an unknown profile is queued: exit %d, want 3", code)
	}
	if q := r.queue(); len(q) != 0 {
		t.Errorf("queue: %+v, want none", q)
	}
}

func TestQueuePassesByATaskThatIsRefusedTooOften(t *testing.T) {
	t.Parallel()
	r := newRig(t, kept)
	tree := r.repo("api")
	r.must(nil, "up")
	r.must(nil, "queue", "add", tree, "--profile", "missing", "--task", "stuck")
	r.must(nil, "queue", "add", tree, "--profile", "chore", "--task", "next")
	r.must(nil, "queue", "add", tree, "--profile", "chore", "--task", "and the next")
	k, told := r.keeper()
	r.await("the next ones run", func() bool { r.pass(k); return len(r.chores()) == 2 })
	q := r.queue()
	if len(q) != 1 || q[0].State != "given_up" || q[0].Reservation != "" || !strings.Contains(q[0].Error, "no-such-program") || told.count("task_given_up") != 1 {
		t.Errorf("queue: %+v, told %v; want the first given up, told once", q, told.list)
	}
	r.must(nil, "queue", "rm", q[0].ID[len(q[0].ID)-6:])
	if _, _, code := r.fleetdeck("queue", "rm", q[0].ID); code != 7 {
		t.Errorf("removed again: exit %d, want 7", code)
	}
}

// TestKeeperEndsBySignal also sees that it leaves the agents alone.
func TestKeeperEndsBySignal(t *testing.T) {
	t.Parallel()
	r := newRig(t, kept+staffing("api", "worker", "always"))
	tree := r.repo("api")
	r.must(nil, "up")
	k := r.keep()
	r.awaitOccupancy(tree, fleet.Taken)
	if err := k.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := k.Wait(); err != nil {
		t.Errorf("keep ended with %v, want no error", err)
	}
	if len(r.alive()) != 1 {
		t.Errorf("alive: %+v, want the one", r.alive())
	}
}
