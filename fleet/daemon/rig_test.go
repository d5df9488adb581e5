package daemon

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/slots"
	"fleetdeck/fleet/state"
)

// TestMain lets the test binary be the processes that an agent's start is made of.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "holder" {
		os.Exit(embedded.HolderMain(os.Args[3]))
	}
	if len(os.Args) > 1 && os.Args[1] == "agent-exec" {
		os.Exit(embedded.GateMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

const patience = 30 * time.Second

// running is a daemon in this process: its socket, its agents and its files are real.
type running struct {
	t      *testing.T
	dir    string
	client *client.Client
	conf   *config.Config
	log    *logged
	state  state.Dir
	cancel context.CancelFunc
	ended  chan error
}

// logged keeps what the daemon logs, and tells it to whoever listens.
type logged struct {
	mu     sync.Mutex
	text   bytes.Buffer
	listen func(msg string)
}

func (l *logged) on(listen func(msg string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listen = listen
}

func (l *logged) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	msg := fmt.Sprintf(format, args...)
	fmt.Fprintln(&l.text, msg)
	if l.listen != nil {
		l.listen(msg)
	}
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

const oneArchitect = `
grace = "90s"
[profiles.worker]
command = ["sh", "-c", "exec sleep 600"]
[profiles.dies]
command = ["sh", "-c", "exit 3"]
ready = "output"
[[slots]]
name = "architect-1"
role = "architect"
profile = "worker"
`

// startDaemon runs a daemon whose pool is what wrap makes of the real one.
func startDaemon(t *testing.T, wrap func(pool) pool) *running {
	t.Helper()
	r := newDaemon(t)
	r.up(wrap)
	return r
}

// newDaemon makes all that a daemon needs. What runs at the test's end is ended with its members.
func newDaemon(t *testing.T) *running {
	t.Helper()
	dir, err := os.MkdirTemp("", "fdd") // t.TempDir's paths are too long for sockets on some systems
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &running{t: t, dir: dir, log: &logged{}}
	if r.conf, err = config.Parse(filepath.Join(dir, "fleetdeck.toml"), []byte(oneArchitect)); err != nil {
		t.Fatal(err)
	}
	if r.state, err = state.Open(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	r.client = client.New(r.state.Socket, "")
	t.Cleanup(func() {
		if r.ended != nil {
			r.down(true)
		}
	})
	return r
}

// up runs the daemon with a new pool that is wrapped, and its options changed.
func (r *running) up(wrap func(pool) pool, change ...func(*Options)) {
	r.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	ready := make(chan struct{})
	opts := Options{State: r.state, Config: r.conf, Launcher: embedded.New(exe), Version: "test", Exe: exe,
		Ledger: r.ledger(), Now: process.Now, Log: r.log.printf, Ready: func() { close(ready) }}
	for _, c := range change {
		c(&opts)
	}
	real := slots.New([]fleet.Slot{{Name: "architect-1", Role: "architect", Profile: "worker"}}, opts.Now)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	r.cancel = cancel
	go func() { ended <- run(ctx, opts, wrap(real)) }()
	select {
	case <-ready:
		r.ended = ended
	case err := <-ended:
		r.t.Fatalf("the daemon ended: %v", err)
	}
}

// down ends the daemon, with its members or without.
func (r *running) down(members bool) {
	r.t.Helper()
	if err := r.client.Shutdown(context.WithoutCancel(r.t.Context()), members); err != nil {
		r.t.Errorf("shut down: %v", err)
	}
	r.cancel()
	if err := <-r.ended; err != nil {
		r.t.Errorf("the daemon ended: %v", err)
	}
	r.ended = nil
}

// dispatch sends an architect into a new tree and waits until it is listed.
func (r *running) dispatch(name string) (fleet.Outcome, error) {
	r.t.Helper()
	return r.dispatchAs(name, "architect", "worker")
}

// dispatchAs is dispatch of another role and profile.
func (r *running) dispatchAs(name, role, profile string) (fleet.Outcome, error) {
	r.t.Helper()
	tree := filepath.Join(r.dir, name)
	if out, err := exec.Command("git", "init", "--quiet", tree).CombinedOutput(); err != nil {
		r.t.Fatalf("git init: %v: %s", err, out)
	}
	d := &dispatch.Dispatcher{Ledger: r.ledger(), Daemon: r.client, LockWait: r.conf.LockWait, Grace: r.conf.Grace, Now: process.Now}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	out, err := d.Dispatch(ctx, fleet.Order{Tree: tree, Role: role, Profile: profile})
	if err == nil {
		out, err = d.Wait(ctx, out)
	}
	return out, err
}

// as asks the daemon who a member is, with the token from its spec.
func (r *running) as(id string) api.Identity {
	r.t.Helper()
	spec, err := os.ReadFile(filepath.Join(r.dir, "state", "members", id, "spec.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(spec), "FLEETDECK_TOKEN=")
	token, _, _ := strings.Cut(rest, `"`)
	who, err := client.New(r.client.Socket(), token).Whoami(r.t.Context())
	if err != nil {
		r.t.Fatalf("whoami: %v", err)
	}
	return who
}

// ledger opens the reservation book.
func (r *running) ledger() *book.Book {
	r.t.Helper()
	b, err := book.Open(r.state.Path, process.Now)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// await waits until ok holds.
func (r *running) await(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not within %s; the log:\n%s", what, patience, r.log)
		}
	}
}

// terminal finds a member's terminal, past the daemon.
func (r *running) terminal(member string) (launch.Terminal, error) {
	return embedded.New("").Find(r.t.Context(), member, filepath.Join(r.state.Path, "members", member))
}

// endAgent ends a member's agent from outside, and waits until its terminal knows.
func (r *running) endAgent(member string) {
	r.t.Helper()
	term, err := r.terminal(member)
	if err != nil {
		r.t.Fatal(err)
	}
	status, err := term.Status(r.t.Context())
	if err == nil {
		err = process.Signal(status.Agent, syscall.SIGKILL)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.await("the exit is on record", func() bool {
		s, err := term.Status(r.t.Context())
		return err == nil && s.Phase == launch.Exited
	})
}
