package proof_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/proof"
)

// The trees and the pool that the dispatchers of many hosts fight for. Each tree belongs to one host, and is fought for from all.
var (
	hostNames   = []string{"kite", "crane", "heron"}
	sixteen     = sixteenTrees()
	clusterPool = []fleet.Slot{{Name: "one", Role: poolName, Profile: "p"}, {Name: "two", Role: poolName, Profile: "p"}}
)

func sixteenTrees() (trees []string) {
	for i := range 16 {
		trees = append(trees, fmt.Sprintf("%s:/src/tree%02d", hostNames[i%len(hostNames)], i))
	}
	return trees
}

// released are the trees in which whatever stands is dropped by hand: those of the first host. Nobody needs a slot there, since what an
// unanswered release dropped could be told of a tree, and not of a pool.
func released(tree string) bool { return strings.HasPrefix(tree, hostNames[0]) }

const (
	clusterWindow = 5 * time.Second
	shortGrace    = 2 * time.Second // as short as a lease can be
	longGrace     = 20 * time.Second
)

// clock is the clock of one host: its wall clock and the clock of its boot are off by some minutes, and the boot is its own.
type clock struct {
	host string
	off  time.Duration
}

func (c clock) now() fleet.Instant {
	now := process.Now()
	now.Boot, now.Host = c.host, c.host
	now.Wall = now.Wall.Add(c.off)
	now.Mono += c.off
	return now
}

// mono is a moment of the host's boot on the clock of the histories.
func (c clock) mono(deadline int64) int64 {
	return deadline - int64(c.now().Mono) + mono()
}

// dispatcher reserves, admits, binds, vacates and releases in a loop, through the real ledger of many hosts. Of each agent that it is given
// it is the agent too.
type dispatcher struct {
	worker
	clock     clock
	endpoints []string
	ledgers   map[string]*cluster.Ledger // by the host whose trees they are about
	mine      []claim                    // of late: a late loser comes back to them
}

type claim struct {
	tree, id, pool string
	early          int64
}

// runDispatcher is a dispatcher: end points, host, its clock's error, seed, name.
func runDispatcher(args []string) error {
	off, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(args[3], 10, 64)
	if err != nil {
		return err
	}
	d := &dispatcher{endpoints: strings.Split(args[0], ","), clock: clock{args[1], off}}
	d.worker = worker{teller: newTeller(), rand: rand.New(rand.NewPCG(seed, 1)), name: args[4]}
	d.tell(event{Phase: marked})
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var n uint64
		var name string
		if _, err := fmt.Sscan(in.Text(), &n, &name); err != nil {
			return fmt.Errorf("%q: %w", in.Text(), err)
		}
		d.join(name)
		for d.made = 0; d.made < n; {
			d.turn()
		}
		d.tell(event{Phase: marked})
	}
	return nil
}

// join makes the ledgers of a fleet, one for the trees of each host.
func (d *dispatcher) join(name string) {
	for _, l := range d.ledgers {
		l.Close()
	}
	d.ledgers, d.mine = map[string]*cluster.Ledger{}, nil
	for _, host := range hostNames {
		d.ledgers[host] = cluster.New(cluster.Options{Endpoints: d.endpoints, Fleet: name, Node: host, Slots: clusterPool, Now: d.clock.now})
	}
}

// of is the ledger that tree is in, and the path that it has there.
func (d *dispatcher) of(tree string) (*cluster.Ledger, string) {
	host, path, _ := strings.Cut(tree, ":")
	return d.ledgers[host], path
}

func (d *dispatcher) turn() {
	tree := sixteen[d.rand.IntN(len(sixteen))]
	switch n := d.rand.IntN(100); {
	case n < 75:
		d.dispatch(tree)
	case n < 95 && len(d.mine) > 0:
		old := d.mine[d.rand.IntN(len(d.mine))]
		switch d.rand.IntN(4) {
		case 0:
			d.drop(proof.Settle, old)
		case 1:
			d.release(old.tree, old.id, old.pool)
		case 2:
			d.spawn(old)
		case 3:
			d.bind(old)
		}
	case n >= 95 && released(tree):
		d.release(tree, "", "")
	}
}

func (d *dispatcher) dispatch(tree string) {
	c := claim{tree: tree, id: fmt.Sprintf("%s-%d", d.name, d.seq)}
	grace, role := longGrace, fleet.RoleDev
	if d.sometimes(3) {
		grace = shortGrace
	}
	if !released(tree) && d.sometimes(2) {
		role, c.pool = poolName, poolName
	}
	l, path := d.of(tree)
	made := d.do(proof.Op{Kind: proof.Reserve, Tree: tree, ID: c.id, Pool: c.pool, Early: mono() + int64(grace)}, func(op *proof.Op) {
		draft := ledger.Draft{Tree: fleet.Tree{Path: path}, Role: role, Profile: "p", Grace: grace, ID: c.id}
		e, err := l.Reserve(context.Background(), clusterWindow, draft, func(context.Context) (fleet.Roster, error) { return fleet.Roster{}, nil })
		answer(op, err)
		if op.Slot = e.Slot; err == nil {
			c.early = d.clock.mono(e.Boot.DeadlineNS)
			op.Early = c.early
		}
		op.By = byOf(err)
	})
	if made.Result == proof.No {
		return
	}
	if d.mine = append(d.mine, c); len(d.mine) > 8 {
		d.mine = d.mine[1:]
	}
	if made.Result == proof.Unknown {
		return
	}
	switch d.rand.IntN(12) {
	case 0: // dies before it sends
		if grace == shortGrace {
			return
		}
	case 1: // thinks better of it
		d.drop(proof.Settle, c)
		return
	case 2: // is held up past its grace
		if grace == shortGrace {
			time.Sleep(time.Duration(c.early-mono()) + time.Duration(d.rand.IntN(8000))*time.Microsecond)
		}
	}
	d.send(c)
}

// send is what the host's daemon does with a reservation: fence, launch, member, end.
func (d *dispatcher) send(c claim) {
	if d.spawn(c).Result != proof.Done {
		d.drop(proof.Exit, c)
		return
	}
	var late sync.WaitGroup
	switch d.rand.IntN(4) { // somebody drops it while it becomes a member
	case 0:
		late.Go(func() { d.drop(proof.Settle, c) })
	case 1:
		late.Go(func() { d.release(c.tree, c.id, c.pool) })
	}
	bound := d.bind(c)
	late.Wait()
	if bound.Result == proof.Done {
		places := []string{c.tree}
		if c.pool != "" {
			places = append(places, "slot of "+c.id) // whose name the history tells
		}
		from, seqs := mono(), []uint64(nil)
		for _, p := range places {
			seqs = append(seqs, d.tell(event{Phase: arrived, Stay: proof.Stay{Place: p, ID: c.id, From: from, To: from}}))
		}
		d.lag()
		to := mono()
		for i, p := range places {
			d.tell(event{Phase: left, Seq: seqs[i], Stay: proof.Stay{Place: p, ID: c.id, From: from, To: to}})
		}
	}
	// What is bound ends by this alone, so it goes on until it is done.
	for d.drop(proof.Exit, c).Result != proof.Done {
	}
}

func (d *dispatcher) spawn(c claim) proof.Op {
	l, path := d.of(c.tree)
	return d.do(proof.Op{Kind: proof.Spawn, Tree: c.tree, ID: c.id}, func(op *proof.Op) {
		answer(op, l.Admit(context.Background(), clusterWindow, path, c.id, func(fleet.Entry) error { return nil }))
	})
}

// bind gives up with the grace, as the daemon does. An error may be one of an answer that was lost.
func (d *dispatcher) bind(c claim) proof.Op {
	l, _ := d.of(c.tree)
	return d.do(proof.Op{Kind: proof.List, Tree: c.tree, ID: c.id, Pool: c.pool}, func(op *proof.Op) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.early-mono()))
		defer cancel()
		if answer(op, l.Bind(ctx, c.id, "M"+c.id)); op.Result == proof.No && op.Code != fleet.CodeReservationStale {
			op.Result = proof.Unknown
		}
	})
}

// drop settles or vacates.
func (d *dispatcher) drop(kind proof.Kind, c claim) proof.Op {
	l, _ := d.of(c.tree)
	return d.do(proof.Op{Kind: kind, Tree: c.tree, ID: c.id, Pool: c.pool}, func(op *proof.Op) {
		how := l.Settle
		if kind == proof.Exit {
			how = l.Vacate
		}
		answer(op, how(context.Background(), clusterWindow, c.id))
	})
}

func (d *dispatcher) release(tree, id, pool string) {
	l, path := d.of(tree)
	d.do(proof.Op{Kind: proof.Release, Tree: tree, ID: id, Pool: pool}, func(op *proof.Op) {
		e, ok, err := l.Release(context.Background(), clusterWindow, path, id)
		answer(op, err)
		if op.By = e.ID; op.Result == proof.Done && !ok {
			op.Result = proof.No
		}
	})
}

// answer puts what err says into op.
func answer(op *proof.Op, err error) {
	if op.Result, op.Code = resultOf(err); op.Code == fleet.CodeOutcomeUnknown {
		op.Result = proof.Unknown
	}
}
