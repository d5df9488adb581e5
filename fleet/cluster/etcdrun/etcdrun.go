// Package etcdrun starts real etcd nodes for tests, each a process of its own that can be killed, paused and started again. The server
// comes from the module in fleet/cluster/etcdtest, is built once, and kept in the user's cache. Where it cannot be built the
// test is skipped, and says so.
package etcdrun

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gofrs/flock"
)

// Cluster is a running cluster of etcd nodes.
type Cluster struct {
	t       testing.TB
	exe     string
	options Options
	nodes   []*node
}

type node struct {
	name, dir, client, peer, socket string
	enter                           []string
	process                         *exec.Cmd
	stdin                           io.Closer
}

// Place is where a node runs. The zero value is the loopback, with ports of its own.
type Place struct {
	// Address is the IP address that it serves on, with etcd's usual ports.
	Address string
	// Enter is the beginning of the command that starts it: what brings it to the network that has that address.
	Enter []string
}

// Options say how the nodes are run.
type Options struct {
	// CA, Cert and Key are files: who may connect, and what the nodes show. Without them clients speak plain text.
	CA, Cert, Key string
	// Fsync has each write go through to the disk, for figures. Tests kill processes and no machines, so they do without.
	Fsync bool
	// Quota is how many bytes the database of a node may have before it takes no more writes. Zero means etcd's own limit.
	Quota int64
}

// Start starts n nodes on the loopback with empty data, which end with the test.
func Start(t testing.TB, n int) *Cluster {
	t.Helper()
	return StartAt(t, Options{}, make([]Place, n)...)
}

// StartAt is Start with a node in each of the given places.
func StartAt(t testing.TB, o Options, places ...Place) *Cluster {
	t.Helper()
	exe, err := build()
	if err != nil {
		t.Skipf("SKIPPED: no etcd server to test against: %v", err)
	}
	sockets, err := os.MkdirTemp("", "fdetcd") // t.TempDir's paths are too long for sockets on some systems
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	c := &Cluster{t: t, exe: exe, options: o}
	for i, p := range places {
		n := &node{name: fmt.Sprintf("n%d", i), dir: t.TempDir(), enter: p.Enter, socket: filepath.Join(sockets, fmt.Sprint(i))}
		client, peer := freeAddress, freeAddress
		if p.Address != "" {
			client = func(testing.TB) string { return p.Address + ":2379" }
			peer = func(testing.TB) string { return p.Address + ":2380" }
		}
		scheme := "http://"
		if o.Cert != "" {
			scheme = "https://"
		}
		n.client, n.peer = scheme+client(t), "http://"+peer(t)
		c.nodes = append(c.nodes, n)
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.Kill(i)
		}
	})
	var starting sync.WaitGroup
	for i := range c.nodes {
		starting.Go(func() { c.Run(i) }) // none is ready before most of them are
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return c
}

// Endpoints are the URLs of all nodes.
func (c *Cluster) Endpoints() []string {
	var urls []string
	for _, n := range c.nodes {
		urls = append(urls, n.client)
	}
	return urls
}

// Sockets are further ways to all nodes, which a test has whatever becomes of their network.
func (c *Cluster) Sockets() []string {
	var urls []string
	for _, n := range c.nodes {
		urls = append(urls, "unix://"+n.socket)
	}
	return urls
}

// Dir is where node i keeps its data.
func (c *Cluster) Dir(i int) string { return c.nodes[i].dir }

// Runs reports whether node i was started, and not killed since.
func (c *Cluster) Runs(i int) bool { return c.nodes[i].process != nil }

// Run starts node i, on the data that it left, and returns once it serves.
func (c *Cluster) Run(i int) {
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.name+"="+n.peer)
	}
	n := c.nodes[i]
	args := append(n.enter[:len(n.enter):len(n.enter)], c.exe, "-name", n.name, "-dir", n.dir, "-client", n.client, "-peer", n.peer, "-nodes", strings.Join(all, ","),
		"-socket", n.socket, "-ca", c.options.CA, "-cert", c.options.Cert, "-key", c.options.Key, fmt.Sprintf("-fsync=%t", c.options.Fsync), fmt.Sprintf("-quota=%d", c.options.Quota))
	cmd := exec.Command(args[0], args[1:]...)
	var said strings.Builder
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		c.t.Error(err)
		return
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		c.t.Error(err)
		return
	}
	n.process, n.stdin = cmd, stdin
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		c.Kill(i)
		c.t.Errorf("etcd node %s did not become ready: %q, %v: %s", n.name, line, err, said.String())
	}
}

// Kill ends node i at once, if it runs.
func (c *Cluster) Kill(i int) {
	if n := c.nodes[i]; n.process != nil {
		n.process.Process.Kill()
		n.process.Wait()
		n.stdin.Close()
		n.process = nil
	}
}

// Wipe ends node i at once and takes its data away: as the only node it is a new cluster then.
func (c *Cluster) Wipe(i int) {
	c.Kill(i)
	c.nodes[i].dir = c.t.TempDir()
}

// Pause stops node i where it is, Resume lets it go on.
func (c *Cluster) Pause(i int)  { c.signal(i, syscall.SIGSTOP) }
func (c *Cluster) Resume(i int) { c.signal(i, syscall.SIGCONT) }

func (c *Cluster) signal(i int, s syscall.Signal) {
	if err := c.nodes[i].process.Process.Signal(s); err != nil {
		c.t.Errorf("signal etcd node %d: %v", i, err)
	}
}

// build gives the server's executable. One is made anew when its source or its modules change.
func build() (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", fmt.Errorf("its source is not to be found")
	}
	source := filepath.Join(filepath.Dir(here), "..", "etcdtest")
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		sum.Write(data)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	exe := filepath.Join(cache, "fleetdeck-test", fmt.Sprintf("etcdtest-%x", sum.Sum(nil)[:8]))
	if err := os.MkdirAll(filepath.Dir(exe), 0o700); err != nil {
		return "", err
	}
	building := flock.New(filepath.Join(filepath.Dir(exe), "building.lock")) // tests of several packages want it at once
	if err := building.Lock(); err != nil {
		return "", err
	}
	defer building.Unlock()
	if _, err := os.Stat(exe); err == nil {
		return exe, nil
	}
	fresh, err := os.MkdirTemp(filepath.Dir(exe), "building")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	cmd := exec.Command("go", "build", "-o", filepath.Join(fresh, "etcdtest"), ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in %s: %w: %s", source, err, out)
	}
	return exe, os.Rename(filepath.Join(fresh, "etcdtest"), exe)
}

// freeAddress is one on the loopback that nobody listens at. It is below those that systems give to whoever connects, so that none of the
// many connections of a test has it before the node does, and as long as the test runs no other test is given it, of whatever package.
func freeAddress(t testing.TB) string {
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "fleetdeck-test", "ports")
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		port := 20000 + rand.IntN(12000)
		claim := flock.New(filepath.Join(cache, strconv.Itoa(port)))
		if ours, err := claim.TryLock(); err != nil || !ours {
			continue
		}
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			defer l.Close()
			t.Cleanup(func() { claim.Close() })
			return l.Addr().String()
		}
		claim.Close()
	}
	t.Fatal("no free port on the loopback")
	return ""
}
