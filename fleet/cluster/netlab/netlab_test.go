package netlab_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet/cluster/netlab"
)

// hears reports whether from reaches to.
func hears(t *testing.T, from, to *netlab.Host) bool {
	t.Helper()
	// Nobody listens: a refusal is an answer, and silence is none.
	out, err := from.Command(t.Context(), "timeout", "0.3", "bash", "-c", "exec 3<>/dev/tcp/"+to.Address+"/9").CombinedOutput()
	return err != nil && strings.Contains(string(out), "refused")
}

func say(t *testing.T, h *netlab.Host, script string) string {
	t.Helper()
	out, err := h.Command(t.Context(), "sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s on %s: %v: %s", script, h.Name, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestLinksAreCutAndMended(t *testing.T) {
	l := netlab.New(t, "kite", "crane", "heron")
	kite, crane, heron := l.Hosts[0], l.Hosts[1], l.Hosts[2]
	await := func(what string, from, to *netlab.Host, want bool) {
		t.Helper()
		for until := time.Now().Add(20 * time.Second); hears(t, from, to) != want; {
			if time.Now().After(until) {
				t.Fatalf("%s: %s hears %s: %t, want %t", what, from.Name, to.Name, !want, want)
			}
		}
	}
	await("at first", kite, crane, true)
	kite.Cut(crane)
	await("cut", kite, crane, false)
	await("cut", crane, kite, false)
	await("cut elsewhere", heron, kite, true)
	kite.Mend(crane)
	await("mended", kite, crane, true)
	heron.Unplug()
	await("unplugged", heron, kite, false)
	heron.Plug()
	await("plugged", heron, kite, true)
}

func TestAHostHasItsOwnDiskBootNameAndProcesses(t *testing.T) {
	l := netlab.New(t, "kite", "crane")
	kite, crane := l.Hosts[0], l.Hosts[1]
	const boot = "cat /proc/sys/kernel/random/boot_id"
	first := say(t, kite, "hostname > name; "+boot)
	if say(t, crane, boot) == first {
		t.Error("two hosts have one boot")
	}
	if data, err := os.ReadFile(filepath.Join(kite.Disk, "name")); err != nil || string(data) != "kite\n" {
		t.Errorf("its disk has %q, %v, want its name", data, err)
	}
	if say(t, crane, "ls") != "" {
		t.Error("one host's file is on another's disk")
	}
	say(t, kite, "setsid sleep 600 >/dev/null 2>&1 </dev/null &")
	if n := len(kite.Processes()); n != 1 {
		t.Errorf("kite has %d processes, want the one that was left", n)
	}
	left := kite.Processes()[0]
	kite.Kill()
	if syscall.Kill(left, 0) == nil {
		t.Error("a process outlived its host")
	}
	kite.Boot()
	if say(t, kite, "cat name") != "kite" || say(t, kite, boot) == first || len(kite.Processes()) != 0 {
		t.Error("after the boot: want its file, another boot, and no process")
	}
}
