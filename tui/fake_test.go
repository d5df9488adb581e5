package tui

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"fleetdeck/fleet"
)

// full skips a long test where there is no time for it, as under the race detector.
func full(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
}

// day is when the fake fleet was made.
var day = time.Date(2026, 11, 30, 6, 10, 0, 0, time.UTC)

const (
	testBoot = "boot-1"
	home     = "/home/kim"
)

// fakeFleet stands in for the daemon and the files behind the console.
type fakeFleet struct {
	mu    sync.Mutex
	now   func() fleet.Instant
	snap  fleet.Snapshot
	err   error
	news  chan struct{}
	lock  fleet.LockInfo
	calls []string
	looks []string

	screens map[string]fleet.Screen
	choices fleet.Choices
	plan    fleet.PruneReport
	pruned  fleet.PruneReport

	// act is what a change waits in; by default it ends at once.
	act     func(ctx context.Context) error
	outcome fleet.Outcome
	settled func(fleet.Outcome) fleet.Outcome

	page      string // of a pager
	witnesses string // of one on a member
	pageErr   error
}

func newFake(s fleet.Snapshot) *fakeFleet {
	return &fakeFleet{
		now:  func() fleet.Instant { return s.At },
		snap: s, lock: fleet.LockInfo{State: "free"}, news: make(chan struct{}),
		screens: map[string]fleet.Screen{},
		choices: fleet.Choices{
			Roles: []fleet.Role{"dev", "architect"}, Grace: 90 * time.Second,
			Profiles: []fleet.ProfileInfo{{Name: "claude", Command: "claude --permission-mode acceptEdits", Ready: "report"}, {Name: "shell", Command: "sh -c 'exec bash'", Ready: "started"}},
		},
		outcome: fleet.Outcome{Outcome: fleet.Accepted},
	}
}

// set replaces the snapshot and wakes who waits for it.
func (f *fakeFleet) set(s fleet.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Rev = f.snap.Rev + 1
	f.snap = s
	close(f.news)
	f.news = make(chan struct{})
}

func (f *fakeFleet) called(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

func (f *fakeFleet) Snapshot(ctx context.Context, rev uint64) (fleet.Snapshot, error) {
	for {
		f.mu.Lock()
		s, err, news := f.snap, f.err, f.news
		f.mu.Unlock()
		if err != nil || s.Rev > rev || rev == 0 {
			return s, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fleet.Snapshot{}, ctx.Err()
		}
	}
}

func (f *fakeFleet) Look(tree string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks = append(f.looks, tree)
}

func (f *fakeFleet) Now() fleet.Instant { return f.now() }

func (f *fakeFleet) Lock() fleet.LockInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lock
}

func (f *fakeFleet) Screen(ctx context.Context, member string, rev uint64) (fleet.Screen, error) {
	f.mu.Lock()
	s, ok := f.screens[member]
	f.mu.Unlock()
	if !ok {
		return s, errors.New("screen " + member + ": no such member")
	}
	if s.Rev > rev {
		return s, nil
	}
	<-ctx.Done()
	return s, ctx.Err()
}

func (f *fakeFleet) Choices() fleet.Choices { return f.choices }

func (f *fakeFleet) change(ctx context.Context) error {
	if f.act != nil {
		return f.act(ctx)
	}
	return nil
}

func (f *fakeFleet) Dispatch(ctx context.Context, o fleet.Order) fleet.Outcome {
	branch := ""
	if o.Branch != "" {
		branch = fmt.Sprintf(" branch %q", o.Branch)
	}
	if len(o.Also) > 0 {
		branch += fmt.Sprintf(" also %v", o.Also)
	}
	if o.BesideForeign {
		branch += " beside"
	}
	f.called("dispatch %s %s %s %q%s", o.Tree, o.Role, o.Profile, o.Task, branch)
	if err := f.change(ctx); err != nil {
		return fleet.Outcome{Outcome: fleet.Refused, Code: fleet.CodeLockBusy, Message: err.Error()}
	}
	return f.outcome
}

func (f *fakeFleet) PrunePlan(context.Context) (fleet.PruneReport, error) { return f.plan, nil }

func (f *fakeFleet) Prune(ctx context.Context) (fleet.PruneReport, error) {
	f.called("prune")
	return f.pruned, f.change(ctx)
}

func (f *fakeFleet) Release(ctx context.Context, tree, id string) error {
	f.called("release %s %s", tree, id)
	return f.change(ctx)
}

func (f *fakeFleet) Send(ctx context.Context, member, text string, enter bool) error {
	how := ""
	if !enter {
		how = " without enter"
	}
	f.called("send %s %q%s", member, text, how)
	return f.change(ctx)
}

func (f *fakeFleet) Settled(ctx context.Context, out fleet.Outcome) fleet.Outcome {
	if f.settled != nil {
		return f.settled(out)
	}
	return out
}

func (f *fakeFleet) Enqueue(ctx context.Context, o fleet.Order) error {
	f.called("enqueue %s %s %s %q", o.Tree, o.Role, o.Profile, o.Task)
	return f.change(ctx)
}

func (f *fakeFleet) Unqueue(ctx context.Context, id string) error {
	f.called("unqueue %s", id)
	return f.change(ctx)
}

func (f *fakeFleet) Restart(ctx context.Context, member string) fleet.Outcome {
	f.called("restart %s", member)
	if err := f.change(ctx); err != nil {
		return fleet.Outcome{Outcome: fleet.Refused, Code: fleet.CodeLockBusy, Message: err.Error()}
	}
	return f.outcome
}

func (f *fakeFleet) Explain(_ context.Context, tree string) (string, error) {
	return f.page, f.pageErr
}

func (f *fakeFleet) Witnesses(_ context.Context, member string) (string, error) {
	f.called("witnesses %s", member)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.witnesses, f.pageErr
}

func (f *fakeFleet) Diff(_ context.Context, tree string, since bool) (string, error) {
	if since {
		return "commit 1a2b3c4 Resume the import\n" + f.page, f.pageErr
	}
	return f.page, f.pageErr
}

func (f *fakeFleet) CommandLine(args ...string) string {
	return "fleetdeck " + strings.Join(args, " ")
}

func (f *fakeFleet) Stop(ctx context.Context, member string) error {
	f.called("stop %s", member)
	return f.change(ctx)
}

func (f *fakeFleet) Attach(member string) (*exec.Cmd, error) { return f.command("attach " + member) }
func (f *fakeFleet) Shell(tree string) (*exec.Cmd, error)    { return f.command("shell " + tree) }
func (f *fakeFleet) Editor(tree string) (*exec.Cmd, error)   { return f.command("edit " + tree) }

func (f *fakeFleet) EditText(text string) (*exec.Cmd, func() (string, error), error) {
	c, err := f.command(fmt.Sprintf("edit text %q", text))
	return c, func() (string, error) { return text + " edited", nil }, err
}

// command notes a command that would have the terminal, and gives none, so that none gets it.
func (f *fakeFleet) command(what string) (*exec.Cmd, error) {
	f.called("%s", what)
	return nil, errors.New("not in this test")
}

// instant is d after the day began.
func instant(d time.Duration) fleet.Instant {
	return fleet.Instant{Wall: day.Add(d), Mono: time.Hour + d, Boot: testBoot, Host: "kite"}
}

func ptr[T any](v T) *T { return &v }

// example is a fleet with something of everything.
func example(now fleet.Instant) fleet.Snapshot {
	in := func(d time.Duration) fleet.Deadline { return fleet.DeadlineAfter(now, d) }
	ago := func(d time.Duration) time.Time { return now.Wall.Add(-d) }
	s := fleet.Snapshot{
		Rev: 1, At: now,
		Lock:   fleet.LockInfo{State: "free"},
		Daemon: fleet.DaemonInfo{Running: true, Pid: 991, Version: "0.1.0", Since: ago(134 * time.Minute), AnsweredAt: now.Wall},
		File:   fleet.FileInfo{Path: home + "/.local/state/fleetdeck/reservations.json", ReadAt: now.Wall},
		Members: []fleet.Member{
			{ID: "01JEABCD0001", Tree: home + "/src/api", Role: "dev", RequestedRole: "dev", Profile: "claude", State: fleet.StateWorking, StateMessage: "running the tests", StateSource: "report", StartedAt: ago(42 * time.Minute), Pid: 4711, Task: "Make the importer resume after a crash.", Reservation: "r1"},
			{ID: "01JEABCD0002", Tree: home + "/src/billing", Role: "dev", RequestedRole: "dev", Profile: "claude", State: fleet.StateWaiting, StateMessage: "May I drop the column invoices.legacy_ref?", StartedAt: ago(71 * time.Minute), Pid: 4712, Reservation: "r2"},
			{ID: "01JEABCD0003", Tree: home + "/src/fleet-core", Role: "architect", RequestedRole: "architect", Profile: "codex", Slot: "architect-1", State: fleet.StateIdle, StartedAt: ago(3 * time.Hour), Pid: 4713, Reservation: "r3"},
			{ID: "01JEABCD0004", Tree: home + "/src/old", Role: "dev", RequestedRole: "dev", Profile: "shell", State: fleet.StateExited, ExitCode: ptr(137), StartedAt: ago(5 * time.Hour), EndedAt: ago(4 * time.Hour), Reservation: "r4"},
		},
		Launches: []fleet.Launch{
			{ID: "l5", Tree: home + "/src/search", Role: "dev", Profile: "claude", Step: "booting", Pid: 4801, AcceptedAt: ago(18 * time.Second), Reservation: "r5", Deadline: in(72 * time.Second)},
		},
		Slots: []fleet.Slot{
			{Name: "architect-1", Role: "architect", Profile: "codex", State: fleet.SlotBound, Member: "01JEABCD0003", Reservation: "r3", Tree: home + "/src/fleet-core", Since: ago(3 * time.Hour)},
			{Name: "architect-2", Role: "architect", Profile: "codex", State: fleet.SlotFree},
			{Name: "dev-1", Role: "dev", Profile: "claude", State: fleet.SlotReserved, Member: "l5", Reservation: "r5", Tree: home + "/src/search", Since: ago(18 * time.Second)},
		},
		Reservations: []fleet.ReservationRow{
			{Tree: home + "/src/search", ID: "r5-01JEZZ", Role: "dev", Profile: "claude", ReservedAt: ago(18 * time.Second), ExpiresAt: now.Wall.Add(72 * time.Second), Verdict: fleet.VerdictPending, Dispatcher: fleet.Dispatcher{Pid: 4242, Host: "kite", Program: "fleetdeck dispatch"}, Deadline: in(72 * time.Second)},
			{Tree: home + "/src/web", ID: "r6-01JEZZ", Role: "dev", Profile: "shell", ReservedAt: ago(63 * time.Second), ExpiresAt: now.Wall.Add(27 * time.Second), Verdict: fleet.VerdictPending, Dispatcher: fleet.Dispatcher{Pid: 5151, Host: "kite", Program: "python3 dispatch.py"}, Deadline: in(27 * time.Second)},
			{Tree: home + "/src/old", ID: "r4-01JEZZ", Role: "dev", Profile: "shell", ReservedAt: ago(10 * time.Minute), ExpiresAt: ago(8 * time.Minute), Verdict: fleet.VerdictExpired, Dispatcher: fleet.Dispatcher{Pid: 77, Host: "kite", Program: "cron"}, Deadline: in(-8 * time.Minute), Droppable: true},
		},
		Queue: []fleet.QueueRow{
			{ID: "01JEQQQQ0001", Tree: home + "/src/api", Role: "dev", Profile: "claude", Task: "Write the release notes.", State: "queued", AddedAt: ago(12 * time.Minute)},
			{ID: "01JEQQQQ0002", Tree: home + "/src/docs", Role: "dev", Profile: "shell", Task: "Check all links.", State: "given_up", AddedAt: ago(50 * time.Minute), Error: "launch_failed: exited with code 3 while booting"},
		},
		History: []fleet.Deed{
			{Time: ago(71 * time.Minute), By: fleet.Dispatcher{Pid: 900, Host: "kite", Program: "fleetdeck console"}, What: "dispatch", Command: "fleetdeck dispatch /home/kim/src/billing --role dev --profile claude", Tree: home + "/src/billing", Member: "01JEABCD0002", Outcome: "done"},
			{Time: ago(4 * time.Minute), By: fleet.Dispatcher{Pid: 900, Host: "kite", Program: "fleetdeck console"}, What: "dispatch", Command: "fleetdeck dispatch /home/kim/src/api --role dev --profile claude", Tree: home + "/src/api", Outcome: "refused", Code: fleet.CodeTreeOccupied, Message: "~/src/api is occupied by 01JEABCD0001"},
		},
		Keeper: fleet.KeeperInfo{Running: true, Holder: &fleet.LockHolder{Pid: 991, Program: "fleetdeck up"}, Staff: 2},
		Events: []fleet.Event{
			{Seq: 1, Time: ago(3 * time.Hour), Level: levelInfo, Kind: "listed", Tree: home + "/src/fleet-core", Member: "01JEABCD0003", Message: "architect on codex is listed in slot architect-1"},
			{Seq: 2, Time: ago(71 * time.Minute), Level: levelInfo, Kind: "listed", Tree: home + "/src/billing", Member: "01JEABCD0002", Message: "dev on claude is listed"},
			{Seq: 3, Time: ago(4 * time.Minute), Level: levelWarn, Kind: "refused", Tree: home + "/src/api", Message: "refused: the tree is occupied by 01JEABCD0001 since 06:28"},
			{Seq: 4, Time: ago(2 * time.Minute), Level: levelAlarm, Kind: "launch_failed", Tree: home + "/src/docs", Message: "claude ended during boot with exit code 127"},
			{Seq: 5, Time: ago(18 * time.Second), Level: levelInfo, Kind: "accepted", Tree: home + "/src/search", Message: "dev on claude is accepted; its grace is 90 s"},
		},
	}
	tree := func(name, branch string, dirty bool, o fleet.Occupied) *fleet.TreeRow {
		s.Trees = append(s.Trees, fleet.TreeRow{Tree: home + "/src/" + name, Branch: branch, Dirty: dirty, Occupancy: o})
		return &s.Trees[len(s.Trees)-1]
	}
	tree("api", "importer-resume", true, fleet.Taken).Member = "01JEABCD0001"
	tree("billing", "main", false, fleet.Taken).Member = "01JEABCD0002"
	tree("docs", "main", false, fleet.Free)
	tree("fleet-core", "release/2026.11-hardening", true, fleet.Taken).Member = "01JEABCD0003"
	tree("legacy-importer-with-a-long-name", "main", false, fleet.Foreign).Foreign = fleet.ForeignRow{Agent: "claude", Pid: 3141, Since: ago(26 * time.Minute)}
	tree("mobile", "feature/push-notifications", false, fleet.Free)
	tree("old", "main", false, fleet.Free)
	t := tree("search", "main", false, fleet.Reserved)
	t.Reservation, t.Launch, t.Deadline = "r5-01JEZZ", "l5", in(72*time.Second)
	t = tree("web", "checkout-v2", true, fleet.Reserved)
	t.Reservation, t.Deadline = "r6-01JEZZ", in(27*time.Second)
	return s
}

// apiScreen is what an agent's terminal looks like.
func apiScreen() fleet.Screen {
	styled := []string{
		"\x1b[1m> Make the importer resume after a crash.\x1b[m",
		"",
		"\x1b[32m●\x1b[m I will look at how the importer keeps its place.",
		"",
		"\x1b[32m●\x1b[m Read \x1b[1mimporter/cursor.go\x1b[m (184 lines)",
		"\x1b[32m●\x1b[m Update \x1b[1mimporter/cursor.go\x1b[m",
		"  \x1b[31m-   return c.last\x1b[m",
		"  \x1b[32m+   return c.durable()\x1b[m",
		"",
		"\x1b[33m✻ Running the tests… (42s)\x1b[m",
		"",
		"\x1b[2m  go test ./importer/... -race\x1b[m",
	}
	s := fleet.Screen{Cols: 80, Rows: 24, Rev: 1, Title: "importer", Styled: styled, Cursor: fleet.Cursor{Y: 11, Visible: true}}
	s.Lines = make([]string, len(styled))
	for i, l := range styled {
		s.Lines[i] = clean(l)
	}
	return s
}
