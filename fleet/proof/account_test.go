package proof_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"fleetdeck/fleet/proof"
)

// rampage lets so many clients make so many operations, while the daemon is killed again and again if it is to be.
func (p *programs) rampage(seed uint64, clients, ops int, killDaemon bool) {
	stop := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.made >= ops || p.t.Failed()
	}
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { p.client(i, rand.New(rand.NewPCG(seed, uint64(i))), stop) })
	}
	if killDaemon {
		wg.Go(func() { p.harass(rand.New(rand.NewPCG(seed, math.MaxUint64)), stop) })
	}
	wg.Wait()
}

// admitted is a record of the daemon's registry, as far as it says what became of a reservation.
type admitted struct {
	ID, Reservation, Tree, Slot, Step string
}

// account checks all that is on record, once nothing is under way.
func (p *programs) account(began int64) error {
	stays, all, err := readStays(filepath.Join(p.dir, "stays"))
	if err != nil {
		return err
	}
	if err := proof.Alone(all); err != nil {
		return fmt.Errorf("two worked at once: %w", err)
	}
	records, err := p.registry()
	if err != nil {
		return err
	}
	look, err := p.look()
	if err != nil {
		return err
	}
	w := proof.Window{
		Trees: map[string]proof.Tree{}, Pools: map[string]proof.Pool{"worker": {}, "failing": {}},
		Slots: map[string][]string{"worker": {"one"}, "failing": {"two"}},
		Ops:   append(p.explained(records, stays, began), look...),
	}
	for _, tree := range p.trees {
		w.Trees[tree] = proof.Tree{}
	}
	p.t.Logf("%d processes, %d operations, %d agents", p.made, len(w.Ops), len(stays))
	return w.Check(patience)
}

// explained is the whole history: the operations on record, and those that others were seen to have made. The daemon's
// registry names each spawn that it accepted, also those whose dispatcher did not live to tell; the agents say when they
// ended; and who was in somebody's way must have reserved.
func (p *programs) explained(records []admitted, stays map[string]proof.Stay, began int64) []proof.Op {
	end := mono()
	reservation := map[string]string{}
	for _, rec := range records {
		reservation[rec.ID] = rec.Reservation
	}
	ops := append([]proof.Op(nil), p.ops...)
	reserved, spawned, named := map[string]bool{}, map[string]int64{}, map[string]string{}
	for i := range ops {
		op := &ops[i]
		op.Hidden = op.Hidden || op.Kind == proof.Reserve
		if id, ok := reservation[op.By]; ok {
			op.By = id
		}
		if op.By != "" {
			named[op.By] = op.Tree
		}
		for _, d := range op.Dropped {
			named[d.ID] = d.Tree
		}
		switch {
		case op.Kind == proof.Reserve && op.Result == proof.Done:
			reserved[op.ID] = true
		case op.Kind == proof.Spawn && op.Result == proof.Done:
			spawned[op.ID] = op.Call
		}
	}
	nobody := 1000 // a client of its own, for the drawing
	for _, rec := range records {
		stay, came := stays[rec.ID]
		known, ok := spawned[rec.Reservation]
		if !ok {
			known = began
			until := end
			if came {
				until = stay.From
			}
			if !reserved[rec.Reservation] {
				reserved[rec.Reservation] = true
				ops = append(ops, proof.Op{Kind: proof.Reserve, Tree: rec.Tree, ID: rec.Reservation, Client: nobody, Call: began, Return: until,
					Result: proof.Done, Late: math.MaxInt64, Hidden: true})
			}
			ops = append(ops, proof.Op{Kind: proof.Spawn, Tree: rec.Tree, ID: rec.Reservation, Client: nobody, Call: began, Return: until,
				Result: proof.Done, Pool: poolOf(rec.Slot), Slot: rec.Slot, Hidden: true})
		}
		if came {
			known = stay.To
		}
		ops = append(ops, proof.Op{Kind: proof.Exit, Tree: rec.Tree, ID: rec.Reservation, Client: nobody, Call: known, Return: end,
			Result: proof.Done, Pool: poolOf(rec.Slot)})
	}
	for id, tree := range named {
		if !reserved[id] {
			ops = append(ops,
				proof.Op{Kind: proof.Reserve, Tree: tree, ID: id, Client: nobody, Call: began, Return: end, Late: math.MaxInt64, Hidden: true},
				proof.Op{Kind: proof.Settle, Tree: tree, ID: id, Client: nobody, Call: began, Return: end})
		}
	}
	return ops
}

// registry reads what the daemon remembers.
func (p *programs) registry() ([]admitted, error) {
	data, err := os.ReadFile(filepath.Join(p.dir, "state", "registry.json"))
	if err != nil {
		return nil, err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	var records []admitted
	for key, raw := range doc {
		var rec admitted
		if strings.HasPrefix(key, "$") {
			continue
		}
		if err := json.Unmarshal(raw, &rec); err != nil {
			return nil, err
		}
		records = append(records, rec)
	}
	return records, nil
}

// look sees what stands at the end.
func (p *programs) look() ([]proof.Op, error) {
	entries, err := p.book.Read()
	if err != nil {
		return nil, err
	}
	stands := map[string]string{}
	for _, e := range entries {
		stands[e.Tree] = e.ID
	}
	now := mono()
	var ops []proof.Op
	for _, tree := range p.trees {
		ops = append(ops, proof.Op{Kind: proof.Look, Tree: tree, ID: stands[tree], Call: now, Return: now, Result: proof.Done})
	}
	return ops, nil
}
