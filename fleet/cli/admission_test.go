package cli_test

import (
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
	"fleetdeck/fleet/client"
)

// spellings gives names of one tree that are all the same tree.
func (r *rig) spellings(path string) []string {
	r.t.Helper()
	link := filepath.Join(r.dir, "link-"+filepath.Base(path))
	if err := os.Symlink(path, link); err != nil {
		r.t.Fatal(err)
	}
	names := []string{
		path, path + "/", filepath.Join(path, "sub", "dir"), path + "/sub/..", path + "/./sub/dir/../..",
		link, link + "/sub", filepath.Join(r.dir, "src", "..", "src", filepath.Base(path)),
	}
	bind := filepath.Join(r.dir, "bind-"+filepath.Base(path))
	if os.Getuid() == 0 && os.Mkdir(bind, 0o755) == nil && exec.Command("mount", "--bind", path, bind).Run() == nil {
		r.t.Cleanup(func() { exec.Command("umount", "--lazy", bind).Run() })
		names = append(names, bind)
	} else {
		r.t.Log("no bind mount here: that spelling is left out")
	}
	return names
}

// race lets n processes dispatch into one tree at once, under all its names, and gives their exit codes.
func (r *rig) race(n int, names []string, args ...string) []int {
	codes := make([]int, n)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		cmd := r.command(append([]string{"dispatch", "--json", names[i%len(names)]}, args...)...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		wg.Go(func() {
			<-start
			cmd.Run()
			codes[i] = cmd.ProcessState.ExitCode()
			if !slices.Contains([]int{0, 3, 4}, codes[i]) {
				r.t.Logf("process %d: exit %d: %s", i, codes[i], out.String())
			}
		})
	}
	close(start)
	wg.Wait()
	return codes
}

func count(codes []int, code int) int {
	n := 0
	for _, c := range codes {
		if c == code {
			n++
		}
	}
	return n
}

// loop runs f again and again until stop is called.
func loop(f func()) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				f()
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

const racers = 32

func TestOneTreeGetsOneWorker(t *testing.T) {
	t.Parallel()
	t.Run("32 processes under all its names", func(t *testing.T) {
		r := newRig(t, agents)
		r.must(nil, "up")
		tree := r.repo("api")
		codes := r.race(racers, r.spellings(tree), "--profile", "worker")
		if count(codes, 0) != 1 || count(codes, 3)+count(codes, 4) != racers-1 {
			t.Errorf("exit codes %v, want one 0, and 3 or 4 for all others", codes)
		}
		// Its key may be any of its names that is no link: a bind mount is a path of its own.
		r.await("its worker is listed", func() bool { return len(r.alive()) == 1 })
		if got := r.starts(); len(got) != 1 {
			t.Errorf("%d agents were started, want 1", len(got))
		}
	})

	t.Run("while two prunes loop", func(t *testing.T) {
		r := newRig(t, agents)
		r.must(nil, "up")
		tree := r.repo("api")
		for range 2 {
			defer loop(func() { r.fleetdeck("prune", "--quiet") })()
		}
		codes := r.race(racers, r.spellings(tree), "--profile", "slow")
		if count(codes, 0) != 1 || count(codes, 3)+count(codes, 4) != racers-1 {
			t.Errorf("exit codes %v, want one 0, and 3 or 4 for all others", codes)
		}
		if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		// Its key may be any of its names that is no link: a bind mount is a path of its own.
		r.await("its worker is listed", func() bool { return len(r.alive()) == 1 })
		if got := r.starts(); len(got) != 1 {
			t.Errorf("%d agents were started, want 1", len(got))
		}
	})

	t.Run("while the daemon is killed and started again", func(t *testing.T) {
		r := newRig(t, strings.Replace(agents, `grace = "20s"`, `grace = "5s"`, 1))
		r.must(nil, "up")
		tree := r.repo("api")
		stop := loop(func() {
			r.kill()
			r.must(nil, "up")
			time.Sleep(100 * time.Millisecond) // the pace of the kills, nothing is waited for
		})
		codes := r.race(racers, r.spellings(tree), "--profile", "worker")
		stop()
		for _, c := range codes {
			if !slices.Contains([]int{0, 3, 4, 5, 6}, c) {
				t.Errorf("exit code %d, want 0, 3, 4, 5 or 6", c)
			}
		}
		if n := count(codes, 0); n > 1 {
			t.Errorf("%d were accepted, want one at the most: %v", n, codes)
		}
		r.await("no launch is under way", func() bool { return !r.anyReserved() })
		if got := r.begun(count(codes, 0)); len(got) > 1 {
			t.Errorf("%d agents were started, %d accepted: %v", len(got), count(codes, 0), codes)
		}
		if alive := r.alive(); len(alive) != len(r.begun(len(alive))) {
			t.Errorf("%d members are listed, %d were started", len(alive), len(r.starts()))
		}
	})
}

func TestPruneLeavesTheFileAloneWhileTheLockIsHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	expired, held := r.repo("expired"), r.repo("held")
	r.must(nil, "reserve", expired, "--profile", "worker", "--grace", "1ms")
	r.must(nil, "reserve", held, "--profile", "worker")
	release := r.holdLock()
	bytesBefore, before := r.fileState()

	stdout, stderr, code := r.fleetdeck("prune", "--json")
	var report fleet.PruneReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 4 || report.Lock != "busy" || report.Kept != 2 {
		t.Errorf("prune: exit %d, %q, want exit 4, busy, 2 kept", code, stdout)
	}
	if !strings.Contains(stderr, "held by pid") {
		t.Errorf("prune does not say who holds the lock: %q", stderr)
	}
	bytesAfter, after := r.fileState()
	if bytesBefore != bytesAfter || !os.SameFile(before, after) {
		t.Error("the file was rewritten while another process held the lock")
	}
	if got := r.tree(expired).Occupancy; got != fleet.Free {
		t.Errorf("unpruned, the tree whose grace ran out counts as %s, want free", got)
	}
	if got := r.tree(held).Occupancy; got != fleet.Reserved {
		t.Errorf("unpruned, the reserved tree counts as %s, want reserved", got)
	}
	release()
	r.must(&report, "prune")
	if len(report.Pruned) != 1 || report.Pruned[0].Tree != expired || report.Kept != 1 {
		t.Errorf("prune with the lock free: %+v, want the expired one dropped", report)
	}
}

func TestNoReservationIsErasedByAPrune(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	const n = 16
	for range 2 {
		defer loop(func() { r.fleetdeck("prune", "--quiet") })()
	}
	want := map[string]bool{}
	for i := range n {
		want[r.repo(fmt.Sprintf("t%d", i))] = true
	}
	var wg sync.WaitGroup
	for tree := range want {
		cmd := r.command("reserve", tree, "--profile", "worker")
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("reserve %s: %v: %s", tree, err, out)
			}
		})
	}
	wg.Wait()
	for _, e := range r.reservations() {
		delete(want, e.Tree)
	}
	if len(want) > 0 {
		t.Errorf("%d reservations were erased: %v", len(want), want)
	}
}

func TestReservationOutlivesItsWriter(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	tree := r.repo("api")
	first, code := r.dispatch(tree, "--profile", "slow")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, first)
	}
	// The dispatcher has exited; its worker is not listed yet.
	row := r.tree(tree)
	if row.Occupancy != fleet.Reserved || row.Reservation != first.Reservation || row.RemainingS <= 0 {
		t.Errorf("the tree is %+v, want reserved by %s with time left", row, first.Reservation)
	}
	second, code := r.dispatch(tree, "--profile", "slow")
	if code != 3 || second.Code != fleet.CodeTreeReserved || !strings.Contains(second.Message, "s left") {
		t.Errorf("second dispatch: exit %d, %+v, want 3, tree_reserved and the seconds left", code, second)
	}
	if rows := r.reservations(); len(rows) != 1 || rows[0].ID != first.Reservation || rows[0].Verdict != fleet.VerdictPending {
		t.Errorf("the file holds %+v, want the reservation %s, pending", rows, first.Reservation)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.awaitOccupancy(tree, fleet.Taken)
	r.await("the entry is gone", func() bool { return len(r.reservations()) == 0 })
	third, code := r.dispatch(tree, "--profile", "slow")
	if code != 3 || third.Code != fleet.CodeTreeOccupied {
		t.Errorf("third dispatch: exit %d, %+v, want 3, tree_occupied", code, third)
	}
}

func TestGraceThatRunsOutEndsItsLaunchBeforeTheTreeIsFree(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	tree := r.repo("api")
	out, code := r.dispatch(tree, "--profile", "never", "--grace", "2s")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	marker := "FLEETDECK_MEMBER=" + out.Member
	r.await("the agent and its children run", func() bool { return len(marked(marker)) >= 3 })
	r.await("the tree is free", func() bool {
		free := r.tree(tree).Occupancy == fleet.Free
		if left := marked(marker); free && len(left) > 0 {
			t.Errorf("the tree is free while processes %v of its launch live", left)
		}
		return free
	})
	again, code := r.dispatch(tree, "--profile", "worker", "--wait")
	if code != 0 {
		t.Errorf("dispatch after the grace: exit %d: %+v", code, again)
	}
}

func TestRefusedLeavesNothing(t *testing.T) {
	full(t)
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	for _, tt := range []struct {
		name, profile, role string
		wait                bool
		want                fleet.Code
	}{
		{"unknown profile", "nobody", "dev", false, fleet.CodeProfileUnknown},
		{"unknown role", "worker", "emperor", false, fleet.CodeRoleUnknown},
		{"no slot for the role", "worker", "architect", false, fleet.CodeSlotUnconfigured},
		{"command not found", "missing", "dev", false, fleet.CodeLaunchFailed},
		{"not executable", "plainfile", "dev", false, fleet.CodeLaunchFailed},
		{"exit during boot", "dies", "dev", true, fleet.CodeLaunchFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := r.repo(strings.ReplaceAll(tt.name, " ", "-"))
			args := []string{"--profile", tt.profile, "--role", tt.role}
			if tt.wait {
				args = append(args, "--wait")
			}
			out, code := r.dispatch(tree, args...)
			if code != 3 || out.Outcome != fleet.Refused || out.Code != tt.want {
				t.Errorf("dispatch: exit %d, %+v, want 3, refused, %s", code, out, tt.want)
			}
			r.await("no entry stays", func() bool {
				return !slices.ContainsFunc(r.reservations(), func(e fleet.ReservationRow) bool { return e.Tree == tree })
			})
			if got := r.tree(tree).Occupancy; got != fleet.Free {
				t.Errorf("the tree is %s, want free", got)
			}
			if left := marked("FLEETDECK_TREE=" + tree); len(left) > 0 {
				t.Errorf("processes stay: %v", left)
			}
		})
	}

	t.Run("daemon down", func(t *testing.T) {
		tree := r.repo("down")
		r.must(nil, "down")
		defer r.must(nil, "up")
		out, code := r.dispatch(tree, "--profile", "worker")
		if code != 6 || out.Code != fleet.CodeDaemonUnreachable {
			t.Errorf("dispatch: exit %d, %+v, want 6, daemon_unreachable", code, out)
		}
		if rows := r.reservations(); slices.ContainsFunc(rows, func(e fleet.ReservationRow) bool { return e.Tree == tree }) {
			t.Errorf("an entry stays: %+v", rows)
		}
	})

	t.Run("no such tree", func(t *testing.T) {
		if _, _, code := r.fleetdeck("dispatch", filepath.Join(r.dir, "nowhere")); code != 7 {
			t.Errorf("dispatch: exit %d, want 7", code)
		}
		if _, stderr, code := r.fleetdeck("dispatch", r.dir); code != 2 || !strings.Contains(stderr, "--no-git") {
			t.Errorf("dispatch outside git: exit %d, %q, want 2 and a word on --no-git", code, stderr)
		}
	})
}

func TestPausedDispatcherIsTooLate(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, agents)
	r.must(nil, "up")
	proxy := r.intercept()
	// The dispatcher must be caught between its write and its request. Where it was quicker, another tree is tried.
	for try := range 200 {
		tree := r.repo(fmt.Sprintf("t%d", try))
		before := proxy.spawns()
		cmd := r.command("dispatch", "--json", tree, "--profile", "worker", "--grace", "1s")
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			data, _ := os.ReadFile(r.file())
			if bytes.Contains(data, []byte(tree)) {
				break
			}
		}
		cmd.Process.Signal(syscall.SIGSTOP)
		r.await("it is stopped", func() bool { return stopped(cmd.Process.Pid) })
		if _, _, code := r.fleetdeck("lock", "--wait", "1ms", "--", "true"); code != 0 || proxy.spawns() != before {
			cmd.Process.Signal(syscall.SIGCONT)
			cmd.Wait()
			continue
		}
		r.awaitOccupancy(tree, fleet.Free)
		other, code := r.dispatch(tree, "--profile", "slow")
		if code != 0 {
			t.Fatalf("dispatch after the grace: exit %d: %+v", code, other)
		}
		cmd.Process.Signal(syscall.SIGCONT)
		cmd.Wait()
		var late fleet.Outcome
		if err := json.Unmarshal(out.Bytes(), &late); err != nil || cmd.ProcessState.ExitCode() != 3 || late.Code != fleet.CodeReservationStale {
			t.Errorf("the late one: exit %d, %s, want 3, reservation_stale", cmd.ProcessState.ExitCode(), out.String())
		}
		if row := r.tree(tree); row.Occupancy != fleet.Reserved || row.Reservation != other.Reservation {
			t.Errorf("the other's tree is %+v, want reserved by %s", row, other.Reservation)
		}
		r.await("the other's agent runs", func() bool { return slices.Contains(r.starts(), other.Member) })
		if left := marked("FLEETDECK_TREE=" + tree); len(left) == 0 {
			t.Error("the other's agent is gone")
		}
		return
	}
	t.Error("the dispatcher was never caught between reserve and send")
}

func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // no /proc here: the signal is all there is
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "T") || strings.HasPrefix(rest, "Z") // or it was quicker, and has ended
}

func TestLostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	tree := r.repo("api")
	proxy := r.intercept()
	proxy.loseAnswers(1, func() {
		// The daemon dies after it took the request, before anybody hears of it.
		proxy.killDaemon()
	})
	cmd := r.command("dispatch", "--json", tree, "--profile", "worker")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.await("the answer was lost", func() bool { return proxy.lost() == 1 })
	proxy.close()
	r.must(nil, "up")
	cmd.Wait()
	var got fleet.Outcome
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || cmd.ProcessState.ExitCode() != 0 {
		t.Fatalf("dispatch: exit %d: %s", cmd.ProcessState.ExitCode(), out.String())
	}
	r.awaitOccupancy(tree, fleet.Taken)
	if starts := r.starts(); len(starts) != 1 || starts[0] != got.Member {
		t.Errorf("started: %v, want only %s", starts, got.Member)
	}
}

func TestUnknownOutcomeKeepsTheReservation(t *testing.T) {
	full(t)
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	proxy := r.intercept()
	proxy.loseAnswers(1<<30, nil)

	t.Run("while its grace lasts", func(t *testing.T) {
		tree := r.repo("interrupted")
		cmd := r.command("dispatch", "--json", tree, "--profile", "slow")
		var stdout bytes.Buffer
		cmd.Stdout = &stdout
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r.await("it asks again", func() bool { return proxy.lost() >= 3 })
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
		var out fleet.Outcome
		json.Unmarshal(stdout.Bytes(), &out)
		if code := cmd.ProcessState.ExitCode(); code != 5 || out.Code != fleet.CodeOutcomeUnknown || out.Reservation == "" {
			t.Errorf("dispatch: exit %d, %+v, want 5, outcome_unknown", code, out)
		}
		if rows := r.reservations(); len(rows) != 1 || rows[0].ID != out.Reservation || rows[0].Verdict != fleet.VerdictPending {
			t.Errorf("the file holds %+v, want the reservation %s, pending", rows, out.Reservation)
		}
		r.await("its agent runs", func() bool { return len(r.starts()) > 0 })
		if starts := r.starts(); len(starts) != 1 {
			t.Errorf("%d agents were started: the same request again starts no second one", len(starts))
		}
	})

	t.Run("until its grace runs out", func(t *testing.T) {
		out, code := r.dispatch(r.repo("patient"), "--profile", "slow", "--grace", "2s")
		if code != 5 || out.Outcome != fleet.Unknown || out.Code != fleet.CodeOutcomeUnknown {
			t.Errorf("dispatch: exit %d, %+v, want 5, unknown", code, out)
		}
	})
}

func TestKilledDaemonLosesNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	a, b := r.repo("a"), r.repo("b")
	for _, tree := range []string{a, b} {
		if out, code := r.dispatch(tree, "--profile", "worker", "--wait"); code != 0 {
			t.Fatalf("dispatch: exit %d: %+v", code, out)
		}
	}
	before := r.members()
	r.kill()
	for _, m := range before {
		if !processAlive(m.Pid) {
			t.Errorf("member %s did not survive the daemon", m.ID)
		}
	}
	// One of them ends while nobody watches.
	gone := before[0]
	if err := syscall.Kill(gone.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.await("it is gone", func() bool { return !processAlive(gone.Pid) })
	r.must(nil, "up")
	r.await("its exit code is known", func() bool {
		for _, m := range r.members() {
			if m.ID == gone.ID {
				return m.ExitCode != nil && *m.ExitCode == 128+int(syscall.SIGTERM)
			}
		}
		return false
	})
	for _, m := range r.members() {
		if m.ID != before[1].ID {
			continue
		}
		want := before[1]
		if m.Pid != want.Pid || m.Tree != want.Tree || m.Role != want.Role || m.CharterSHA256 != want.CharterSHA256 || !m.Alive() {
			t.Errorf("it came back as %+v, was %+v", m, want)
		}
	}
	if got := r.tree(b).Occupancy; got != fleet.Taken && before[1].Tree == b {
		t.Errorf("its tree is %s, want occupied", got)
	}
}

func TestDamagedFileIsRefusedAndRepaired(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, agents)
	r.must(nil, "up")
	tree, launching := r.repo("api"), r.repo("launching")
	if out, code := r.dispatch(launching, "--profile", "slow"); code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	for name, content := range map[string]string{
		"zero bytes": "", "cut short": "{\n\"/a\": {\"id", "NUL-filled": strings.Repeat("\x00", 512), "a list": "[]", "null": "null",
		"newer": `{"$format":"fleetdeck.reservations/2"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(r.file(), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"dispatch", tree, "--profile", "worker"}, {"reserve", tree, "--profile", "worker"}, {"prune"}, {"release", tree}, {"reservations"},
			} {
				_, stderr, code := r.fleetdeck(args...)
				if code != 8 || !strings.Contains(stderr, r.file()) || !strings.Contains(stderr, "hint:") {
					t.Errorf("%s: exit %d, %q, want 8, the file and a hint", args[0], code, stderr)
				}
			}
			if got, _ := os.ReadFile(r.file()); string(got) != content {
				t.Errorf("the file was changed to %q", got)
			}
			if name == "newer" {
				if _, _, code := r.fleetdeck("repair"); code != 8 {
					t.Errorf("repair of a newer format: exit %d, want 8", code)
				}
				return
			}
			var done struct {
				Aside   string
				Rebuilt int
			}
			r.must(&done, "repair")
			if kept, _ := os.ReadFile(done.Aside); string(kept) != content || done.Rebuilt != 1 {
				t.Errorf("repair: %+v, aside %q", done, kept)
			}
			if rows := r.reservations(); len(rows) != 1 || rows[0].Tree != launching || rows[0].Verdict != fleet.VerdictPending {
				t.Errorf("rebuilt: %+v", rows)
			}
		})
	}
}

func TestAgentReportsItsState(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	out, code := r.dispatch(r.repo("api"), "--profile", "reporter", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	m := r.members()[0]
	if m.State != fleet.StateWorking || m.StateMessage != "hello" || m.StateSource != "report" {
		t.Errorf("member: %+v, want working, hello, by report", m)
	}
	if _, _, code := r.fleetdeck("report", "working"); code != 2 {
		t.Errorf("report outside an agent: exit %d, want 2", code)
	}
}

func TestLockRunsACommandAndKeepsItsCode(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	if _, _, code := r.fleetdeck("lock", "--", "sh", "-c", "exit 42"); code != 42 {
		t.Errorf("exit %d, want 42", code)
	}
	// What the command leaves running does not hold the lock.
	r.must(nil, "lock", "--", "sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $! > "+filepath.Join(r.dir, "pid"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := exec.CommandContext(ctx, r.command("lock", "--wait", "1ms", "--", "true").Path, r.command("lock", "--wait", "1ms", "--", "true").Args[1:]...).Run(); err != nil {
		t.Errorf("the lock is not free: %v", err)
	}
	pid, _ := os.ReadFile(filepath.Join(r.dir, "pid"))
	exec.Command("kill", strings.TrimSpace(string(pid))).Run()
	r.holdLock()
	if _, _, code := r.fleetdeck("lock", "--wait", "10ms", "--", "true"); code != 4 {
		t.Errorf("with the lock held: exit %d, want 4", code)
	}
}

// The same request may come many times at once: from a client that lost the answer, or from several that share an id.
func TestOneReservationStartsOneAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	tree := r.repo("api")
	var out fleet.Outcome
	r.must(&out, "reserve", tree, "--profile", "worker")
	daemon := client.New(filepath.Join(r.state, "fleetd.sock"), "")
	ids := make([]string, 32)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			a, err := daemon.Spawn(t.Context(), api.Spawn{Reservation: out.Reservation, Tree: tree, Role: "dev", Profile: "worker"})
			if err != nil {
				t.Error(err)
			}
			ids[i] = a.ID()
		})
	}
	wg.Wait()
	slices.Sort(ids)
	if got := slices.Compact(ids); len(got) != 1 {
		t.Errorf("the answers name %v, want one member", got)
	}
	r.awaitOccupancy(tree, fleet.Taken)
	if got := r.starts(); len(got) != 1 {
		t.Errorf("%d agents were started, want 1", len(got))
	}
	told := map[string]int{}
	if err := daemon.Events(t.Context(), 0, false, func(e fleet.Event) { told[e.Kind]++ }); err != nil {
		t.Fatal(err)
	}
	if told["accepted"] != 1 || told["listed"] != 1 {
		t.Errorf("events: %v, want accepted and listed once", told)
	}
}

// A stop that meets a launch at any moment ends it, whether it was a launch or a member by then.
func TestStopEndsALaunchAtAnyMoment(t *testing.T) {
	full(t)
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	daemon := client.New(filepath.Join(r.state, "fleetd.sock"), "")
	for i := range 20 {
		tree := r.repo(fmt.Sprintf("t%d", i))
		var out fleet.Outcome
		r.must(&out, "reserve", tree, "--profile", "worker")
		a, err := daemon.Spawn(t.Context(), api.Spawn{Reservation: out.Reservation, Tree: tree, Role: "dev", Profile: "worker"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 3 * time.Millisecond) // a moment of the launch, a later one each time
		if err := daemon.Stop(t.Context(), a.ID()); err != nil {
			t.Errorf("stop after %d ms: %v", 3*i, err)
		}
		s, err := daemon.Launch(t.Context(), a.ID())
		if err != nil || s.Launch != nil || s.Member != nil && s.Member.Alive() {
			t.Errorf("stopped after %d ms it is %+v, %v", 3*i, s, err)
		}
		if left := marked("FLEETDECK_MEMBER=" + a.ID()); len(left) > 0 {
			t.Errorf("stopped after %d ms, processes %v live", 3*i, left)
		}
	}
}
