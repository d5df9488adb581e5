package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/dispatch"
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
	ended  chan error
}

// logged keeps what the daemon logs.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, format+"\n", args...)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

const oneArchitect = `
grace = "20s"
[profiles.worker]
command = ["sh", "-c", "exec sleep 600"]
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
		Now: process.Now, Log: r.log.printf, Ready: func() { close(ready) }}
	for _, c := range change {
		c(&opts)
	}
	real := slots.New([]fleet.Slot{{Name: "architect-1", Role: "architect", Profile: "worker"}}, opts.Now)
	ended := make(chan error, 1)
	go func() { ended <- run(context.WithoutCancel(r.t.Context()), opts, wrap(real)) }()
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
	if err := <-r.ended; err != nil {
		r.t.Errorf("the daemon ended: %v", err)
	}
	r.ended = nil
}

// dispatch sends an architect into a new tree and waits until it is listed.
func (r *running) dispatch(name string) (fleet.Outcome, error) {
	r.t.Helper()
	tree := filepath.Join(r.dir, name)
	if out, err := exec.Command("git", "init", "--quiet", tree).CombinedOutput(); err != nil {
		r.t.Fatalf("git init: %v: %s", err, out)
	}
	ledger, err := book.Open(filepath.Join(r.dir, "state"), process.Now)
	if err != nil {
		r.t.Fatal(err)
	}
	d := &dispatch.Dispatcher{Ledger: ledger, Daemon: r.client, LockWait: r.conf.LockWait, Grace: r.conf.Grace, Now: process.Now}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	out, err := d.Dispatch(ctx, fleet.Order{Tree: tree, Role: "architect", Profile: "worker"})
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

// unbindable is a pool in which nothing can be bound.
type unbindable struct{ pool }

var errBind = errors.New("no binding today")

func (unbindable) Bind(string) error { return errBind }

func TestAMemberWhoseSlotCannotBeBoundIsADev(t *testing.T) {
	r := startDaemon(t, func(p pool) pool { return unbindable{p} })
	out, err := r.dispatch("one")
	if err != nil {
		t.Fatal(err)
	}
	roster, err := r.client.Roster(t.Context())
	if err != nil || len(roster.Members) != 1 {
		t.Fatalf("roster %v, %v, want one member", roster, err)
	}
	m := roster.Members[0]
	if m.Role != fleet.RoleDev || m.RequestedRole != "architect" || m.Slot != "" || !m.CharterMismatch {
		t.Errorf("role %s, requested %s, slot %q, mismatch %t; want dev, architect, none, true", m.Role, m.RequestedRole, m.Slot, m.CharterMismatch)
	}
	// The charter that it was handed stays what it is: the receipt does not lie for it.
	if want := receiptOf(string(config.BuiltinCharter("architect"))); m.CharterSHA256 != want {
		t.Errorf("charter %s, want the architect's, %s", m.CharterSHA256, want)
	}
	who := r.as(out.Member)
	if who.Role != fleet.RoleDev || who.Slot != "" || !who.CharterMismatch || len(who.May) != 0 || who.CharterSHA256 != m.CharterSHA256 {
		t.Errorf("whoami = %+v, want a dev that may do nothing, with a mismatch", who)
	}
	var warned []fleet.Event
	if err := r.client.Events(t.Context(), 0, false, func(e fleet.Event) {
		if e.Kind == "charter_mismatch" {
			warned = append(warned, e)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 1 || warned[0].Level != "alarm" || !strings.Contains(warned[0].Message, "WARN") || !strings.Contains(warned[0].Message, m.Terminal) {
		t.Errorf("events %v, want one alarm that warns and names terminal %s", warned, m.Terminal)
	}
	if !strings.Contains(r.log.String(), m.Terminal) {
		t.Errorf("the log does not name %s:\n%s", m.Terminal, r.log)
	}
	// It holds no slot, so the place is free for another.
	list, err := r.client.Slots(t.Context())
	if err != nil || len(list) != 1 || list[0].State != fleet.SlotFree {
		t.Errorf("slots %v, %v, want one that is free", list, err)
	}
}

func TestABoundSlotIsItsMembers(t *testing.T) {
	r := startDaemon(t, func(p pool) pool { return p })
	out, err := r.dispatch("one")
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.client.Slots(t.Context())
	if err != nil || len(list) != 1 || list[0].State != fleet.SlotBound || list[0].Member != out.Member {
		t.Errorf("slots %v, %v, want one bound to %s", list, err, out.Member)
	}
	if who := r.as(out.Member); who.Role != "architect" || who.Slot != "architect-1" || who.CharterMismatch {
		t.Errorf("whoami = %+v, want the architect of architect-1", who)
	}
	_, err = r.dispatch("two")
	if refusal := fleet.RefusalOf(err); refusal == nil || refusal.Code != fleet.CodeSlotUnavailable {
		t.Errorf("a second architect: %v, want %s", err, fleet.CodeSlotUnavailable)
	}
}
