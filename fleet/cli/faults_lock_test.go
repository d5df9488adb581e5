package cli_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
)

// hasty makes dispatchers and pruners give up soon.
var hasty = strings.NewReplacer(`lock_wait = "10s"`, `lock_wait = "300ms"`, `prune_wait = "500ms"`, `prune_wait = "300ms"`).Replace(agents)

func TestAStoppedHolderOfTheLockHangsNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	r.must(nil, "up")
	tree, other := r.repo("api"), r.repo("other")
	r.must(nil, "reserve", other, "--profile", "worker", "--grace", "1ms")

	holder := r.command("lock", "--", "sh", "-c", "echo held; read line")
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer holder.Wait()
	defer holder.Process.Kill()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the holder says %q, %v", line, err)
	}
	pid := holder.Process.Pid
	holder.Process.Signal(syscall.SIGSTOP)
	r.await("the holder is stopped", func() bool { return stopped(pid) })
	text, before := r.fileState()

	for _, read := range []string{"status", "trees", "members", "reservations", "slots", "events"} {
		r.must(nil, read)
	}
	out, code := r.dispatch(tree, "--profile", "worker")
	if code != 4 || out.Code != fleet.CodeLockBusy {
		t.Errorf("dispatch: exit %d, %+v, want 4, lock_busy", code, out)
	}
	if _, err := os.Stat("/proc/locks"); err == nil && !strings.Contains(out.Message, fmt.Sprintf("held by pid %d ", pid)) {
		t.Errorf("dispatch says %q, which does not name pid %d", out.Message, pid)
	}
	if _, _, code := r.fleetdeck("prune"); code != 4 {
		t.Errorf("prune: exit %d, want 4", code)
	}
	if now, after := r.fileState(); now != text || !os.SameFile(before, after) {
		t.Errorf("the file was changed to %s", now)
	}

	holder.Process.Kill() // the lock goes with a stopped process too
	if out, code := r.dispatch(tree, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch once the holder is gone: exit %d, %+v", code, out)
	}
}

// reboot makes every entry of the file one that an earlier boot of this host wrote.
func (r *rig) reboot() {
	r.t.Helper()
	boot := process.Boot()
	if boot == "" {
		r.t.Fatal("this system does not name its boots")
	}
	data, err := os.ReadFile(r.file())
	if err != nil {
		r.t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(boot)) {
		r.t.Fatalf("no entry is of this boot, %s: %s", boot, data)
	}
	if err := os.WriteFile(r.file(), bytes.ReplaceAll(data, []byte(boot), []byte("an-earlier-boot")), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func TestReservationsOfAnEarlierBootHoldNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, agents)
	r.must(nil, "up")
	api, web, docs := r.repo("api"), r.repo("web"), r.repo("docs")
	for _, tree := range []string{api, web} {
		r.must(nil, "reserve", tree, "--profile", "worker", "--grace", "10m")
	}
	r.reboot()
	r.must(nil, "reserve", docs, "--profile", "worker", "--grace", "10m")
	if out, code := r.dispatch(api, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch where an earlier boot left a reservation: exit %d, %+v", code, out)
	}
	var report fleet.PruneReport
	r.must(&report, "prune")
	if len(report.Pruned) != 1 || report.Pruned[0].Tree != web || report.Pruned[0].Reason != fleet.VerdictExpired || report.Kept != 1 {
		t.Errorf("prune: %+v, want the reservation of %s dropped and that of %s kept", report, web, docs)
	}
}

func TestAReservationFileThatIsALinkKeepsItAndHasOneLock(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	target := filepath.Join(r.dir, "elsewhere", "book.json")
	for _, dir := range []string{r.state, filepath.Dir(target)} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../elsewhere/book.json", r.file()); err != nil {
		t.Fatal(err)
	}
	r.must(nil, "up")
	api, web := r.repo("api"), r.repo("web")
	r.must(nil, "reserve", api, "--profile", "worker")
	if link, err := os.Readlink(r.file()); err != nil || link != "../elsewhere/book.json" {
		t.Errorf("the link is %q, %v", link, err)
	}
	if data, err := os.ReadFile(target); err != nil || !bytes.Contains(data, []byte(api)) {
		t.Errorf("the target holds %s, %v", data, err)
	}

	// The lock lies beside the target, for whoever comes by either name.
	lock, err := os.OpenFile(target+".lock", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if out, code := r.dispatch(web, "--profile", "worker"); code != 4 {
		t.Errorf("dispatch while the target's lock is held: exit %d, %+v, want 4", code, out)
	}
	lock.Close()
	if _, err := os.Lstat(r.file() + ".lock"); !os.IsNotExist(err) {
		t.Errorf("there is a lock beside the link: %v", err)
	}
	if out, code := r.dispatch(web, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch: exit %d, %+v", code, out)
	}
	r.await("only the first entry is left", func() bool { return len(r.reservations()) == 1 })
	if link, err := os.Readlink(r.file()); err != nil || link != "../elsewhere/book.json" {
		t.Errorf("the link is %q, %v", link, err)
	}
}

// TestWhatIsRenamedIntoPlaceIsOnDiskFirst reads from the system calls of dispatcher and daemon that each document is synced before it is renamed
// over the old one, and its directory after that.
func TestWhatIsRenamedIntoPlaceIsOnDiskFirst(t *testing.T) {
	t.Parallel()
	full(t)
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("SKIPPED: no strace here")
	}
	r := newRig(t, agents)
	trace := filepath.Join(r.dir, "trace")
	traced := func(name string, args ...string) *exec.Cmd {
		cmd := r.command(args...)
		return exec.Command(strace, append([]string{"-f", "-y", "-qq", "-o", trace + "." + name, "-e", "trace=fsync,fdatasync,/^rename", cmd.Path}, cmd.Args[1:]...)...)
	}
	if out, err := traced("probe", "version").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: strace may not trace here: %v: %s", err, out)
	}
	daemon := traced("daemon", "up", "--foreground")
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			r.fleetdeck("down", "--stop-members")
			daemon.Wait()
		}
	}
	defer end()
	r.await("the daemon is up", func() bool { return r.daemonPid() != 0 })
	api, web := r.repo("api"), r.repo("web")
	for name, args := range map[string][]string{
		"dispatch": {"dispatch", api, "--profile", "worker", "--wait"},
		"reserve":  {"reserve", web, "--profile", "worker", "--grace", "1ms"},
	} {
		if out, err := traced(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	if out, err := traced("prune", "prune").CombinedOutput(); err != nil {
		t.Fatalf("prune: %v: %s", err, out)
	}
	end()
	seen := map[string]int{}
	for _, name := range []string{"dispatch", "reserve", "prune", "daemon"} {
		calls, err := os.ReadFile(trace + "." + name)
		if err != nil {
			t.Fatal(err)
		}
		for document, faults := range unsynced(string(calls), r.state) {
			seen[name+" "+document]++
			for _, fault := range faults {
				t.Errorf("%s: %s", name, fault)
			}
		}
	}
	for _, want := range []string{"dispatch reservations.json", "reserve reservations.json", "prune reservations.json", "daemon registry.json"} {
		if seen[want] == 0 {
			t.Errorf("%s was never seen to be written: the test has lost its aim, it saw %v", want, seen)
		}
	}
}

var (
	syncCall   = regexp.MustCompile(`\bf(?:data)?sync\(\d+<([^>]*)>`)
	renameCall = regexp.MustCompile(`\brename\w*\(.*?"([^"]+)".*?"([^"]+)"`)
)

// unsynced gives the documents in dir that calls, of strace, renames into place, each with what was not on disk in time.
func unsynced(calls, dir string) map[string][]string {
	found := map[string][]string{}
	lines := strings.Split(calls, "\n")
	synced := func(lines []string, path string) bool {
		return slices.ContainsFunc(lines, func(line string) bool {
			m := syncCall.FindStringSubmatch(line)
			return m != nil && m[1] == path
		})
	}
	for i, line := range lines {
		m := renameCall.FindStringSubmatch(line)
		if m == nil || filepath.Dir(m[2]) != dir || filepath.Ext(m[2]) != ".json" {
			continue
		}
		name := filepath.Base(m[2])
		faults := found[name]
		if !synced(lines[:i], m[1]) {
			faults = append(faults, m[1]+" was renamed before it was synced")
		}
		if !synced(lines[i+1:], dir) {
			faults = append(faults, dir+" was not synced after "+m[2]+" was renamed into place")
		}
		found[name] = faults
	}
	return found
}
