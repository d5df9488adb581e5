package cli

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/history"
)

const (
	actsConfig = `
grace = "20s"
lock_wait = "20s"
[profiles.worker]
command = ["sh", "-c", "exec sleep 600"]
[profiles.waiter]
command = ["sh", "-c", "$FLEETDECK_EXE report waiting -m 'Which database?'; exec sleep 600"]
ready = "report"
[[slots]]
name = "architect-1"
role = "architect"
profile = "worker"
`
	// actsPatience bounds every wait for a condition.
	actsPatience = 30 * time.Second
)

// deck is the fleet as a console has it, over a daemon of its own.
type deck struct {
	*consoleFleet
	t   *testing.T
	dir string
}

func newDeck(t *testing.T) *deck {
	t.Helper()
	dir, err := os.MkdirTemp("", "fd") // t.TempDir's paths are too long for sockets on some systems
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "fleetdeck.toml")
	if err := os.WriteFile(conf, []byte(actsConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	g := &globals{state: filepath.Join(dir, "state"), config: conf, in: os.Stdin, out: io.Discard, err: io.Discard}
	s, err := g.open()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ensureDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d := &deck{consoleFleet: &consoleFleet{session: s}, t: t, dir: dir}
		d.ensureDaemon(context.Background())
		if out, err := d.run("down", "--stop-members"); err != nil {
			t.Errorf("down: %v: %s", err, out)
		}
		os.RemoveAll(dir)
	})
	_, live, stop := s.watch(t.Context())
	t.Cleanup(stop)
	f := &consoleFleet{session: s, live: live, dispatch: s.dispatcher("fleetdeck console")}
	f.history = newRecorder(history.In(s.dir.Path), f.dispatch.Self, func(err error) { t.Error(err) })
	t.Cleanup(f.history.close)
	return &deck{f, t, dir}
}

// run runs the program over the deck, as another process.
func (d *deck) run(args ...string) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{args[0], "--state", d.session.dir.Path, "--config", d.config}, args[1:]...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d *deck) repo(name string) string {
	d.t.Helper()
	path := filepath.Join(d.dir, "src", name)
	if out, err := exec.Command("git", "init", "--quiet", path).CombinedOutput(); err != nil {
		d.t.Fatalf("git init: %v: %s", err, out)
	}
	return path
}

// await waits for a snapshot of which ok holds.
func (d *deck) await(what string, ok func(fleet.Snapshot) bool) fleet.Snapshot {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), actsPatience)
	defer cancel()
	for rev := uint64(0); ; {
		s, err := d.Snapshot(ctx, rev)
		if err != nil {
			d.t.Fatalf("%s: not within %s", what, actsPatience)
		}
		if ok(s) {
			return s
		}
		rev = s.Rev
	}
}

// deeds waits until there are n and gives the last.
func (d *deck) lastOf(n int) fleet.Deed {
	d.t.Helper()
	s := d.await("the deed is written down", func(s fleet.Snapshot) bool { return len(s.History) >= n })
	if len(s.History) != n {
		d.t.Errorf("%d deeds are written down, want %d", len(s.History), n)
	}
	return s.History[n-1]
}

// listed waits until a member other than those before lives in tree: a snapshot may be older than the last act.
func (d *deck) listed(tree string, before ...string) fleet.Member {
	d.t.Helper()
	var member fleet.Member
	d.await(tree+" is occupied", func(s fleet.Snapshot) bool {
		for _, m := range s.Members {
			if m.Tree == tree && m.Alive() && !slices.Contains(before, m.ID) {
				member = m
				return true
			}
		}
		return false
	})
	return member
}

func TestEachActOfAConsoleIsWrittenDownWithHowItEnded(t *testing.T) {
	d := newDeck(t)
	ctx := t.Context()
	api, web := d.repo("api"), d.repo("web's")
	order := fleet.Order{Tree: api, Role: "dev", Profile: "worker", Task: "it's one"}
	n := 0
	check := func(what, outcome string, code fleet.Code, command string) {
		t.Helper()
		n++
		got := d.lastOf(n)
		if got.What != what || got.Outcome != outcome || got.Code != code {
			t.Errorf("written down: %s %s %s (%s), want %s %s %s", got.What, got.Outcome, got.Code, got.Message, what, outcome, code)
		}
		if want := d.CommandLine() + command; got.Command != want {
			t.Errorf("command %q, want %q", got.Command, want)
		}
		if got.By.Pid != os.Getpid() || got.By.Program != "fleetdeck console" {
			t.Errorf("by %+v", got.By)
		}
	}

	out := d.Dispatch(ctx, order)
	check("dispatch", "done", "", " dispatch "+api+` --role dev --profile worker --task 'it'\''s one'`)
	m := d.listed(api)
	d.Dispatch(ctx, order)
	check("dispatch", "refused", fleet.CodeTreeOccupied, " dispatch "+api+` --role dev --profile worker --task 'it'\''s one'`)
	d.Send(ctx, m.ID, "-y & more", true)
	check("send", "done", "", " send -- "+m.ID+" '-y & more'")
	d.Prune(ctx)
	check("prune", "done", "", " prune")
	d.Release(ctx, web, "r1")
	check("release", "refused", fleet.CodeNotFound, ` release '`+strings.ReplaceAll(web, "'", `'\''`)+`' --id r1`)
	if err := d.Enqueue(ctx, order); err != nil {
		t.Error(err)
	}
	check("queue add", "done", "", " queue add "+api+` --role dev --profile worker --task 'it'\''s one'`)
	task := d.await("the task is shown", func(s fleet.Snapshot) bool { return len(s.Queue) == 1 }).Queue[0]
	if task.Task != "it's one" || task.State != "queued" {
		t.Errorf("queued: %+v", task)
	}
	if err := d.Unqueue(ctx, task.ID); err != nil {
		t.Error(err)
	}
	check("queue rm", "done", "", " queue rm "+task.ID)
	d.await("the queue is empty", func(s fleet.Snapshot) bool { return len(s.Queue) == 0 })
	d.Unqueue(ctx, task.ID)
	check("queue rm", "refused", fleet.CodeNotFound, " queue rm "+task.ID)
	again := d.Restart(ctx, m.ID)
	check("restart", "done", "", " restart "+m.ID)
	if again.Outcome != fleet.Accepted || again.Member == out.Member || again.Tree != api {
		t.Errorf("restart: %+v", again)
	}
	d.Stop(ctx, again.Member)
	check("stop", "done", "", " stop "+again.Member)

	// An act that waits for the lock and is called off is neither done nor refused.
	unlock, err := d.book.Lock(ctx, actsPatience)
	if err != nil {
		t.Fatal(err)
	}
	off, cancel := context.WithCancel(ctx)
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := d.Release(off, api, ""); err == nil {
		t.Error("released while another held the lock")
	}
	check("release", "cancelled", "", " release "+api+" --id ''")
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestTheCommandLineOfADeedDoesTheSame(t *testing.T) {
	d := newDeck(t)
	tree := d.repo("one & 'two'")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	line := d.CommandLine(orderArgs(fleet.Order{Tree: tree, Role: "dev", Profile: "worker", Task: "-x; $(echo no)", Grace: time.Minute, NoGit: true}, "queue", "add")...)
	rest, ok := strings.CutPrefix(line, "fleetdeck ")
	if !ok {
		t.Fatalf("%q calls another program", line)
	}
	if out, err := exec.Command("sh", "-c", `"$0" `+rest, exe).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	// The daemon's keeper may have sent it already.
	d.await("it is queued, or on its way", func(s fleet.Snapshot) bool {
		for _, q := range s.Queue {
			if q.Tree == tree && q.Task == "-x; $(echo no)" {
				return true
			}
		}
		for _, m := range s.Members {
			if m.Tree == tree && m.Task == "-x; $(echo no)" {
				return true
			}
		}
		return false
	})
}

func TestAReadOnlyConsoleChangesNothing(t *testing.T) {
	d := newDeck(t)
	d.readOnly = true
	ctx := t.Context()
	api := d.repo("api")
	_, perr := d.Prune(ctx)
	for what, err := range map[string]error{
		"prune": perr, "release": d.Release(ctx, api, ""), "send": d.Send(ctx, "m", "x", true), "stop": d.Stop(ctx, "m"),
		"enqueue": d.Enqueue(ctx, fleet.Order{Tree: api, Role: "dev", Profile: "worker"}), "unqueue": d.Unqueue(ctx, "t"),
	} {
		if r := fleet.RefusalOf(err); r == nil || r.Code != fleet.CodeNotAllowed {
			t.Errorf("%s: %v, want not_allowed", what, err)
		}
	}
	for what, out := range map[string]fleet.Outcome{
		"dispatch": d.Dispatch(ctx, fleet.Order{Tree: api, Role: "dev", Profile: "worker"}), "restart": d.Restart(ctx, "m"),
	} {
		if out.Outcome != fleet.Refused || out.Code != fleet.CodeNotAllowed {
			t.Errorf("%s: %+v, want not_allowed", what, out)
		}
	}
	if _, err := d.Attach("m"); err == nil {
		t.Error("attached")
	}
	if _, err := d.Shell(api); err == nil {
		t.Error("a shell was opened")
	}
	d.history.close()
	if deeds, err := history.In(d.session.dir.Path).Tail(10); err != nil || len(deeds) > 0 {
		t.Errorf("written down: %v, %v", deeds, err)
	}
}

func TestARestartIsAnAdmissionThatKeepsRoleProfileTaskAndSlot(t *testing.T) {
	d := newDeck(t)
	ctx := t.Context()
	api, web := d.repo("api"), d.repo("web")
	d.Dispatch(ctx, fleet.Order{Tree: api, Role: "architect", Profile: "worker", Task: "plan it"})
	m := d.listed(api)
	out := d.Restart(ctx, m.ID)
	if out.Outcome != fleet.Accepted || out.Slot != "architect-1" {
		t.Fatalf("restart: %+v", out)
	}
	next := d.listed(api, m.ID)
	if next.Role != "architect" || next.Profile != "worker" || next.Task != "plan it" || next.Slot != "architect-1" {
		t.Errorf("restarted as %+v", next)
	}
	// One that has ended is started again, unless somebody else is there by now.
	if err := d.Stop(ctx, next.ID); err != nil {
		t.Fatal(err)
	}
	if out, err := d.run("restart", next.ID, "--wait"); err != nil {
		t.Fatalf("restart: %v: %s", err, out)
	}
	third := d.listed(api, m.ID, next.ID)
	if out, err := d.run("restart", next.ID, "--json"); err == nil || !strings.Contains(out, string(fleet.CodeTreeOccupied)) {
		t.Errorf("restart of an earlier one: %v: %s, want tree_occupied", err, out)
	}
	if still := d.listed(api); still.ID != third.ID {
		t.Errorf("%s is there, want %s", still.ID, third.ID)
	}
	// Nobody is ended for what cannot be started.
	d.Dispatch(ctx, fleet.Order{Tree: web, Role: "dev", Profile: "worker"})
	plain := d.listed(web)
	delete(d.conf.Profiles, "worker")
	if out := d.Restart(ctx, plain.ID); out.Code != fleet.CodeProfileUnknown {
		t.Errorf("restart on a profile that is gone: %+v", out)
	}
	if now, err := d.member(ctx, plain.ID); err != nil || !now.Alive() {
		t.Errorf("it was ended all the same: %+v, %v", now, err)
	}
	if out := d.Restart(ctx, "nobody"); out.Code != fleet.CodeNotFound {
		t.Errorf("restart of nobody: %+v", out)
	}
}

func TestTheSnapshotFollowsWhatOtherProcessesChange(t *testing.T) {
	d := newDeck(t)
	d.await("the daemon is up", func(s fleet.Snapshot) bool { return s.Daemon.Running })
	api := d.repo("api")
	d.Dispatch(t.Context(), fleet.Order{Tree: api, Role: "dev", Profile: "waiter"})
	d.await("its question is shown", func(s fleet.Snapshot) bool {
		return len(s.Members) == 1 && s.Members[0].State == fleet.StateWaiting && s.Members[0].StateMessage == "Which database?"
	})
	if out, err := d.run("queue", "add", api, "--profile", "worker", "--task", "next"); err != nil {
		t.Fatalf("queue add: %v: %s", err, out)
	}
	d.await("the task is shown", func(s fleet.Snapshot) bool { return len(s.Queue) == 1 && s.Queue[0].Task == "next" })
	d.await("the keeper that has work is shown", func(s fleet.Snapshot) bool { return s.Keeper.Running && s.Keeper.Holder != nil })

	unlock, err := d.book.Lock(t.Context(), actsPatience)
	if err != nil {
		t.Fatal(err)
	}
	d.await("the lock is shown as held", func(s fleet.Snapshot) bool { return s.Lock.Holder != nil })
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	d.await("the lock is shown as free", func(s fleet.Snapshot) bool { return s.Lock.Holder == nil })

	other := history.In(d.session.dir.Path)
	if err := other.Add(fleet.Deed{Time: time.Now(), What: "prune", Command: "fleetdeck prune", Outcome: "done", By: fleet.Dispatcher{Pid: 1}}); err != nil {
		t.Fatal(err)
	}
	d.await("another console's act is shown", func(s fleet.Snapshot) bool {
		return len(s.History) > 0 && s.History[len(s.History)-1].By.Pid == 1
	})
	if err := os.WriteFile(filepath.Join(d.session.dir.Path, "queue.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.await("a broken queue is shown", func(s fleet.Snapshot) bool { return s.Keeper.Error != "" })
	if err := os.Remove(filepath.Join(d.session.dir.Path, "queue.json")); err != nil {
		t.Fatal(err)
	}
	d.await("the queue is whole again", func(s fleet.Snapshot) bool { return s.Keeper.Error == "" && len(s.Queue) == 0 })

	if out, err := d.run("down"); err != nil {
		t.Fatalf("down: %v: %s", err, out)
	}
	d.await("the daemon is down", func(s fleet.Snapshot) bool { return !s.Daemon.Running })
	if out, err := d.run("up"); err != nil {
		t.Fatalf("up: %v: %s", err, out)
	}
	d.await("the daemon is up, and its member there", func(s fleet.Snapshot) bool {
		return s.Daemon.Running && len(s.Members) == 1 && s.Members[0].Alive()
	})
}
