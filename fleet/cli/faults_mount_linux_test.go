package cli_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fleetdeck/fleet"
)

// stateOn makes the rig's state directory, for something to be mounted on it.
func (r *rig) stateOn(mountArgs ...string) {
	r.t.Helper()
	if err := os.Mkdir(r.state, 0o700); err != nil {
		r.t.Fatal(err)
	}
	mount(r.t.(*testing.T), append(mountArgs, r.state)...)
	if err := os.Chmod(r.state, 0o700); err != nil {
		r.t.Fatal(err)
	}
}

// fill takes all the room that is left in dir.
func fill(t *testing.T, dir string) (ballast string) {
	t.Helper()
	ballast = filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); errors.Is(err, syscall.ENOSPC) {
			return ballast
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFullDiskRefusesAndChangesNothing(t *testing.T) {
	t.Parallel()
	if !apart(t, "--mount") {
		return
	}
	r := newRig(t, agents)
	r.stateOn("-t", "tmpfs", "-o", "size=64k", "tmpfs")
	r.must(nil, "up")
	api, web := r.repo("api"), r.repo("web")
	r.must(nil, "reserve", web, "--profile", "worker")
	ballast := fill(t, r.state)
	before, _ := r.fileState()

	for _, command := range []string{"reserve", "dispatch"} {
		_, stderr, code := r.fleetdeck(command, api, "--profile", "worker")
		if code != 1 || !strings.Contains(stderr, "no space left on device: make room on the file system of "+r.state) {
			t.Errorf("%s: exit %d, %s, want 1 and what to do", command, code, stderr)
		}
	}
	if _, stderr, code := r.fleetdeck("release", web); code != 1 {
		t.Errorf("release: exit %d, %s, want 1", code, stderr)
	}
	if now, _ := r.fileState(); now != before {
		t.Errorf("the file was changed to %s", now)
	}
	if got := r.litter(); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
	for _, read := range []string{"status", "trees", "members", "reservations"} {
		r.must(nil, read)
	}
	if got := r.starts(); len(got) > 0 {
		t.Errorf("agents were started: %v", got)
	}

	// Nobody has to mend anything once there is room.
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	mount(t, "-o", "remount,size=8m", r.state)
	if out, code := r.dispatch(api, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch with room again: exit %d, %+v", code, out)
	}
	r.must(nil, "release", web)
}

func TestAReadOnlyStateDirectoryIsShownAndNotWritten(t *testing.T) {
	full(t)
	t.Parallel()
	if !apart(t, "--mount") {
		return
	}
	r := newRig(t, agents)
	r.stateOn("-t", "tmpfs", "tmpfs")
	r.must(nil, "up")
	staffed, reserved, free := r.repo("staffed"), r.repo("booked"), r.repo("free")
	out, _ := r.dispatch(staffed, "--profile", "worker", "--wait")
	r.must(nil, "reserve", reserved, "--profile", "worker", "--grace", "10m")
	c := r.open(120, 40)
	c.shows("staffed")
	c.shows("booked")

	// The daemon has files open for writing, so it is a second mount over the first that is read-only.
	mount(t, "--bind", r.state, r.state)
	mount(t, "-o", "remount,bind,ro", r.state)
	before, _ := r.fileState()
	for _, args := range [][]string{
		{"dispatch", free, "--profile", "worker"}, {"reserve", free, "--profile", "worker"}, {"release", reserved},
	} {
		_, stderr, code := r.fleetdeck(args...)
		if code != 1 || !strings.Contains(stderr, "read-only file system") || !strings.Contains(stderr, r.state) {
			t.Errorf("%v: exit %d, %s, want 1 and why", args, code, stderr)
		}
	}
	if got := r.tree(reserved).Occupancy; got != fleet.Reserved {
		t.Errorf("%s is %s, want reserved", reserved, got)
	}
	if alive := r.alive(); len(alive) != 1 || alive[0].ID != out.Member {
		t.Errorf("alive: %+v, want %s", alive, out.Member)
	}
	if now, _ := r.fileState(); now != before || len(r.begun(1)) != 1 {
		t.Errorf("%d agents were started, and the file is %s", len(r.starts()), now)
	}
	late := r.open(120, 40)
	late.shows("staffed")
	late.shows("daemon up")
	late.quits()

	unmount(t, r.state)
	r.must(nil, "release", reserved)
	r.await("the first console shows what is true again", func() bool { return !strings.Contains(c.text(), "booked") })
	if out, code := r.dispatch(free, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch: exit %d, %+v", code, out)
	}
	c.quits()
}

func TestAStateFileThatIsAMountOfItsOwnIsRefused(t *testing.T) {
	t.Parallel()
	if !apart(t, "--mount") {
		return
	}
	r := newRig(t, agents)
	r.must(nil, "up")
	r.must(nil, "reserve", r.repo("web"), "--profile", "worker")
	tree := r.repo("api")
	elsewhere := filepath.Join(r.dir, "host.json")
	text, _ := r.fileState()
	if err := os.WriteFile(elsewhere, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mount(t, "--bind", elsewhere, r.file())
	for _, command := range []string{"reserve", "dispatch"} {
		_, stderr, code := r.fleetdeck(command, tree, "--profile", "worker")
		if code != 1 || !strings.Contains(stderr, "mount its directory, not the file") {
			t.Errorf("%s: exit %d, %s, want 1 and what to do", command, code, stderr)
		}
	}
	if now, _ := r.fileState(); now != text {
		t.Errorf("the file was changed to %s", now)
	}
	if got := r.litter(); len(got) > 0 || len(r.starts()) > 0 {
		t.Errorf("left behind: %v, started: %v", got, r.starts())
	}
	if got := r.tree(tree).Occupancy; got != fleet.Free {
		t.Errorf("the tree is %s, want free", got)
	}
	unmount(t, r.file())
	if out, code := r.dispatch(tree, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch: exit %d, %+v", code, out)
	}
}

func TestAStateDirectoryUnderTwoPathsIsOne(t *testing.T) {
	t.Parallel()
	if !apart(t, "--mount") {
		return
	}
	r := newRig(t, hasty)
	r.must(nil, "up")
	tree, other := r.repo("api"), r.repo("other")
	alias := *r
	alias.state = filepath.Join(r.dir, "alias")
	if err := os.Mkdir(alias.state, 0o700); err != nil {
		t.Fatal(err)
	}
	mount(t, "--bind", r.state, alias.state)
	defer unmount(t, alias.state)

	alias.must(nil, "reserve", tree, "--profile", "worker", "--grace", "10m")
	if out, code := r.dispatch(tree, "--profile", "worker"); code != 3 || out.Code != fleet.CodeTreeReserved {
		t.Errorf("dispatch by the other path: exit %d, %+v, want 3, tree_reserved", code, out)
	}
	release := alias.holdLock()
	if out, code := r.dispatch(other, "--profile", "worker"); code != 4 {
		t.Errorf("dispatch while the lock is held by the other path: exit %d, %+v, want 4", code, out)
	}
	release()
	if out, code := alias.dispatch(other, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch by the other path: exit %d, %+v", code, out)
	}
}

// TestAnOverlayIsADiskLikeAnother has the state directory come with an image: file and lock lie in the lower layer until they are written.
func TestAnOverlayIsADiskLikeAnother(t *testing.T) {
	t.Parallel()
	if !apart(t, "--mount") {
		return
	}
	if err := exec.Command("flock", "--version").Run(); err != nil {
		t.Skipf("SKIPPED: no flock(1) here: %v", err)
	}
	r := newRig(t, hasty)
	layers := filepath.Join(r.dir, "layers")
	if err := os.Mkdir(layers, 0o755); err != nil {
		t.Fatal(err)
	}
	mount(t, "-t", "tmpfs", "tmpfs", layers) // an overlay's upper layer may not be one itself
	for _, dir := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(layers, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tree, web := r.repo("api"), r.repo("web")
	doc := `{"/else/where":{"id":"of-the-image","expires_at":"2999-01-01T00:00:00Z"}}`
	for name, text := range map[string]string{"reservations.json": doc, "reservations.json.lock": ""} {
		if err := os.WriteFile(filepath.Join(layers, "lower", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.stateOn("-t", "overlay", "-o", "lowerdir="+layers+"/lower,upperdir="+layers+"/upper,workdir="+layers+"/work", "overlay")

	// A script opens the lock for reading, and so the lower layer's file, which the first of ours copies up.
	shell := exec.Command("sh", "-c", `exec 9<"$0"; flock 9; echo held; read line`, r.file()+".lock")
	stdin, _ := shell.StdinPipe()
	stdout, _ := shell.StdoutPipe()
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := r.fleetdeck("lock", "--wait", "100ms", "--", "true"); code != 4 {
		t.Errorf("lock while a script holds the lower layer's: exit %d, %s, want 4", code, stderr)
	}
	stdin.Close()
	shell.Wait()

	c := r.open(120, 40)
	c.shows("daemon up")
	r.must(nil, "reserve", web, "--profile", "worker", "--grace", "10m")
	if out, code := r.dispatch(web, "--profile", "worker"); code != 3 {
		t.Errorf("dispatch where it is reserved: exit %d, %+v, want 3", code, out)
	}
	if out, code := r.dispatch(tree, "--profile", "worker", "--wait"); code != 0 {
		t.Errorf("dispatch: exit %d, %+v", code, out)
	}
	c.shows("web")
	if e, _ := r.entries()["/else/where"].(map[string]any); e["id"] != "of-the-image" {
		t.Errorf("the image's entry is %v", e)
	}
	if lower, err := os.ReadFile(filepath.Join(layers, "lower", "reservations.json")); err != nil || !bytes.Equal(lower, []byte(doc)) {
		t.Errorf("the lower layer holds %s, %v", lower, err)
	}

	// What is written past the overlay tells nobody; the console looks by itself.
	upper := filepath.Join(layers, "upper", "reservations.json")
	text, err := os.ReadFile(upper)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("{\n"), []byte(`{"/src/from-the-host": {"id":"h","expires_at":"2999-01-01T00:00:00Z"},`), 1)
	if err := os.WriteFile(upper, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c.shows("from-the-host")
	c.quits()
}

// TestAfterARebootNothingOfTheLastBootHolds gives the machine another boot's id, as far as a mount namespace reaches.
func TestAfterARebootNothingOfTheLastBootHolds(t *testing.T) {
	t.Parallel()
	if !apart(t, "--mount") {
		return
	}
	r := newRig(t, agents)
	r.must(nil, "up")
	api, web := r.repo("api"), r.repo("web")
	member, code := r.dispatch(api, "--profile", "worker", "--wait")
	if code != 0 {
		t.Fatalf("dispatch: exit %d, %+v", code, member)
	}
	r.must(nil, "reserve", web, "--profile", "worker", "--grace", "10m")

	// The machine goes down with everything on it.
	r.kill()
	for _, pid := range marked("FLEETDECK_MEMBER=" + member.Member) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, pid := range marked(r.state) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	r.await("nobody lives", func() bool { return len(marked(r.state)) == 0 })
	boot := filepath.Join(r.dir, "boot_id")
	if err := os.WriteFile(boot, []byte("11111111-2222-3333-4444-555555555555\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mount(t, "--bind", boot, "/proc/sys/kernel/random/boot_id")
	r.must(nil, "up")
	for _, tree := range []string{api, web} {
		r.awaitOccupancy(tree, fleet.Free)
		if out, code := r.dispatch(tree, "--profile", "worker", "--wait"); code != 0 {
			t.Errorf("dispatch into %s: exit %d, %+v", tree, code, out)
		}
	}
	for _, m := range r.alive() {
		if m.ID == member.Member {
			t.Errorf("%s of the last boot counts as alive", m.ID)
		}
	}
}
