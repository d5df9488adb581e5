package proof_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/rpc"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet/book"
	"fleetdeck/fleet/proof"

	"fleetdeck/fleet/launch/process"
)

// patience bounds every wait for a condition. No test passes or fails by how fast a machine is.
const patience = time.Minute

// histories is a driver of millions of operations: long-lived worker processes, and the owner, over one real book.
type histories struct {
	dir     string
	rand    *rand.Rand
	book    *book.Book
	owner   *actor
	eye     *rpc.Client
	workers []*actor
	clients int

	first proof.Window // what stands now
	total int          // operations so far
	kinds map[string]int
}

func newHistories(t *testing.T, seed uint64, workers int) *histories {
	t.Helper()
	dir := scratch(t)
	b, err := book.Open(dir, process.Now)
	if err != nil {
		t.Fatal(err)
	}
	l := &histories{dir: dir, rand: rand.New(rand.NewPCG(seed, 0)), book: b, kinds: map[string]int{}}
	l.first.Trees = map[string]proof.Tree{}
	for _, tree := range trees {
		l.first.Trees[tree] = proof.Tree{}
	}
	l.first.Pools = map[string]proof.Pool{poolName: {}}
	l.first.Slots = map[string][]string{poolName: slotNames}
	t.Cleanup(func() {
		for _, p := range append(l.workers, l.owner) {
			if p != nil {
				p.end()
			}
		}
	})
	if l.owner, err = begin(0, "proof-owner", dir); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(patience)
	for l.eye, err = rpc.Dial("unix", filepath.Join(dir, "owner")); err != nil; l.eye, err = rpc.Dial("unix", filepath.Join(dir, "owner")) {
		if time.Now().After(until) {
			t.Fatalf("the owner does not come up: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
	t.Cleanup(func() { l.eye.Close() })
	for range workers {
		p, err := l.hire()
		if err != nil {
			t.Fatal(err)
		}
		l.workers = append(l.workers, p)
	}
	return l
}

// hire starts a worker.
func (l *histories) hire() (*actor, error) {
	l.clients++
	p, err := begin(l.clients, "proof-worker", l.dir, strconv.FormatUint(l.rand.Uint64(), 10), fmt.Sprintf("w%d", l.clients))
	if err != nil {
		return nil, err
	}
	if alive, err := p.await(patience); !alive || err != nil {
		p.end()
		return nil, errors.Join(errors.New("a worker does not come up"), err)
	}
	return p, nil
}

// window lets all workers do n operations each, while some are killed and some are stopped for a while, waits until
// nothing is under way, and checks what they did.
func (l *histories) window(n int) error {
	for _, w := range l.workers {
		w.ask(n)
	}
	harm := make(chan struct{})
	victims := []*actor{l.workers[l.rand.IntN(len(l.workers))], l.workers[l.rand.IntN(len(l.workers))]}
	pauses := []time.Duration{l.pause(), l.pause(), l.pause()}
	kill := l.rand.IntN(2) == 0
	go func() {
		defer close(harm)
		time.Sleep(pauses[0]) // the pace of the faults, nothing is waited for
		victims[0].cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(pauses[1])
		victims[0].cmd.Process.Signal(syscall.SIGCONT)
		if kill {
			time.Sleep(pauses[2])
			victims[1].cmd.Process.Kill()
		}
	}()
	var dead []*actor
	for i, w := range l.workers {
		alive, err := w.await(patience)
		if err != nil {
			return err
		}
		if !alive {
			dead = append(dead, w)
			if l.workers[i], err = l.hire(); err != nil {
				return err
			}
		}
	}
	<-harm
	for i, w := range l.workers { // one that was killed when it had done its work
		if kill && w == victims[1] {
			<-w.ended
			dead = append(dead, w)
			var err error
			if l.workers[i], err = l.hire(); err != nil {
				return err
			}
		}
	}
	look, next, err := l.look()
	if err != nil {
		return err
	}
	w := l.first
	var stays []proof.Stay
	for _, p := range slices.Concat(l.workers, dead, []*actor{l.owner}) {
		ops, s := p.take()
		w.Ops, stays = append(w.Ops, ops...), append(stays, s...)
	}
	l.total += len(w.Ops)
	for _, op := range w.Ops {
		l.kinds[string(op.Kind)+" "+string(op.Result)+" "+string(op.Code)]++
	}
	w.Ops = append(w.Ops, look...)
	l.first.Trees, l.first.Pools = next.Trees, next.Pools
	if err := proof.Alone(stays); err != nil {
		return fmt.Errorf("two worked at once: %w", err)
	}
	return w.Check(patience)
}

func (l *histories) pause() time.Duration { return time.Duration(l.rand.IntN(60)) * time.Millisecond }

// look sees what stands while nothing is under way: the operations that say so, and the beginning of the next window.
func (l *histories) look() ([]proof.Op, proof.Window, error) {
	var s Sight
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s = Sight{}
		if err := l.eye.Call("Owner.Look", "", &s); err != nil {
			return nil, proof.Window{}, fmt.Errorf("ask the owner: %w", err)
		}
		if s.Doors == len(l.workers)+1 && s.Busy == 0 {
			break
		}
		if time.Now().After(until) {
			return nil, proof.Window{}, fmt.Errorf("the owner comes to no rest: %+v", s)
		}
	}
	l.owner.ask(0)
	if alive, err := l.owner.await(patience); !alive || err != nil {
		return nil, proof.Window{}, errors.Join(errors.New("the owner is dead"), err)
	}
	entries, err := l.book.Read()
	if err != nil {
		return nil, proof.Window{}, err
	}
	now := mono()
	next := proof.Window{Trees: map[string]proof.Tree{}, Pools: map[string]proof.Pool{poolName: {}}}
	for _, tree := range trees {
		next.Trees[tree] = proof.Tree{Agent: s.Live[tree]}
	}
	for _, e := range entries {
		next.Trees[e.Tree] = proof.Tree{
			Entry: e.ID, Early: e.Boot.DeadlineNS, Late: e.Boot.DeadlineNS, Listed: s.Listed[e.ID], Agent: s.Live[e.Tree],
		}
	}
	var ops []proof.Op
	for tree, is := range next.Trees {
		ops = append(ops, proof.Op{Kind: proof.Look, Tree: tree, ID: is.Entry, By: is.Agent, Call: now, Return: now, Result: proof.Done})
	}
	pool := proof.Pool{}
	for i, name := range slotNames {
		pool[i] = s.Slots[name]
		ops = append(ops, proof.Op{Kind: proof.Look, Pool: poolName, Slot: name, By: pool[i], Call: now, Return: now, Result: proof.Done})
	}
	next.Pools[poolName] = pool
	return ops, next, nil
}

// run goes on until so many operations were made and checked.
func (l *histories) run(t *testing.T, ops int) {
	t.Helper()
	began, said := time.Now(), time.Now()
	windows := 0
	for l.total < ops {
		windows++
		if err := l.window(250); err != nil {
			draw(t, err)
			t.Fatalf("window %d, after %d operations: %v", windows, l.total, err)
		}
		if time.Since(said) > time.Minute {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "proof: %d operations, %.0f a second\n", l.total, float64(l.total)/time.Since(began).Seconds())
		}
	}
	t.Logf("%d operations of %d processes in %d windows, %.0f a second: every one explained", l.total, l.clients, windows, float64(l.total)/time.Since(began).Seconds())
	for _, kind := range sortedKeys(l.kinds) {
		t.Logf("%8d %s", l.kinds[kind], kind)
	}
}
