package cli_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// inside is the name of the test for which this process runs in namespaces of its own.
const inside = "FLEETDECK_TEST_INSIDE"

// apart runs the calling test once more in namespaces of its own, as unshare(1) makes them with these flags, so that nothing that it
// mounts or forces can reach the machine. It reports true in there; outside the test is over when it returns. It skips the test where such
// namespaces are not to be had.
func apart(t *testing.T, flags ...string) bool {
	t.Helper()
	if os.Getenv(inside) == t.Name() {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("SKIPPED: no unshare(1) here")
	}
	if out, err := exec.Command(unshare, append(flags, "true")...).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no such namespaces here: unshare %v: %v: %s", flags, err, out)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The shell is the namespace's init, where it has one, and so takes in orphans.
	args := append(flags, "sh", "-c", `"$@"; exit $?`, "sh", exe, "-test.run", "^"+regexp.QuoteMeta(t.Name())+"$", "-test.v")
	cmd := exec.Command(unshare, args...)
	cmd.Env = append(os.Environ(), inside+"="+t.Name())
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("in namespaces of its own: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()):
		t.Skipf("SKIPPED in namespaces of its own:\n%s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("in namespaces of its own it did not run:\n%s", out)
	}
	return false
}

// mount calls mount(8), and skips the test where that is refused.
func mount(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: mount %v: %v: %s", args, err, out)
	}
}

func unmount(t *testing.T, path string) {
	t.Helper()
	if out, err := exec.Command("umount", "--lazy", path).CombinedOutput(); err != nil {
		t.Fatalf("umount %s: %v: %s", path, err, out)
	}
}
