package cli_test

import (
	"context"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/launch/process"
)

// The machine's fleet: agents that end when they are written to, agents that fail to boot, and two architects at most.
const machineConfig = `
grace = "25s"
lock_wait = "10s"
[profiles.reader]
command = ["sh", "-c", "read -r line; exit 3"]
[profiles.failing]
command = ["sh", "-c", "exit 9"]
ready = "output"
[[slots]]
name = "one"
role = "architect"
profile = "reader"
[[slots]]
name = "two"
role = "architect"
profile = "reader"
[[slots]]
name = "three"
role = "architect"
profile = "failing"
`

// machine is what must be so, kept beside what is.
type machine struct {
	*rig
	client *client.Client
	ledger *book.Book
	trees  []string
	// alive is the role of each live member, by tree; ended are the tokens of those that ended.
	alive map[string]expected
	ended []string
}

type expected struct {
	member string
	role   fleet.Role
}

// shortly makes a run short and the same each time, unless flags ask for another.
func shortly(t *testing.T) {
	t.Helper()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": "6", "rapid.steps": "30", "rapid.seed": "1", "rapid.shrinktime": "0s", "rapid.nofailfile": "true"} {
		if !given[name] && !(name == "rapid.seed" && given["rapid.checks"]) {
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestRoleSlotCharterRosterAndWhoamiAgree(t *testing.T) {
	full(t)
	t.Parallel()
	shortly(t)
	r := newRig(t, machineConfig)
	r.must(nil, "up")
	ledger, err := book.Open(r.state, process.Now)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{rig: r, client: client.New(r.socket(), ""), ledger: ledger}
	for _, name := range []string{"a", "b", "c", "d"} {
		m.trees = append(m.trees, r.repo(name))
	}
	rapid.Check(t, func(t *rapid.T) {
		m.clear(t)
		t.Repeat(map[string]func(*rapid.T){
			"":              m.check,
			"spawn":         m.spawn,
			"spawn again":   m.spawn, // twice as often as each way to end
			"exit":          m.exit,
			"kill agent":    func(t *rapid.T) { m.kill(t, func(s holderRecord) int { return s.Agent.Pid }) },
			"kill holder":   func(t *rapid.T) { m.kill(t, func(s holderRecord) int { return s.Holder.Pid }) },
			"stop":          m.stop,
			"kill daemon":   func(*rapid.T) { m.rig.kill(); m.must(nil, "up") },
			"restart":       func(*rapid.T) { m.must(nil, "down"); m.must(nil, "up") },
			"reserve, drop": m.reserve,
		})
	})
}

// clear begins with nobody there.
func (m *machine) clear(t *rapid.T) {
	for _, e := range m.alive {
		if err := m.client.Stop(context.Background(), e.member); err != nil {
			t.Fatalf("stop: %v", err)
		}
	}
	m.alive, m.ended = map[string]expected{}, nil
}

func (m *machine) dispatcher() *dispatch.Dispatcher {
	return &dispatch.Dispatcher{Ledger: m.ledger, Daemon: m.client, LockWait: patience, Grace: patience, Now: process.Now}
}

func (m *machine) spawn(t *rapid.T) {
	tree := rapid.SampledFrom(m.trees).Draw(t, "tree")
	role := rapid.SampledFrom([]fleet.Role{fleet.RoleDev, "architect"}).Draw(t, "role")
	profile := rapid.SampledFrom([]string{"reader", "reader", "reader", "failing"}).Draw(t, "profile")
	var want fleet.Code
	switch {
	case m.alive[tree].member != "":
		want = fleet.CodeTreeOccupied
	case role == "architect" && profile == "reader" && m.architects() == 2:
		want = fleet.CodeSlotUnavailable
	case profile == "failing":
		want = fleet.CodeLaunchFailed
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d := m.dispatcher()
	out, err := d.Dispatch(ctx, fleet.Order{Tree: tree, Role: role, Profile: profile, Task: "t"})
	if err == nil {
		out, err = d.Wait(ctx, out)
	}
	if out.Code != want {
		t.Fatalf("spawn %s on %s in %s: %q (%v), want %q", role, profile, tree, out.Code, err, want)
	}
	if err == nil {
		m.alive[tree] = expected{out.Member, role}
	} else if out.Member != "" {
		m.awaitSlot(out.Member)
	}
}

func (m *machine) architects() int {
	n := 0
	for _, e := range m.alive {
		if e.role == "architect" {
			n++
		}
	}
	return n
}

// pick takes a live member out of the model: it is about to end.
func (m *machine) pick(t *rapid.T) string {
	if len(m.alive) == 0 {
		t.Skip("nobody is there")
	}
	tree := rapid.SampledFrom(slices.Sorted(maps.Keys(m.alive))).Draw(t, "tree")
	id := m.alive[tree].member
	m.ended = append(m.ended, variable(m.identity(id), "FLEETDECK_TOKEN"))
	delete(m.alive, tree)
	return id
}

func (m *machine) exit(t *rapid.T) {
	id := m.pick(t)
	if err := m.client.Send(context.Background(), id, "go", true); err != nil {
		t.Fatalf("send: %v", err)
	}
	m.awaitEnd(t, id, 3)
}

func (m *machine) stop(t *rapid.T) {
	id := m.pick(t)
	if err := m.client.Stop(context.Background(), id); err != nil {
		t.Fatalf("stop: %v", err)
	}
	m.awaitEnd(t, id, -1)
}

// holderRecord is what a holder leaves on disk, as far as it names processes.
type holderRecord struct {
	Holder, Agent fleet.Process
}

func (m *machine) kill(t *rapid.T, which func(holderRecord) int) {
	id := m.pick(t)
	data, err := os.ReadFile(filepath.Join(m.state, "members", id, "terminal.json"))
	var rec holderRecord
	if err == nil {
		err = json.Unmarshal(data, &rec)
	}
	if err == nil {
		err = syscall.Kill(which(rec), syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("kill: %v", err)
	}
	m.awaitEnd(t, id, -1)
}

// awaitEnd waits until the daemon says that id has ended, with code unless that is negative.
func (m *machine) awaitEnd(t *rapid.T, id string, code int) {
	var member fleet.Member
	m.await(id+" has ended", func() bool {
		var err error
		member, err = m.client.Member(context.Background(), id)
		return err == nil && !member.Alive()
	})
	if code >= 0 && (member.ExitCode == nil || *member.ExitCode != code) {
		t.Fatalf("%s ended with %v, want %d", id, member.ExitCode, code)
	}
	m.awaitSlot(id)
}

// awaitSlot waits until no slot is id's: it is given back right after the end is on record, never before.
func (m *machine) awaitSlot(id string) {
	m.await(id+" has no slot", func() bool {
		slots, err := m.client.Slots(context.Background())
		return err == nil && !slices.ContainsFunc(slots, func(s fleet.Slot) bool { return s.Member == id })
	})
}

// reserve writes a reservation by hand, which holds the tree, and drops it.
func (m *machine) reserve(t *rapid.T) {
	tree := rapid.SampledFrom(m.trees).Draw(t, "tree")
	d := m.dispatcher()
	entry, err := d.Reserve(context.Background(), fleet.Order{Tree: tree, Role: fleet.RoleDev, Profile: "reader"})
	if taken := m.alive[tree].member != ""; taken != (err != nil) {
		t.Fatalf("reserve %s: %v, taken %t", tree, err, taken)
	}
	if err != nil {
		return
	}
	if out, _ := d.Dispatch(context.Background(), fleet.Order{Tree: tree, Role: fleet.RoleDev, Profile: "reader"}); out.Code != fleet.CodeTreeReserved {
		t.Fatalf("a dispatch into a reserved tree: %+v", out)
	}
	if _, ok, err := m.ledger.Release(context.Background(), patience, tree, entry.ID); err != nil || !ok {
		t.Fatalf("release %s: %t, %v", tree, ok, err)
	}
}

// check compares all that can be asked with the model.
func (m *machine) check(t *rapid.T) {
	ctx := context.Background()
	roster, err := m.client.Roster(ctx)
	if err != nil {
		t.Fatalf("roster: %v", err)
	}
	if len(roster.Launches) != 0 {
		t.Errorf("launches %+v, want none", roster.Launches)
	}
	bound := map[string]fleet.Member{}
	live := 0
	for _, x := range roster.Members {
		if !x.Alive() {
			continue
		}
		live++
		want := m.alive[x.Tree]
		if x.ID != want.member || x.Role != want.role || x.RequestedRole != want.role || x.CharterMismatch ||
			x.CharterSHA256 != hashOf(string(config.BuiltinCharter(want.role))) || (x.Slot != "") != (want.role == "architect") {
			t.Errorf("roster: %+v, want %+v", x, want)
		}
		if x.Slot != "" {
			bound[x.Slot] = x
		}
		who, err := client.New(m.client.Socket(), variable(m.identity(x.ID), "FLEETDECK_TOKEN")).Whoami(ctx)
		if err != nil {
			t.Errorf("whoami of %s: %v", x.ID, err)
		}
		told := api.Identity{Member: x.ID, Role: x.Role, Slot: x.Slot, Tree: x.Tree, Profile: x.Profile,
			CharterSHA256: x.CharterSHA256, May: []string{}}
		if x.Role == "architect" {
			told.May = []string{"spawn", "send", "stop"}
		}
		if diff := cmp.Diff(told, who); diff != "" {
			t.Errorf("whoami differs from the roster (-roster +whoami):\n%s", diff)
		}
	}
	if live != len(m.alive) {
		t.Errorf("%d members live, want %+v", live, m.alive)
	}
	slots, err := m.client.Slots(ctx)
	if err != nil {
		t.Fatalf("slots: %v", err)
	}
	for _, s := range slots {
		x, taken := bound[s.Name]
		switch {
		case !taken && s.State != fleet.SlotFree:
			t.Errorf("slot %+v, and no live member has it", s)
		case taken && (s.State != fleet.SlotBound || s.Member != x.ID || s.Tree != x.Tree || s.Reservation != x.Reservation):
			t.Errorf("slot %+v, the roster gives it to %+v", s, x)
		}
		delete(bound, s.Name)
	}
	if len(bound) != 0 {
		t.Errorf("members hold slots that there are not: %+v", bound)
	}
	for _, token := range m.ended {
		if _, err := client.New(m.client.Socket(), token).Whoami(ctx); fleet.RefusalOf(err) == nil {
			t.Errorf("the token of a member that ended is answered: %v", err)
		}
	}
}
