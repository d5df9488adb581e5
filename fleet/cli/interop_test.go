package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
)

// language is a dispatcher of docs/interop.md, run as the page stands: what is documented is what is tested.
type language struct {
	name  string
	file  string     // its code block on the page
	run   []string   // what runs the file
	needs [][]string // commands that succeed where its tools are at hand
	// ours says that fleetdeck itself does the part under the lock.
	ours bool
}

var languages = []language{
	{name: "fleetdeck reserve", file: "reserve.sh", run: []string{"sh"}, needs: [][]string{{"curl", "--version"}}, ours: true},
	{name: "shell", file: "dispatch.sh", run: []string{"sh"}, needs: [][]string{
		{"flock", "--version"}, {"jq", "--version"}, {"curl", "--version"}, {"readlink", "-f", "/"},
	}},
	{name: "Python", file: "dispatch.py", run: []string{"python3"}, needs: [][]string{{"python3", "-c", "import fcntl"}}},
	{name: "Perl", file: "dispatch.pl", run: []string{"perl"}, needs: [][]string{{"perl", "-MJSON::PP", "-MIO::Socket::UNIX", "-e", "1"}}},
	{name: "Node", file: "dispatch.mjs", run: []string{"node"}, needs: [][]string{{"node", "-e", "AbortSignal.timeout(1)"}}},
	{name: "Java", file: "Dispatch.java", run: []string{"java"}, needs: [][]string{{"javac", "--release", "17", "-version"}, {"java", "-version"}}},
}

// lacks says by name of a language what it needs and is not here, or nothing. It is looked for once: a JVM takes its time.
var lacks = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, l := range languages {
		m[l.name] = l.look()
	}
	return m
})

func (l language) missing() string { return lacks()[l.name] }

func (l language) look() string {
	for _, need := range l.needs {
		if out, err := exec.Command(need[0], need[1:]...).CombinedOutput(); err != nil {
			return fmt.Sprintf("%s: %v %s", strings.Join(need, " "), err, out)
		}
	}
	return ""
}

// inEach runs a test in each language that is at hand, with a rig of its own.
func inEach(t *testing.T, test func(t *testing.T, r *rig, l language)) {
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			if why := l.missing(); why != "" {
				t.Skipf("SKIPPED, not tested in %s: %s", l.name, why)
			}
			r := newRig(t, agents)
			r.snippet(l) // compiled before any grace runs
			r.must(nil, "up")
			test(t, r, l)
		})
	}
}

var block = regexp.MustCompile("(?ms)^```\\w+ (\\S+)\n(.*?)^```$")

// page gives the programs of the page by file name, and for Java's what the compiler makes of them.
var page = sync.OnceValues(func() (map[string][]byte, error) {
	text, err := os.ReadFile("../../docs/interop.md")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, m := range block.FindAllSubmatch(text, -1) {
		files[string(m[1])] = m[2]
	}
	dir, err := os.MkdirTemp("", "fdjava")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, source := range files {
		path := filepath.Join(dir, name)
		if filepath.Ext(name) != ".java" || exec.Command("javac", "-version").Run() != nil {
			continue
		}
		if err := os.WriteFile(path, source, 0o644); err != nil {
			return nil, err
		}
		if out, err := exec.Command("javac", "-Xlint:none", "-d", dir, path).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("javac %s: %w: %s", name, err, out)
		}
	}
	classes, _ := filepath.Glob(filepath.Join(dir, "*.class"))
	for _, path := range classes {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return files, nil
})

// snippet writes the programs of the page into the rig and gives what runs l's.
func (r *rig) snippet(l language) []string {
	r.t.Helper()
	files, err := page()
	if err != nil {
		r.t.Fatal(err)
	}
	if files[l.file] == nil {
		r.t.Fatalf("docs/interop.md has no block %s", l.file)
	}
	dir := filepath.Join(r.dir, "snippets")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			continue // a program of an earlier call may be reading it just now
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	if class, ok := strings.CutSuffix(l.file, ".java"); ok {
		return append(slices.Clone(l.run), "-XX:TieredStopAtLevel=1", "-cp", dir, class)
	}
	return append(slices.Clone(l.run), filepath.Join(dir, l.file))
}

// foreign is a run of a program of the page.
type foreign struct {
	*exec.Cmd
	out bytes.Buffer
}

// foreign makes a run of l's program. The page calls fleetdeck by its name, so that is on its PATH.
func (r *rig) foreign(l language, tree, profile string, env ...string) *foreign {
	r.t.Helper()
	bin := filepath.Join(r.dir, "bin")
	exe, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(bin, "fleetdeck")); err != nil && !os.IsExist(err) {
		r.t.Fatal(err)
	}
	args := append(r.snippet(l), r.state, tree, profile)
	f := &foreign{Cmd: exec.Command(args[0], args[1:]...)}
	f.Stdout, f.Stderr, f.Dir = &f.out, &f.out, r.dir
	f.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "FLEETDECK_") }),
		append(env, "PATH="+bin+":"+os.Getenv("PATH"), "FLEETDECK_CONFIG="+r.config)...)
	return f
}

// code runs f to its end and gives its exit code.
func (f *foreign) code() int {
	f.Run()
	return f.ProcessState.ExitCode()
}

// want runs f and demands an exit code.
func (f *foreign) want(t *testing.T, code int) {
	t.Helper()
	if got := f.code(); got != code {
		t.Fatalf("%v: exit %d, want %d: %s", f.Args, got, code, f.out.String())
	}
}

// entries is the reservation file, decoded.
func (r *rig) entries() map[string]any {
	r.t.Helper()
	data, err := os.ReadFile(r.file())
	if err != nil {
		r.t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	doc := map[string]any{}
	if err := dec.Decode(&doc); err != nil {
		r.t.Fatalf("%v in %q", err, data)
	}
	return doc
}

// litter is the temporary files beside the reservation file.
func (r *rig) litter() []string {
	names, _ := filepath.Glob(filepath.Join(r.state, ".reservations.json.*"))
	return names
}

// lockWaiters is the processes that wait for the admission lock. Only Linux says so.
func (r *rig) lockWaiters() (pids []string) {
	r.t.Helper()
	table, err := os.ReadFile("/proc/locks")
	if err != nil {
		r.t.Skipf("SKIPPED: the system does not say who waits for a lock: %v", err)
	}
	info, err := os.Stat(r.file() + ".lock")
	if err != nil {
		r.t.Fatal(err)
	}
	place := fmt.Sprintf(":%d", info.Sys().(*syscall.Stat_t).Ino)
	for line := range strings.Lines(string(table)) { // 1: -> FLOCK ADVISORY WRITE pid dev:inode 0 EOF
		f := strings.Fields(line)
		if len(f) > 6 && f[1] == "->" && f[2] == "FLOCK" && strings.HasSuffix(f[6], place) {
			pids = append(pids, f[5])
		}
	}
	return pids
}

// tellOf says, where the test fails, what became of the runs.
func (r *rig) tellOf(runs []*foreign) {
	r.t.Cleanup(func() {
		for _, f := range runs {
			if r.t.Failed() {
				f.Process.Kill()
				f.Wait()
				r.t.Logf("%v, pid %d: %v: %s", f.Args, f.Process.Pid, f.ProcessState, f.out.String())
			}
		}
	})
}

// awaitLockWaiters waits until n processes have been seen to wait for the lock. On a slow machine the window of the
// first may be over when the last begins.
func (r *rig) awaitLockWaiters(n int) {
	r.t.Helper()
	seen := map[string]bool{}
	r.t.Cleanup(func() {
		if r.t.Failed() {
			table, _ := os.ReadFile("/proc/locks")
			r.t.Logf("seen to wait: %v; the locks:\n%s", seen, table)
		}
	})
	r.await(strconv.Itoa(n)+" processes wait for the lock", func() bool {
		for _, pid := range r.lockWaiters() {
			seen[pid] = true
		}
		return len(seen) >= n
	})
}

func TestForeignDispatcherGetsItsWorkerListed(t *testing.T) {
	full(t)
	t.Parallel()
	inEach(t, func(t *testing.T, r *rig, l language) {
		tree := r.repo("naïve \"tree\" & co") // a path that needs quoting everywhere
		f := r.foreign(l, filepath.Join(tree, "sub", "dir"), "worker")
		f.want(t, 0)
		r.awaitOccupancy(tree, fleet.Taken)
		r.await("its entry is settled", func() bool { return len(r.reservations()) == 0 })
		_, id, _ := strings.Cut(strings.TrimSpace(f.out.String()), "accepted: ")
		if ms := r.members(); len(ms) != 1 || ms[0].Reservation != id || ms[0].Role != fleet.RoleDev {
			t.Errorf("members: %+v, want one dev with reservation %q", ms, id)
		}
		r.foreign(l, tree, "worker").want(t, 3)
		if got := r.litter(); len(got) > 0 {
			t.Errorf("it left %v behind", got)
		}
	})
}

func TestForeignDispatcherAndOursStaffATreeOnce(t *testing.T) {
	full(t)
	t.Parallel()
	const rounds, ours = 2, 8
	inEach(t, func(t *testing.T, r *rig, l language) {
		r.must(nil, "lock", "--", "true")
		for round := range rounds {
			tree := r.repo(fmt.Sprintf("api%d", round))
			theirs := r.foreign(l, tree, "worker")
			// All queue up before the lock is free, the foreign one first or last in turn: it wins, and it loses.
			release := r.holdLock()
			untouched, _ := os.ReadFile(r.file())
			ended := make(chan struct{})
			queue := func(waiting int) { // until so many wait, or the foreign one does no more
				r.await("all wait for the lock", func() bool {
					select {
					case <-ended:
						return true
					default:
						return len(r.lockWaiters()) >= waiting
					}
				})
			}
			start := func() {
				if err := theirs.Start(); err != nil {
					t.Fatal(err)
				}
				go func() { theirs.Wait(); close(ended) }()
			}
			if round%2 == 0 {
				start()
				queue(1)
			}
			codes := make(chan []int, 1)
			go func() { codes <- r.race(ours, []string{tree}, "--profile", "worker") }()
			if round%2 == 1 {
				queue(ours)
				start()
			}
			queue(ours + 1)
			if now, _ := os.ReadFile(r.file()); !bytes.Equal(now, untouched) {
				t.Errorf("round %d: the file was changed to %s while another held the lock", round, now)
			}
			release()
			<-ended
			all := append(<-codes, theirs.ProcessState.ExitCode())
			if count(all, 0) != 1 || count(all, 0)+count(all, 3)+count(all, 4) != ours+1 {
				t.Errorf("round %d: exit codes %v, want one 0, and 3 or 4 for all others: the foreign one, last, says %s", round, all, theirs.out.String())
			}
			r.awaitOccupancy(tree, fleet.Taken)
			r.await("the agent runs", func() bool { return len(r.starts()) > round })
		}
		if got := r.starts(); len(got) != rounds {
			t.Errorf("%d agents were started in %d rounds", len(got), rounds)
		}
	})
}

// speakers is the languages that are at hand.
func speakers(t *testing.T) []language {
	var all []language
	for _, l := range languages {
		if why := l.missing(); why != "" {
			t.Logf("SKIPPED, not tested in %s: %s", l.name, why)
			continue
		}
		all = append(all, l)
	}
	if len(all) < 2 {
		t.Skip("SKIPPED: fewer than two languages are at hand")
	}
	return all
}

func TestDispatchersInAllLanguagesLoseNoEntry(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, agents)
	r.must(nil, "up")
	r.must(nil, "lock", "--", "true")
	all := map[string]*foreign{}
	release := r.holdLock()
	for _, l := range slices.Backward(speakers(t)) { // the slow starters first
		for i := range 2 {
			tree := r.repo(fmt.Sprintf("%s%d", l.file, i))
			all[tree] = r.foreign(l, tree, "slow")
			if err := all[tree].Start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.tellOf(slices.Collect(maps.Values(all)))
	r.awaitLockWaiters(len(all))
	release()
	won := 0
	for tree, f := range all {
		f.Wait()
		code := f.ProcessState.ExitCode()
		stands := slices.ContainsFunc(r.reservations(), func(e fleet.ReservationRow) bool { return e.Tree == tree })
		switch {
		case code == 0 && stands:
			won++
		case code == 4 && !stands: // its window was over, on a slow machine
		default:
			t.Errorf("%v: exit %d, its entry stands: %t: %s", f.Args, code, stands, f.out.String())
		}
	}
	if won < 2 {
		t.Errorf("%d of %d won", won, len(all))
	}
}

func TestForeignDispatcherKeepsWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	full(t)
	inEach(t, func(t *testing.T, r *rig, l language) {
		far := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		seed := fmt.Sprintf(`{"$format": "fleetdeck.reservations/1", "$note": {"by": ["kim", 7, null, true, -0.5]},
			"/else/wh\u00e9re \"1\"": {"id": "x1", "expires_at": %q, "mine": {"deep": [1, {"a": "\n\t\\ \u2028"}], "ns": 123456789012345}}}`, far)
		if err := os.WriteFile(r.file(), []byte(seed), 0o600); err != nil {
			t.Fatal(err)
		}
		r.must(nil, "reserve", r.repo("ours"), "--profile", "worker")
		before := r.entries()

		tree, refused := r.repo("tree"), r.repo("refused")
		f := r.foreign(l, tree, "slow")
		f.want(t, 0)
		after := r.entries()
		if mine, _ := after[tree].(map[string]any); mine["id"] == nil || !strings.Contains(f.out.String(), mine["id"].(string)) {
			t.Errorf("its entry is %v, it says %s", mine, f.out.String())
		}
		r.foreign(l, refused, "nobody").want(t, 3)
		delete(after, tree)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("what is not its own changed (-before +after):\n%s", diff)
		}
		after = r.entries()
		delete(after, tree)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("after it was refused and dropped its entry (-before +after):\n%s", diff)
		}
		if info, err := os.Stat(r.file()); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode of the file: %v, %v, want 0600", info.Mode(), err)
		}
	})
}

func TestForeignDispatcherEndsAsItShould(t *testing.T) {
	t.Parallel()
	full(t)
	inEach(t, func(t *testing.T, r *rig, l language) {
		at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
		put := func(t *testing.T, content string) {
			t.Helper()
			if err := os.WriteFile(r.file(), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		entry := func(tree, id, end string) string {
			return fmt.Sprintf(`{%q: {"id": %q, "expires_at": %q}}`, tree, id, end)
		}

		// It decides by itself, and not only by what the daemon says of its request.
		wantUntouched := func(t *testing.T, tree string) {
			t.Helper()
			_, before := r.fileState()
			r.foreign(l, tree, "worker").want(t, 3)
			if text, after := r.fileState(); !os.SameFile(before, after) {
				t.Errorf("it wrote the file, which is now %s", text)
			}
		}

		t.Run("no tree", func(t *testing.T) { r.foreign(l, filepath.Join(r.dir, "nowhere"), "worker").want(t, 7) })
		t.Run("refused by the daemon", func(t *testing.T) {
			r.foreign(l, r.repo("refused"), "missing").want(t, 3)
			if rows := r.reservations(); len(rows) > 0 {
				t.Errorf("an entry stays: %+v", rows)
			}
		})
		t.Run("reserved by another", func(t *testing.T) {
			tree := r.repo("reserved")
			put(t, entry(tree, "another", at(time.Hour)))
			wantUntouched(t, tree)
		})
		t.Run("on its way", func(t *testing.T) {
			// The daemon has the launch, and somebody released its entry by hand.
			tree := r.repo("way")
			r.must(nil, "dispatch", tree, "--profile", "slow", "--grace", "10m")
			r.must(nil, "release", tree)
			wantUntouched(t, tree)
		})
		t.Run("another's grace is over", func(t *testing.T) {
			tree := r.repo("over")
			put(t, entry(tree, "another", at(-time.Minute)))
			r.foreign(l, tree, "worker").want(t, 0)
			r.awaitOccupancy(tree, fleet.Taken)
		})
		t.Run("the answer is lost", func(t *testing.T) {
			proxy := r.intercept()
			proxy.loseAnswers(1, nil)
			tree := r.repo("lost")
			r.foreign(l, tree, "slow").want(t, 5)
			proxy.close()
			if err := os.Rename(filepath.Join(r.state, "real.sock"), filepath.Join(r.state, "fleetd.sock")); err != nil {
				t.Fatal(err)
			}
			if rows := r.reservations(); !slices.ContainsFunc(rows, func(e fleet.ReservationRow) bool { return e.Tree == tree }) {
				t.Errorf("its reservation is gone while nobody knows: %+v", rows)
			}
		})
		for name, content := range map[string]string{
			"empty": "", "cut short": `{"/a": {"id"`, "NULs": "\x00\x00\x00\x00", "a list": "[]", "null": "null", "text behind": `{} {}`,
			"newer": `{"$format":"fleetdeck.reservations/2"}`,
		} {
			t.Run("file "+name, func(t *testing.T) {
				put(t, content)
				r.foreign(l, r.repo("damaged"), "worker").want(t, 8)
				if after, _ := r.fileState(); after != content {
					t.Errorf("the file was changed to %q", after)
				}
			})
		}
		put(t, "{}")
		t.Run("no daemon", func(t *testing.T) {
			r.must(nil, "down")
			defer r.must(nil, "up")
			r.foreign(l, r.repo("down"), "worker").want(t, 6)
			if after, _ := r.fileState(); after != "{}" {
				t.Errorf("the file was changed to %q", after)
			}
		})
		if got := r.litter(); len(got) > 0 {
			t.Errorf("it left %v behind", got)
		}
	})
}

func TestForeignDispatcherWaitsForTheLock(t *testing.T) {
	t.Parallel()
	full(t)
	r := newRig(t, agents)
	r.must(nil, "up")
	all := speakers(t)
	r.must(nil, "reserve", r.repo("other"), "--profile", "worker")
	before, _ := r.fileState()
	run := func() (runs []*foreign) {
		for _, l := range slices.Backward(all) { // the slow starters first
			f := r.foreign(l, r.repo(l.file), "worker")
			if err := f.Start(); err != nil {
				t.Fatal(err)
			}
			runs = append(runs, f)
		}
		r.tellOf(runs)
		return runs
	}
	want := func(runs []*foreign, codes ...int) (won int) {
		for _, f := range runs {
			f.Wait()
			got := f.ProcessState.ExitCode()
			if !slices.Contains(codes, got) {
				t.Errorf("%v: exit %d, want %v: %s", f.Args, got, codes, f.out.String())
			}
			if got == 0 {
				won++
			}
		}
		return won
	}
	unchanged := func(when string) {
		if after, _ := r.fileState(); after != before {
			t.Errorf("%s the file was changed to %s", when, after)
		}
	}

	release := r.holdLock()
	if !testing.Short() {
		want(run(), 4) // each gives up after ten seconds
		unchanged("without the lock")
	}
	runs := run()
	r.awaitLockWaiters(len(runs))
	unchanged("while another held the lock")
	release()
	won := want(runs, 0, 4) // on a slow machine the window of the last may be over
	if won == 0 {
		t.Error("nobody got the lock when it was free")
	}
	r.await("all agents run", func() bool { return len(r.alive()) == won })
}

// gatekeeper passes calls on to the rig's daemon, and keeps the first call of one kind back until it is told to let go.
type gatekeeper struct {
	socket string
	asked  chan struct{} // closed at that call
	letGo  func()
}

// gatekeeper makes one that keeps back call, such as "GET /v1/roster".
func (r *rig) gatekeeper(call string) *gatekeeper {
	r.t.Helper()
	g := &gatekeeper{socket: filepath.Join(r.dir, "gate.sock"), asked: make(chan struct{})}
	listener, err := net.Listen("unix", g.socket)
	if err != nil {
		r.t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "fleetd"})
	forward.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(r.state, "fleetd.sock"))
	}}
	open := make(chan struct{})
	g.letGo = sync.OnceFunc(func() { close(open) })
	first := sync.OnceFunc(func() { close(g.asked); <-open })
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method+" "+req.URL.Path == call {
			first()
		}
		forward.ServeHTTP(w, req)
	})}
	go server.Serve(listener)
	r.t.Cleanup(func() { g.letGo(); server.Close() })
	return g
}

// await waits until the call has come.
func (g *gatekeeper) await(t *testing.T) {
	t.Helper()
	select {
	case <-g.asked:
	case <-time.After(patience):
		t.Fatal("the call never came")
	}
}

func TestForeignDispatcherHoldsTheLockWhileItDecides(t *testing.T) {
	t.Parallel()
	full(t)
	inEach(t, func(t *testing.T, r *rig, l language) {
		if l.ours {
			t.Skip("fleetdeck itself decides here")
		}
		r.must(nil, "reserve", r.repo("expired"), "--profile", "worker", "--grace", "1ms")
		before, _ := r.fileState()
		g := r.gatekeeper("GET /v1/roster")
		f := r.foreign(l, r.repo("tree"), "worker", "FLEETDECK_SOCKET="+g.socket)
		if err := f.Start(); err != nil {
			t.Fatal(err)
		}
		g.await(t)
		stdout, stderr, code := r.fleetdeck("prune", "--json")
		var report fleet.PruneReport
		if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 4 || report.Lock != "busy" || report.Kept != 1 {
			t.Errorf("prune: exit %d, %s%s, want 4, busy, 1 kept", code, stdout, stderr)
		}
		if after, _ := r.fileState(); after != before {
			t.Errorf("the file was changed to %s", after)
		}
		g.letGo()
		f.Wait()
		if code := f.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit %d: %s", code, f.out.String())
		}
		r.await("the agent runs", func() bool { return len(r.alive()) == 1 })
	})
}

func TestForeignDispatcherThatIsLateDropsNobodyElsesEntry(t *testing.T) {
	t.Parallel()
	full(t)
	inEach(t, func(t *testing.T, r *rig, l language) {
		tree := r.repo("tree")
		g := r.gatekeeper("POST /v1/members")
		f := r.foreign(l, tree, "worker", "FLEETDECK_SOCKET="+g.socket)
		if err := f.Start(); err != nil {
			t.Fatal(err)
		}
		g.await(t)
		// Meanwhile its tree is given away.
		r.must(nil, "release", tree)
		var winner fleet.Outcome
		r.must(&winner, "reserve", tree, "--profile", "worker")
		g.letGo()
		f.Wait()
		if code := f.ProcessState.ExitCode(); code != 3 {
			t.Errorf("exit %d, want 3: %s", code, f.out.String())
		}
		if rows := r.reservations(); len(rows) != 1 || rows[0].ID != winner.Reservation {
			t.Errorf("reservations: %+v, want the winner's %s", rows, winner.Reservation)
		}
		if got := r.starts(); len(got) > 0 {
			t.Errorf("agents were started: %v", got)
		}
	})
}

func TestChildKeepsTheLockOfItsShellUnlessItIsClosed(t *testing.T) {
	t.Parallel()
	if err := exec.Command("flock", "--version").Run(); err != nil {
		t.Skipf("SKIPPED: no flock(1) here: %v", err)
	}
	r := newRig(t, agents)
	r.must(nil, "lock", "--", "true")
	const agent = `sleep 600 >/dev/null 2>&1`
	for _, tt := range []struct {
		name, script string
		want         int
	}{
		{"flock", `flock "$0" sh -c '` + agent + ` & echo $!'`, 4},
		{"flock -o", `flock -o "$0" sh -c '` + agent + ` & echo $!'`, 0},
		{"descriptor", `exec 9>>"$0"; flock 9; ` + agent + ` & echo $!`, 4},
		{"descriptor closed", `exec 9>>"$0"; flock 9; ` + agent + ` 9>&- & echo $!`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := exec.Command("sh", "-c", tt.script, r.file()+".lock").Output()
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				syscall.Kill(pid, syscall.SIGKILL)
				r.await("the child is gone", func() bool { return !processAlive(pid) })
			}()
			if _, stderr, code := r.fleetdeck("lock", "--wait", "100ms", "--", "true"); code != tt.want {
				t.Errorf("exit %d, want %d: %s", code, tt.want, stderr)
			} else if _, err := os.Stat("/proc/locks"); err == nil && code == 4 && !strings.Contains(stderr, fmt.Sprintf("pid %d (", pid)) {
				t.Errorf("it says %q, which does not name the child, pid %d", stderr, pid)
			}
		})
	}
}
