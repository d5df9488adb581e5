package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

// git runs git in dir with no configuration but the repository's.
func (r *rig) git(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(tree.Environ(os.Environ()), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=kim", "GIT_AUTHOR_EMAIL=kim@example.org", "GIT_COMMITTER_NAME=kim", "GIT_COMMITTER_EMAIL=kim@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// committed makes a repository with one commit.
func (r *rig) committed(name string) string {
	r.t.Helper()
	repo := r.repo(name)
	if err := os.WriteFile(filepath.Join(repo, "file"), []byte("one\n"), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.git(repo, "add", ".")
	r.git(repo, "commit", "--quiet", "-m", "one")
	return repo
}

// hook makes script what git runs in a new worktree of repo.
func (r *rig) hook(repo, script string) {
	r.t.Helper()
	path := filepath.Join(repo, ".git", "hooks", "post-checkout")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// made gives what stands of worktrees and branches of repo beside its own.
func (r *rig) made(repo string) (made []string) {
	r.t.Helper()
	entries, _ := os.ReadDir(repo + ".worktrees")
	for _, e := range entries {
		made = append(made, "directory "+e.Name())
	}
	for line := range strings.Lines(r.git(repo, "worktree", "list", "--porcelain")) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "worktree "); ok && path != repo {
			made = append(made, "worktree "+path)
		}
	}
	own := r.git(repo, "symbolic-ref", "--short", "HEAD")
	for _, b := range strings.Fields(r.git(repo, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads")) {
		if b != own {
			made = append(made, "branch "+b)
		}
	}
	return made
}

const impatient = `lock_wait = "200ms"
[profiles.worker]
command = ["sh", "-c", "pwd >> DIR/starts; exec sleep 600"]
[profiles.missing]
command = ["no-such-program-anywhere"]
[profiles.dies]
command = ["sh", "-c", "echo mine > left; exit 9"]
ready = "pattern:never"
[worktrees]
trust = true
`

func TestDispatchIntoANewWorktree(t *testing.T) {
	t.Parallel()
	r := newRig(t, impatient+"dir = \"wt\"\n")
	r.must(nil, "up")
	repo := r.committed("api")
	held, _ := r.dispatch(repo, "--profile", "worker", "--wait")
	out, code := r.dispatch(filepath.Join(repo, "sub"), "--profile", "worker", "--new-worktree", "feat/x", "--wait")
	want := filepath.Join(r.dir, "wt", "api", "feat-x")
	if code != 0 || out.Outcome != fleet.Accepted || out.Tree != want {
		t.Fatalf("exit %d, %+v, want tree %s", code, out, want)
	}
	if got := r.git(want, "symbolic-ref", "--short", "HEAD"); got != "feat/x" {
		t.Errorf("it is on %s", got)
	}
	if row := r.tree(want); row.Member != out.Member || row.Branch != "feat/x" {
		t.Errorf("%+v", row)
	}
	r.await("both agents run", func() bool { return len(r.starts()) == 2 })
	if got := r.starts(); !slices.Contains(got, want) || !slices.Contains(got, repo) {
		t.Errorf("agents were started in %s", got)
	}
	if held.Member == out.Member {
		t.Error("one member has two trees")
	}

	again, code := r.dispatch(repo, "--profile", "worker", "--new-worktree", "feat/x")
	if code != 3 || again.Code != fleet.CodeWorktreeRefused || !strings.Contains(again.Hint, want) {
		t.Errorf("the branch again: exit %d, %+v", code, again)
	}
	if row := r.tree(want); row.Member != out.Member {
		t.Errorf("after that: %+v", row)
	}
}

func TestRefusedDispatchLeavesNoWorktree(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, impatient)
	r.must(nil, "up")
	for _, tt := range []struct {
		name    string
		prepare func(repo string) (undo func())
		args    []string
		exit    int
		code    fleet.Code
		never   bool // none was made even for a moment
	}{
		{name: "unknown profile", args: []string{"--profile", "none"}, exit: 3, code: fleet.CodeProfileUnknown},
		{name: "unknown role", args: []string{"--role", "none"}, exit: 3, code: fleet.CodeRoleUnknown},
		{name: "no slot", args: []string{"--role", "architect"}, exit: 3, code: fleet.CodeSlotUnconfigured},
		{name: "command not found", args: []string{"--profile", "missing"}, exit: 3, code: fleet.CodeLaunchFailed},
		{name: "no such revision", args: []string{"--from", "nowhere"}, exit: 3, code: fleet.CodeWorktreeRefused, never: true},
		{name: "lock busy", exit: 4, code: fleet.CodeLockBusy, never: true, prepare: func(string) func() { return r.holdLock() }},
		{name: "daemon out of reach", exit: 6, code: fleet.CodeDaemonUnreachable, never: true, prepare: func(string) func() {
			r.must(nil, "down")
			return func() { r.must(nil, "up") }
		}},
		{name: "daemon gone while it is made", exit: 6, code: fleet.CodeDaemonUnreachable, prepare: func(repo string) func() {
			exe, _ := os.Executable()
			r.hook(repo, "pwd > "+filepath.Join(r.dir, "hook-of-"+filepath.Base(repo))+"; "+exe+" down --state "+r.state+" --config "+r.config+" >&2")
			return func() { r.must(nil, "up") }
		}},
		{name: "corrupt file", exit: 8, code: fleet.CodeFileCorrupt, never: true, prepare: func(string) func() {
			os.WriteFile(r.file(), []byte("{"), 0o600)
			return func() { os.Remove(r.file()) }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := r.committed(strings.ReplaceAll(tt.name, " ", "-"))
			seen := filepath.Join(r.dir, "hook-of-"+filepath.Base(repo))
			r.hook(repo, "pwd > "+seen)
			undo := func() {}
			if tt.prepare != nil {
				undo = tt.prepare(repo)
			}
			args := append([]string{"--new-worktree", "x", "--profile", "worker"}, tt.args...)
			out, code := r.dispatch(repo, args...)
			undo()
			if code != tt.exit || out.Code != tt.code || out.Outcome != fleet.Refused {
				t.Errorf("exit %d, %+v, want %d and %s", code, out, tt.exit, tt.code)
			}
			if strings.Contains(out.Message, "stays") {
				t.Errorf("it says that something stays: %s", out.Message)
			}
			if made := r.made(repo); len(made) > 0 {
				t.Errorf("it leaves %v", made)
			}
			if left := r.reservations(); len(left) > 0 {
				t.Errorf("it leaves %+v", left)
			}
			if _, err := os.Stat(seen); (err != nil) != tt.never {
				t.Errorf("that a worktree was made for a moment: %v, want %v", err == nil, !tt.never)
			}
		})
	}
	if got := r.starts(); len(got) > 0 {
		t.Errorf("agents were started in %v", got)
	}
}

func TestWrongCallOfNewWorktreeMakesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, impatient)
	r.must(nil, "up")
	repo := r.committed("api")
	for _, args := range [][]string{
		{"--new-worktree", ""}, {"--from", "HEAD"}, {"--new-worktree", "x", "--from", ""}, {"--new-worktree", "x", "--queue"},
		{"--new-worktree", "x", "--no-git"}, {"--new-worktree=--force"}, {"--new-worktree", "../x"},
	} {
		if _, stderr, code := r.fleetdeck(append([]string{"dispatch", repo, "--profile", "worker"}, args...)...); code != 2 {
			t.Errorf("%q: exit %d: %s", args, code, stderr)
		}
	}
	if made := r.made(repo); len(made) > 0 {
		t.Errorf("made %v", made)
	}
}

func TestWorktreeOfAnUnknownOutcomeStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, strings.Replace(impatient, "lock_wait", "grace = \"2s\"\nlock_wait", 1))
	r.must(nil, "up")
	repo := r.committed("api")
	proxy := r.intercept()
	proxy.loseAnswers(1<<30, nil)
	out, code := r.dispatch(repo, "--new-worktree", "x", "--profile", "worker")
	if code != 5 || out.Outcome != fleet.Unknown || out.Tree != repo+".worktrees/x" {
		t.Errorf("exit %d, %+v", code, out)
	}
	if _, err := os.Stat(filepath.Join(out.Tree, "file")); err != nil {
		t.Error(err)
	}
}

func TestWorktreeWhoseAgentDiedStaysAndThatIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, impatient)
	r.must(nil, "up")
	repo := r.committed("api")
	out, code := r.dispatch(repo, "--new-worktree", "x", "--profile", "dies", "--wait")
	if code != 3 || out.Code != fleet.CodeLaunchFailed || !strings.Contains(out.Hint, repo+".worktrees/x stays") {
		t.Errorf("exit %d, %+v", code, out)
	}
	if _, err := os.Stat(filepath.Join(out.Tree, "left")); err != nil {
		t.Error(err)
	}
}

func TestNewWorktreeThatMayNotBeVacantStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, impatient)
	r.must(nil, "up")
	for _, tt := range []struct {
		name, meanwhile string // what is run while the worktree is made
		profile         string
		code            fleet.Code
		occupancy       fleet.Occupied
	}{
		{"somebody else reserved it", "EXE release --quiet . FLAGS && EXE reserve --quiet . --profile worker FLAGS", "worker", fleet.CodeTreeReserved, fleet.Reserved},
		{"somebody stands in it", "(exec >/dev/null 2>&1; sleep 600) & echo $! > PID", "missing", fleet.CodeLaunchFailed, fleet.Free},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := r.committed(strings.ReplaceAll(tt.name, " ", "-"))
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			pid := filepath.Join(r.dir, "pid")
			r.hook(repo, strings.NewReplacer("EXE", exe, "FLAGS", "--state "+r.state+" --config "+r.config+" >&2", "PID", pid).Replace(tt.meanwhile))
			out, code := r.dispatch(repo, "--new-worktree", "x", "--profile", tt.profile)
			path := repo + ".worktrees/x"
			if code == 0 || out.Code != tt.code || !strings.Contains(out.Message, path+" stays") {
				t.Errorf("exit %d, %+v", code, out)
			}
			if got, err := tree.Resolve(t.Context(), path, false); err != nil || got.Path != path {
				t.Errorf("the tree: %v, %v", got, err)
			}
			if data, err := os.ReadFile(pid); err == nil {
				n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
				syscall.Kill(n, syscall.SIGKILL)
			}
			if row := r.tree(path); row.Occupancy != tt.occupancy {
				t.Errorf("%+v", row)
			}
			r.fleetdeck("release", path)
		})
	}
}

func TestOfManyDispatchesForOneBranchOneIsAccepted(t *testing.T) {
	t.Parallel()
	r := newRig(t, strings.Replace(impatient, "200ms", "20s", 1))
	r.must(nil, "up")
	repo := r.committed("api")
	const n = 8
	codes := make([]int, n)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		cmd := r.command("dispatch", "--json", repo, "--profile", "worker", "--new-worktree", "x")
		wg.Go(func() {
			<-start
			out, _ := cmd.Output()
			if codes[i] = cmd.ProcessState.ExitCode(); codes[i] != 0 && !strings.Contains(string(out), string(fleet.CodeWorktreeRefused)) {
				t.Errorf("exit %d: %s", codes[i], out)
			}
		})
	}
	close(start)
	wg.Wait()
	if count(codes, 0) != 1 || count(codes, 3) != n-1 {
		t.Errorf("exit codes %v, want one 0, and 3 for all others", codes)
	}
	r.await("its agent runs", func() bool { return len(r.starts()) > 0 })
	if got := r.starts(); len(got) != 1 || got[0] != repo+".worktrees/x" {
		t.Errorf("agents were started in %v", got)
	}
}

func TestCrashWhileAWorktreeIsMadeHoldsItNoLongerThanItsGrace(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc: the hook finds its dispatcher there")
	}
	r := newRig(t, strings.Replace(impatient, "lock_wait", "grace = \"2s\"\nlock_wait", 1))
	r.must(nil, "up")
	repo := r.committed("api")
	r.hook(repo, `read -r _ _ _ parent _ < /proc/$PPID/stat; kill -9 $parent`)
	if _, code := r.dispatch(repo, "--new-worktree", "x", "--profile", "worker"); code != -1 {
		t.Fatalf("exit %d, want killed", code)
	}
	path := repo + ".worktrees/x"
	if left := r.reservations(); len(left) != 1 || left[0].Tree != path {
		t.Errorf("reservations %+v, want one of %s", left, path)
	}
	r.await("git is done", func() bool {
		_, err := os.Stat(filepath.Join(repo, ".git", "worktrees", "x", "locked"))
		return os.IsNotExist(err)
	})
	r.awaitOccupancy(path, fleet.Free)
	if out, code := r.dispatch(path, "--profile", "worker"); code != 0 {
		t.Errorf("dispatch there: exit %d, %+v", code, out)
	}
}

func TestANewWorktreeIsReservedBeforeItIsMade(t *testing.T) {
	t.Parallel()
	r := newRig(t, impatient)
	r.must(nil, "up")
	repo := r.committed("api")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// git tells of each change of a branch before it makes it.
	seen := filepath.Join(r.dir, "seen")
	script := "#!/bin/sh\n[ -e " + seen + " ] || " + exe + " reservations --state " + r.state + " --config " + r.config + " > " + seen + "\n"
	if err := os.WriteFile(filepath.Join(repo, ".git", "hooks", "reference-transaction"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	out, code := r.dispatch(repo, "--new-worktree", "x", "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("exit %d, %+v", code, out)
	}
	told, err := os.ReadFile(seen)
	if err != nil {
		t.Skipf("this git tells no hook of a change of a branch: %v", err)
	}
	if !strings.Contains(string(told), out.Tree) || !strings.Contains(string(told), out.Reservation) {
		t.Errorf("before the branch was made the reservations were\n%s, want one of %s, %s", told, out.Tree, out.Reservation)
	}
}

func TestTwoDispatchesAtOnceIntoNewWorktreesOfOneRepositoryBothWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, strings.Replace(impatient, "200ms", "20s", 1))
	r.must(nil, "up")
	repo := r.committed("api")
	var both sync.WaitGroup
	for _, branch := range []string{"one", "two"} {
		cmd := r.command("dispatch", repo, "--profile", "worker", "--new-worktree", branch, "--wait")
		both.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", branch, err, out)
			}
		})
	}
	both.Wait()
	if got := r.alive(); len(got) != 2 {
		t.Errorf("%d live, want 2: %+v", len(got), got)
	}
}

func TestAFailedLaunchLeavesNoWorktreeAndNoBranch(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, impatient+`
[profiles.fails]
command = ["sh", "-c", "exit 9"]
ready = "pattern:never"
[profiles.leaves]
command = ["sh", "-c", "(cd . && exec sleep 600) & exit 9"]
ready = "pattern:never"
[profiles.commits]
command = ["sh", "-c", "GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x git commit -q --allow-empty -m work; exit 9"]
ready = "pattern:never"
`)
	r.must(nil, "up")
	for _, tt := range []struct {
		profile string
		wait    bool
		stays   []string
	}{
		{profile: "fails", wait: true},
		{profile: "fails"},
		{profile: "leaves", wait: true},                               // what it left running is ended first
		{profile: "commits", wait: true, stays: []string{"branch x"}}, // its work is on the branch
	} {
		repo := r.committed(tt.profile + strconv.FormatBool(tt.wait))
		args := []string{"--new-worktree", "x", "--profile", tt.profile}
		if tt.wait {
			out, code := r.dispatch(repo, append(args, "--wait")...)
			if code != 3 || out.Code != fleet.CodeLaunchFailed || tt.stays == nil && !strings.Contains(out.Hint, "removed again") {
				t.Errorf("%s: exit %d, %+v", tt.profile, code, out)
			}
		} else if out, code := r.dispatch(repo, args...); code != 0 {
			t.Errorf("%s: exit %d, %+v", tt.profile, code, out)
		}
		r.await("it is taken back", func() bool { return slices.Equal(r.made(repo), tt.stays) && len(r.reservations()) == 0 })
	}
}

func TestTheNextDaemonTakesTheWorktreeOfAFailedLaunchBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, `grace = "20s"
[profiles.slow]
command = ["sh", "-c", "while [ ! -e DIR/go ]; do sleep 0.05; done; exit 9"]
ready = "pattern:never"
`)
	r.must(nil, "up")
	repo := r.committed("api")
	if out, code := r.dispatch(repo, "--new-worktree", "x", "--profile", "slow"); code != 0 {
		t.Fatalf("exit %d, %+v", code, out)
	}
	r.kill()
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.must(nil, "up")
	r.await("it is taken back", func() bool { return len(r.made(repo)) == 0 && len(r.reservations()) == 0 })
}

func TestRefusalForAHeldTreeOffersTheOtherWays(t *testing.T) {
	t.Parallel()
	r := newRig(t, impatient)
	r.must(nil, "up")
	repo := r.committed("api")
	r.dispatch(repo, "--profile", "worker", "--wait")
	_, stderr, code := r.fleetdeck("dispatch", repo, "--profile", "worker")
	if code != 3 || !strings.Contains(stderr, "hint: ") || !strings.Contains(stderr, "--queue") || !strings.Contains(stderr, "--new-worktree BRANCH") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestAMemberThatMayNotSpawnMakesNoWorktree(t *testing.T) {
	t.Parallel()
	r := newRig(t, impatient)
	r.must(nil, "up")
	repo := r.committed("api")
	dev, _ := r.dispatch(repo, "--profile", "worker", "--wait")
	seen := filepath.Join(r.dir, "seen")
	r.hook(repo, "pwd > "+seen)
	stdout, code := r.as(r.identity(dev.Member), "dispatch", "--json", repo, "--new-worktree", "x", "--profile", "worker")
	if code != 3 || !strings.Contains(stdout, string(fleet.CodeNotAllowed)) {
		t.Errorf("exit %d: %s", code, stdout)
	}
	if _, err := os.Stat(seen); err == nil || len(r.made(repo)) > 0 {
		t.Errorf("one was made: %v", r.made(repo))
	}
}
