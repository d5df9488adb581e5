package proof

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Window is a stretch of history at whose beginning and end nothing is under way. Windows are checked one by one, so
// that a history of any length needs the memory of one.
type Window struct {
	// Trees and Pools are what stood at its beginning. All that the operations are about are named.
	Trees map[string]Tree
	Pools map[string]Pool
	// Slots names the slots of each pool.
	Slots map[string][]string
	Ops   []Op
}

// Violation is a history that no order explains.
type Violation struct {
	// Subject is the tree or pool.
	Subject string
	Ops     int

	model porcupine.Model
	info  porcupine.LinearizationInfo
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s: no order of its %d operations gives these answers", v.Subject, v.Ops)
}

// Draw writes the history as a page for a browser: the operations by client and time, and how far an order was found.
func (v *Violation) Draw(path string) error { return porcupine.VisualizePath(v.model, v.info, path) }

// ErrUndecided means that no order was found within the time given, and none excluded.
type ErrUndecided struct{ Subject string }

func (e *ErrUndecided) Error() string { return e.Subject + ": not decided in time" }

// Check looks for an order that explains the window, for each tree and pool by itself, and gives each at most limit. The
// error is a [*Violation] or an [*ErrUndecided].
func (w Window) Check(limit time.Duration) error {
	for _, name := range slices.Sorted(maps.Keys(w.Trees)) {
		var ops []Op
		for _, op := range w.Ops {
			switch {
			case op.Kind == Prune:
				ops = append(ops, on(op, name))
			case op.Tree == name && (op.Kind != Look || op.Pool == ""):
				ops = append(ops, op)
			}
		}
		if err := decide(name, w.Trees[name], Tree.Step, Tree.String, ops, limit); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Pools)) {
		slots := w.Slots[name]
		var ops []Op
		for _, op := range w.Ops {
			if op.Pool == name {
				ops = append(ops, op)
			}
		}
		step := func(s Pool, op Op) (Pool, bool) { return s.step(slots, op) }
		describe := func(s Pool) string { return s.describe(slots) }
		if err := decide("pool "+name, w.Pools[name], step, describe, ops, limit); err != nil {
			return err
		}
	}
	return nil
}

// on is the part of a prune that is about one tree.
func on(prune Op, tree string) Op {
	prune.Tree = tree
	for _, p := range prune.Dropped {
		if p.Tree == tree {
			prune.By = p.ID
		}
	}
	prune.Dropped = nil
	return prune
}

var seed = maphash.MakeSeed()

// decide asks porcupine about one subject.
func decide[S comparable](subject string, first S, step func(S, Op) (S, bool), describe func(S) string, ops []Op, limit time.Duration) error {
	model := porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := step(state.(S), input.(Op))
			return ok, next
		},
		Hash:              func(state any) uint64 { return maphash.Comparable(seed, state.(S)) },
		DescribeOperation: func(input, _ any) string { return input.(Op).String() },
		DescribeState:     func(state any) string { return describe(state.(S)) },
	}
	history := make([]porcupine.Operation, 0, len(ops))
	for _, op := range ops {
		end := op.Return
		if op.Result == Unknown {
			end = math.MaxInt64
		}
		history = append(history, porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: end})
	}
	switch porcupine.CheckOperationsTimeout(model, history, limit) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return &ErrUndecided{subject}
	}
	_, info := porcupine.CheckOperationsVerbose(model, history, limit)
	return &Violation{Subject: subject, Ops: len(ops), model: model, info: info}
}

// Stay is the time that an agent says it worked: in a tree, and on a slot where it has one. Of one that was killed To is the last moment that
// it is known to have worked.
type Stay struct {
	Place, ID string
	From, To  int64
}

// Alone checks that no two agents worked in one place at a time.
func Alone(stays []Stay) error {
	stays = slices.Clone(stays)
	slices.SortFunc(stays, func(a, b Stay) int { return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.From, b.From)) })
	var last Stay // the one of this place that stayed longest so far
	for _, s := range stays {
		if s.Place == last.Place && s.From < last.To && s.ID != last.ID {
			return fmt.Errorf("%s: %s came at %d, and %s stayed from %d to %d", s.Place, s.ID, s.From, last.ID, last.From, last.To)
		}
		if s.Place != last.Place || s.To > last.To {
			last = s
		}
	}
	return nil
}
