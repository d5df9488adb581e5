package proof_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/rpc"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/proof"
)

// trees are what the ledger's processes fight for. Nobody looks into them, so they need not be there.
var trees = []string{"/src/api", "/src/web", "/src/docs", "/src/tools"}

// worker dispatches, releases and prunes in a loop, through the real book and its lock. Of each agent that it is given it is
// the agent too.
type worker struct {
	*teller
	book  *book.Book
	owner *rpc.Client
	rand  *rand.Rand
	name  string
	made  uint64
	mine  []reserved // of late: a late loser comes back to them
}

type reserved struct{ tree, id string }

// runWorker is a worker: dir, seed, name.
func runWorker(dir, seed, name string) error {
	b, err := book.Open(dir, process.Now)
	if err != nil {
		return err
	}
	c, err := rpc.Dial("unix", filepath.Join(dir, "owner"))
	if err != nil {
		return err
	}
	s, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return err
	}
	w := &worker{teller: newTeller(), book: b, owner: c, rand: rand.New(rand.NewPCG(s, 1)), name: name}
	w.tell(event{Phase: marked})
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		n, err := strconv.Atoi(in.Text())
		if err != nil {
			return err
		}
		for w.made = 0; w.made < uint64(n); {
			w.turn()
		}
		w.tell(event{Phase: marked})
	}
	return nil
}

func (w *worker) do(op proof.Op, f func(*proof.Op)) proof.Op {
	w.made++
	return w.op(op, f)
}

// sometimes is true once in n times.
func (w *worker) sometimes(n int) bool { return w.rand.IntN(n) == 0 }

// lag waits a moment, as a program does that others keep from running.
func (w *worker) lag() { time.Sleep(time.Duration(w.rand.IntN(4000)) * time.Microsecond) }

func (w *worker) turn() {
	tree := trees[w.rand.IntN(len(trees))]
	switch n := w.rand.IntN(100); {
	case n < 60:
		w.dispatch(tree)
	case n < 80:
		w.prune()
	case n < 97 && len(w.mine) > 0:
		old := w.mine[w.rand.IntN(len(w.mine))]
		if w.sometimes(2) {
			w.settle(old.tree, old.id)
		} else {
			w.release(old.tree, old.id)
		}
	case n >= 97:
		w.release(tree, "")
	}
}

func (w *worker) dispatch(tree string) {
	grace := time.Duration(2+w.rand.IntN(30)) * time.Millisecond
	if w.sometimes(2) {
		grace = 300 * time.Millisecond
	}
	id := fmt.Sprintf("%s-%d", w.name, w.seq)
	late := w.sometimes(8)
	var entry fleet.Entry
	made := w.do(proof.Op{Kind: proof.Reserve, Tree: tree, ID: id, Early: mono() + int64(grace), Late: 1 << 62}, func(op *proof.Op) {
		var err error
		draft := ledger.Draft{Tree: fleet.Tree{Path: tree}, Role: fleet.RoleDev, Profile: "p", Grace: grace, ID: id}
		entry, err = w.book.Reserve(context.Background(), window, draft, func(context.Context) (fleet.Roster, error) { return w.roster(tree, late) })
		if op.Result, op.Code = resultOf(err); err == nil {
			op.Early, op.Late = entry.Boot.DeadlineNS, entry.Boot.DeadlineNS
		}
		op.By = byOf(err)
	})
	if made.Result != proof.Done {
		return
	}
	if w.mine = append(w.mine, reserved{tree, id}); len(w.mine) > 8 {
		w.mine = w.mine[1:]
	}
	switch w.rand.IntN(10) {
	case 0: // dies before it sends
		return
	case 1: // thinks better of it
		w.release(tree, id)
		return
	case 2: // is held up past its grace
		if grace < 100*time.Millisecond {
			time.Sleep(entry.Remaining(process.Now()) + time.Duration(w.rand.IntN(8000))*time.Microsecond)
		}
	}
	w.send(tree, id)
}

// roster asks who is there. The daemon may be slow to answer, or the answer to arrive.
func (w *worker) roster(tree string, late bool) (fleet.Roster, error) {
	var r fleet.Roster
	err := w.owner.Call("Owner.Roster", tree, &r)
	if late {
		w.lag()
	}
	return r, err
}

// send asks for the agent of a reservation and, if it comes, is that agent.
func (w *worker) send(tree, id string) {
	role, pool := fleet.RoleDev, ""
	if w.sometimes(2) {
		role, pool = poolName, poolName
	}
	ask := Ask{ID: id, Tree: tree, Role: role}
	spawned := w.do(proof.Op{Kind: proof.Spawn, Tree: tree, ID: id, Pool: pool}, func(op *proof.Op) { w.call("Spawn", ask, op) })
	if spawned.Result != proof.Done {
		w.settle(tree, id) // provably refused
		return
	}
	if w.sometimes(4) {
		var again proof.Op
		if w.call("Spawn", ask, &again); again.Result == proof.Done {
			panic("one reservation was admitted twice")
		}
	}
	if w.sometimes(4) {
		w.lag()
	}
	listed := w.do(proof.Op{Kind: proof.List, Tree: tree, ID: id, Pool: pool}, func(op *proof.Op) { w.call("List", ask, op) })
	if listed.Result == proof.Done {
		leave := w.work(tree, id, spawned.Slot)
		if !w.sometimes(3) {
			w.settle(tree, id) // what the daemon does once it lists somebody, unless the lock is busy
		}
		if w.sometimes(2) {
			w.lag()
		}
		leave()
	}
	w.do(proof.Op{Kind: proof.Exit, Tree: tree, ID: id, Pool: pool}, func(op *proof.Op) { w.call("Exit", ask, op) })
}

// call asks the owner, and puts its answer into op.
func (w *worker) call(method string, ask Ask, op *proof.Op) {
	var a Answer
	if err := w.owner.Call("Owner."+method, ask, &a); err != nil {
		fmt.Fprintln(os.Stderr, "proof: the owner:", err)
		os.Exit(1)
	}
	op.Result, op.Code, op.By, op.Slot = proof.No, a.Code, a.By, a.Slot
	if a.OK {
		op.Result = proof.Done
	}
}

// work says that an agent works in tree, and on slot where it has one, until it leaves.
func (w *worker) work(tree, id, slot string) (leave func()) {
	places := []string{tree}
	if slot != "" {
		places = append(places, "slot "+slot)
	}
	from := mono()
	var seqs []uint64
	for _, p := range places {
		seqs = append(seqs, w.tell(event{Phase: arrived, Stay: proof.Stay{Place: p, ID: id, From: from, To: from}}))
	}
	return func() {
		to := mono()
		for i, p := range places {
			w.tell(event{Phase: left, Seq: seqs[i], Stay: proof.Stay{Place: p, ID: id, From: from, To: to}})
		}
	}
}

func (w *worker) settle(tree, id string) {
	w.do(proof.Op{Kind: proof.Settle, Tree: tree, ID: id}, func(op *proof.Op) {
		op.Result, op.Code = resultOf(w.book.Settle(context.Background(), window, id))
	})
}

func (w *worker) release(tree, id string) {
	w.do(proof.Op{Kind: proof.Release, Tree: tree, ID: id}, func(op *proof.Op) {
		e, ok, err := w.book.Release(context.Background(), window, tree, id)
		op.Result, op.Code = resultOf(err)
		if op.By = e.ID; !ok {
			op.Result = proof.No
		}
	})
}

func (w *worker) prune() {
	late := w.sometimes(4)
	w.do(proof.Op{Kind: proof.Prune}, func(op *proof.Op) {
		roster, err := w.roster("", late)
		if err != nil {
			op.Result = proof.No
			return
		}
		report, err := w.book.Prune(context.Background(), window, roster)
		op.Result, op.Code = resultOf(err)
		op.Dropped = report.Pruned
	})
}
