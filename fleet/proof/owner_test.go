package proof_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/proof"
	"fleetdeck/fleet/slots"
)

// The pool of the ledger's histories.
const poolName = "architect"

var slotNames = []string{"one", "two"}

// window is the acquire window of the ledger's processes. A stopped one may hold the lock for a while.
const window = 20 * time.Second

// owner stands in for the daemon where millions of operations are made: it has no terminals and no memory on disk. What it
// decides by is the real thing: book.Admit, fleet.Occupancy, and slots.Pool.
type owner struct {
	*teller
	book *book.Book
	pool *slots.Pool

	mu     sync.Mutex // guards the rest
	agents map[string]*agent
	doors  int
	busy   int // how many things it is doing by itself
}

// agent is an agent of the owner, by its reservation. Its life is that of the worker that speaks for it.
type agent struct {
	fleet.Member
	door     *door
	pool     string
	step     string // "launch", "member", "exited", "failed"
	deadline fleet.Deadline
	timer    *time.Timer
}

func runOwner(dir string) error {
	b, err := book.Open(dir, process.Now)
	if err != nil {
		return err
	}
	var configured []fleet.Slot
	for _, name := range slotNames {
		configured = append(configured, fleet.Slot{Name: name, Role: poolName, Profile: "p"})
	}
	o := &owner{teller: newTeller(), book: b, pool: slots.New(configured, process.Now), agents: map[string]*agent{}}
	l, err := net.Listen("unix", filepath.Join(dir, "owner"))
	if err != nil {
		return err
	}
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			o.tell(event{Phase: marked})
		}
		os.Exit(0)
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		o.mu.Lock()
		o.doors++
		o.mu.Unlock()
		go func() {
			d := &door{o}
			server := rpc.NewServer()
			server.RegisterName("Owner", d)
			server.ServeConn(conn)
			o.closed(d)
		}()
	}
}

// door is the owner as one worker sees it.
type door struct{ o *owner }

// Ask asks for an agent.
type Ask struct {
	ID, Tree, Role string
}

// Answer is the owner's answer.
type Answer struct {
	OK    bool
	Again bool // known already
	Code  fleet.Code
	By    string
	Slot  string
}

// Roster says who is in tree, or everywhere.
func (d *door) Roster(tree string, out *fleet.Roster) error {
	d.o.mu.Lock()
	defer d.o.mu.Unlock()
	*out = d.o.roster(tree)
	return nil
}

// roster is who is in tree, or everywhere. Who ended is in it until its grace is over: its entry may stand as long. o.mu is held.
func (o *owner) roster(tree string) fleet.Roster {
	var r fleet.Roster
	for id, a := range o.agents {
		switch over := a.deadline.Remaining(process.Now()) <= 0; {
		case over && (a.step == "exited" || a.step == "failed"):
			delete(o.agents, id)
			continue
		case tree != "" && a.Tree != tree:
			continue
		}
		switch a.step {
		case "launch":
			r.Launches = append(r.Launches, fleet.Launch{ID: a.ID, Tree: a.Tree, Reservation: a.Reservation, Deadline: a.deadline})
		case "member", "exited":
			r.Members = append(r.Members, a.Member)
		}
	}
	return r
}

// Spawn admits an agent as daemon.admit does.
func (d *door) Spawn(ask Ask, out *Answer) error {
	o := d.o
	err := o.book.Admit(context.Background(), window, ask.Tree, ask.ID, func(e fleet.Entry) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.agents[ask.ID] != nil {
			out.Again = true
			return nil
		}
		if h := fleet.Occupancy(fleet.Tree{Path: ask.Tree}, nil, o.roster(ask.Tree), process.Now()); !h.Free(false) {
			out.By = h.ReservationID()
			return fleet.Refuse(fleet.CodeTreeOccupied, "somebody is there")
		}
		a := &agent{door: d, step: "launch", deadline: e.Deadline()}
		a.Member = fleet.Member{ID: ask.ID, Tree: ask.Tree, Reservation: ask.ID, State: fleet.StateWorking}
		if ask.Role != fleet.RoleDev {
			slot, err := o.pool.Reserve(slots.Request{Role: ask.Role, Profile: "p", Reservation: ask.ID, Member: ask.ID, Tree: ask.Tree})
			if err != nil {
				return err
			}
			a.pool, a.Slot = poolName, slot.Name
		}
		o.agents[ask.ID] = a
		a.timer = time.AfterFunc(a.deadline.Remaining(process.Now()), func() { o.expire(a) })
		out.OK, out.Slot = true, a.Slot
		return nil
	})
	out.Code = codeOf(err)
	return nil
}

// List makes a launch a member, unless its grace is over.
func (d *door) List(ask Ask, out *Answer) error {
	o := d.o
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.agents[ask.ID]
	if a == nil || a.step != "launch" || a.deadline.Remaining(process.Now()) <= 0 {
		return nil
	}
	if a.Slot != "" && o.pool.Bind(ask.ID) != nil {
		a.Slot = ""
	}
	a.step, out.OK, out.Slot = "member", true, a.Slot
	return nil
}

// Exit ends the worker's agent.
func (d *door) Exit(ask Ask, out *Answer) error {
	d.o.mu.Lock()
	a := d.o.agents[ask.ID]
	d.o.mu.Unlock()
	out.OK = a != nil && d.o.exit(a, false)
	return nil
}

// exit ends a, or only a launch that is overdue: tree first, slot second, as the daemon does.
func (o *owner) exit(a *agent, overdue bool) bool {
	o.mu.Lock()
	if a.step == "exited" || a.step == "failed" || overdue && a.step == "member" {
		o.mu.Unlock()
		return false
	}
	if a.State = fleet.StateExited; a.step == "member" {
		a.step = "exited"
	} else {
		a.step = "failed"
	}
	a.timer.Stop()
	o.mu.Unlock()
	o.pool.Release(a.ID)
	return true
}

func (o *owner) settle(tree, id string) {
	o.op(proof.Op{Kind: proof.Settle, Tree: tree, ID: id}, func(op *proof.Op) {
		op.Result, op.Code = resultOf(o.book.Settle(context.Background(), window, id))
	})
}

// gone ends a by the owner's own doing, on record, and settles it.
func (o *owner) gone(a *agent, overdue bool) {
	ended := false
	o.op(proof.Op{Kind: proof.Exit, Tree: a.Tree, ID: a.ID, Pool: a.pool}, func(op *proof.Op) {
		op.Result = proof.No
		if ended = o.exit(a, overdue); ended {
			op.Result = proof.Done
		}
	})
	if ended {
		o.settle(a.Tree, a.ID)
	}
}

// expire ends a launch that was not listed within its grace.
func (o *owner) expire(a *agent) {
	o.mu.Lock()
	o.busy++
	o.mu.Unlock()
	o.gone(a, true)
	o.mu.Lock()
	o.busy--
	o.mu.Unlock()
}

// closed ends the agents of a worker that is dead.
func (o *owner) closed(d *door) {
	o.mu.Lock()
	var orphans []*agent
	for _, a := range o.agents {
		if a.door == d && (a.step == "launch" || a.step == "member") {
			orphans = append(orphans, a)
		}
	}
	o.mu.Unlock()
	for _, a := range orphans {
		o.gone(a, false)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doors--
}

// Sight is what the owner holds while nothing is under way.
type Sight struct {
	Doors  int
	Busy   int
	Live   map[string]string // reservation by tree
	Listed map[string]bool   // by reservation
	Slots  map[string]string // reservation by slot
}

// Look says what the owner holds.
func (d *door) Look(_ string, out *Sight) error {
	o := d.o
	o.mu.Lock()
	defer o.mu.Unlock()
	*out = Sight{Doors: o.doors, Busy: o.busy, Live: map[string]string{}, Listed: map[string]bool{}, Slots: map[string]string{}}
	for id, a := range o.agents {
		switch a.step {
		case "member", "exited":
			out.Listed[id] = true
		}
		if a.step == "launch" || a.step == "member" {
			out.Live[a.Tree] = id
		}
	}
	for _, s := range o.pool.List() {
		out.Slots[s.Name] = s.Reservation
	}
	return nil
}

func resultOf(err error) (proof.Result, fleet.Code) {
	if err == nil {
		return proof.Done, ""
	}
	return proof.No, codeOf(err)
}

// codeOf is why err refuses. What is no refusal should not happen here at all.
func codeOf(err error) fleet.Code {
	if err == nil {
		return ""
	}
	if r := fleet.RefusalOf(err); r != nil {
		return r.Code
	}
	fmt.Fprintln(os.Stderr, "proof:", err)
	return fleet.CodeInternal
}

// byOf is the reservation, or member, that a refusal names as in the way.
func byOf(err error) string {
	r := fleet.RefusalOf(err)
	if r == nil {
		return ""
	}
	for _, before := range []string{"by member ", "by the member of reservation ", "by reservation ", "by launch "} {
		if _, rest, ok := strings.Cut(r.Message, before); ok {
			return strings.TrimRight(strings.Fields(rest)[0], ",")
		}
	}
	return ""
}
