// Package netlab is a network of hosts for tests, on one machine: each host is a set of namespaces with an address, processes, a name, a boot and a
// disk of its own, and all hang on one bridge. Links can be cut and slowed, hosts can be stopped, killed and booted again.
//
// It needs Linux, unshare and nsenter (util-linux) and ip (iproute2), and either root or the right to make user namespaces. Where
// these cannot be had the test is skipped, and says so. Nothing of a lab outlives its test: namespaces end with their last process.
package netlab

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// nobody is a hardware address that none of the lab has: what is sent there is lost without a word.
const nobody = "02:00:00:00:00:66"

// Lab is the network.
type Lab struct {
	t    testing.TB
	wire *room // has the bridge, and nothing else
	// Dir is where every host has its own disk mounted: the same path, and other files.
	Dir   string
	Hosts []*Host
}

// Host is one host of a lab.
type Host struct {
	Name, Address string
	// Disk is its Dir as seen from outside. It outlives a [Host.Kill].
	Disk string

	lab  *Lab
	port string // its end of the wire, in the lab's
	room *room  // nil while it is off
}

// room is the process that keeps namespaces alive, the first of a host.
type room struct {
	keeper *exec.Cmd // whose child it is, or itself
	stdin  io.Closer
	pid    int
}

// New makes a lab with a host of each name, which ends with the test.
func New(t testing.TB, names ...string) *Lab {
	t.Helper()
	l := &Lab{t: t}
	if err := l.build(names); err != nil {
		t.Skipf("SKIPPED: no hosts with a network of their own can be made here, which takes Linux, iproute2, util-linux and root or user namespaces: %v", err)
	}
	return l
}

func (l *Lab) build(names []string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("this is %s", runtime.GOOS)
	}
	for _, tool := range []string{"ip", "unshare", "nsenter", "mount", "hostname"} {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	// A short name, since sockets lie in it. It must be no symlink, or the hosts see another path.
	dir, err := os.MkdirTemp("", "fdlab")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return err
	}
	l.t.Cleanup(func() { os.RemoveAll(dir) })
	l.Dir = filepath.Join(dir, "h")
	if err := os.Mkdir(l.Dir, 0o755); err != nil {
		return err
	}
	unshare := []string{"unshare", "--net", "--mount"}
	if os.Geteuid() != 0 {
		unshare = append(unshare, "--map-root-user")
	}
	if l.wire, err = open(append(unshare, "env", "--ignore-signal=CHLD", "cat"), false); err != nil {
		return err
	}
	l.t.Cleanup(l.wire.close)
	for _, args := range []string{"link add name wire type bridge", "link set dev wire up"} {
		if err := l.ip(l.wire, strings.Fields(args)...); err != nil {
			return err
		}
	}
	for i, name := range names {
		h := &Host{Name: name, Address: fmt.Sprintf("10.77.0.%d", i+1), Disk: filepath.Join(dir, name), lab: l, port: fmt.Sprintf("port%d", i)}
		if err := os.Mkdir(h.Disk, 0o755); err != nil {
			return err
		}
		l.t.Cleanup(h.Kill)
		if err := h.boot(); err != nil {
			return err
		}
		l.Hosts = append(l.Hosts, h)
	}
	return nil
}

// open starts a room by the given command, which ends with cat. Where it forks, the child is what keeps the room.
func open(args []string, forks bool) (*room, error) {
	r := &room{keeper: exec.Command(args[0], args[1:]...)}
	var said bytes.Buffer
	r.keeper.Stderr = &said
	stdin, err := r.keeper.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := r.keeper.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.keeper.Start(); err != nil {
		return nil, err
	}
	r.stdin, r.pid = stdin, r.keeper.Process.Pid
	fmt.Fprintln(stdin, "ready")
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		r.close()
		return nil, fmt.Errorf("%v: %q, %v: %s", args, line, err, said.String())
	}
	if !forks {
		return r, nil
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", r.pid, r.pid))
	if err == nil {
		r.pid, err = strconv.Atoi(strings.TrimSpace(string(children)))
	}
	if err != nil {
		r.close()
		return nil, fmt.Errorf("find the child of %v: %w", args, err)
	}
	return r, nil
}

// close ends the room, and with it, where it has processes of its own, all of them.
func (r *room) close() {
	if r.pid != r.keeper.Process.Pid {
		syscall.Kill(r.pid, syscall.SIGKILL)
	}
	r.keeper.Process.Kill()
	r.stdin.Close()
	r.keeper.Wait()
}

// enter is the beginning of a command that runs in the namespaces that flags name.
func (l *Lab) enter(r *room, flags ...string) []string {
	args := []string{"nsenter", "--target", strconv.Itoa(r.pid)}
	if os.Geteuid() != 0 {
		args = append(args, "--user", "--preserve-credentials")
	}
	return append(args, flags...)
}

// ip configures the network of r.
func (l *Lab) ip(r *room, args ...string) error {
	argv := append(l.enter(r, "--net", "ip"), args...)
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// must is for what worked when the lab was built.
func (l *Lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Error(err)
	}
}

// boot starts the host: its namespaces, its disk, its name, a boot id that no other boot has, and its end of the wire.
func (h *Host) boot() error {
	l := h.lab
	id := make([]byte, 16)
	rand.Read(id)
	outside := filepath.Join(filepath.Dir(h.Disk), h.Name+".boot")
	if err := os.WriteFile(outside, fmt.Appendf(nil, "%x-%x-%x-%x-%x\n", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), 0o644); err != nil {
		return err
	}
	script := `mount --bind "$1" "$2" && mount --bind "$3" /proc/sys/kernel/random/boot_id && hostname "$4" && exec env --ignore-signal=CHLD cat`
	args := append(l.enter(l.wire, "--net", "--mount"), "unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", script, "sh", h.Disk, l.Dir, outside, h.Name)
	r, err := open(args, true)
	if err != nil {
		return err
	}
	h.room = r
	if err := l.ip(l.wire, "link", "add", "name", h.port, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(r.pid)); err != nil {
		return err
	}
	for _, set := range []struct {
		in   *room
		args string
	}{
		{l.wire, "link set dev " + h.port + " master wire up"},
		{r, "addr add " + h.Address + "/24 dev eth0"}, {r, "link set dev eth0 up"}, {r, "link set dev lo up"},
	} {
		if err := l.ip(set.in, strings.Fields(set.args)...); err != nil {
			return err
		}
	}
	return nil
}

// Boot starts a host that was killed, on the disk that it left. What was cut is no longer.
func (h *Host) Boot() {
	h.lab.t.Helper()
	h.lab.must(h.boot())
}

// Kill is a power failure: all processes of the host are gone at once, and its address with them.
func (h *Host) Kill() {
	if h.room != nil {
		h.room.close()
		h.room = nil
		h.lab.ip(h.lab.wire, "link", "del", "dev", h.port) // which may have gone with its other end
	}
}

// Net is the beginning of a command that runs with the network of the host, and else as a process of the test.
func (h *Host) Net() []string { return h.lab.enter(h.room, "--net") }

// Command is one that runs as a process of the host. With ctx it is nsenter that ends: what must not outlive that bounds itself.
func (h *Host) Command(ctx context.Context, args ...string) *exec.Cmd {
	argv := append(h.lab.enter(h.room, "--net", "--mount", "--uts", "--pid", "--wdns="+h.lab.Dir), args...)
	return exec.CommandContext(ctx, argv[0], argv[1:]...)
}

// Unplug takes the host off the network, Plug puts it back.
func (h *Host) Unplug() { h.lab.must(h.lab.ip(h.lab.wire, "link", "set", "dev", h.port, "down")) }
func (h *Host) Plug()   { h.lab.must(h.lab.ip(h.lab.wire, "link", "set", "dev", h.port, "up")) }

// Cut loses all that h and other send to each other, Mend ends that. Neither is told: what is sent goes to a hardware address
// that nobody has.
func (h *Host) Cut(other *Host) {
	h.lab.must(h.lab.ip(h.room, "neigh", "replace", other.Address, "lladdr", nobody, "dev", "eth0", "nud", "permanent"))
	h.lab.must(h.lab.ip(other.room, "neigh", "replace", h.Address, "lladdr", nobody, "dev", "eth0", "nud", "permanent"))
}

// Mend ends a Cut.
func (h *Host) Mend(other *Host) {
	h.lab.must(h.lab.ip(h.room, "neigh", "del", other.Address, "dev", "eth0"))
	h.lab.must(h.lab.ip(other.room, "neigh", "del", h.Address, "dev", "eth0"))
}

// Stop stops every process of the host where it is, Continue lets them go on.
func (h *Host) Stop()     { h.signal(syscall.SIGSTOP) }
func (h *Host) Continue() { h.signal(syscall.SIGCONT) }

func (h *Host) signal(s syscall.Signal) {
	for _, pid := range h.Processes() {
		if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
			h.lab.must(fmt.Errorf("signal process %d of %s: %w", pid, h.Name, err))
		}
	}
}

// Processes are those of the host, but for its first.
func (h *Host) Processes() (pids []int) {
	where, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.room.pid))
	h.lab.must(err)
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if ns, err := os.Readlink(filepath.Join(dir, "ns", "pid")); err == nil && ns == where {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == h.room.pid })
}
