package book

import (
	"context"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/mutant"
	"fleetdeck/lockfile"
)

// Plan says what a prune would drop by the file as it stands and the given roster. It takes no lock and writes nothing.
func (b *Book) Plan(roster fleet.Roster) (fleet.PruneReport, error) {
	entries, err := b.Read()
	if err != nil {
		return fleet.PruneReport{}, err
	}
	now := b.now()
	report := fleet.PruneReport{Pruned: []fleet.Pruned{}, Lock: "free"}
	for _, e := range entries {
		if v, ok := fleet.Judge(e, roster, now); ok {
			report.Pruned = append(report.Pruned, fleet.Pruned{Tree: e.Tree, ID: e.ID, Reason: v})
		} else {
			report.Kept++
		}
	}
	return report, nil
}

// Prune drops the entries that may be dropped by what it reads inside the lock: those whose worker the roster lists, and those
// whose grace is over. The roster only ever adds reasons; it is never turned into what is written back. A prune that
// finds nothing to drop writes nothing.
//
// If the lock stays busy past the window the file is left alone: the report says "busy" and what the unpruned file holds,
// beside an error that is a [fleet.CodeLockBusy] refusal.
func (b *Book) Prune(ctx context.Context, window time.Duration, roster fleet.Roster) (fleet.PruneReport, error) {
	var early *lockfile.Document
	if mutant.PruneWithoutLock {
		early, _ = b.parse(b.file.Read())
	}
	held, err := b.lock(ctx, window)
	if err != nil {
		report := fleet.PruneReport{Pruned: []fleet.Pruned{}, Lock: "busy"}
		if entries, rerr := b.Read(); rerr == nil {
			report.Kept = len(entries)
		}
		return report, err
	}
	defer held.Unlock()

	report := fleet.PruneReport{Pruned: []fleet.Pruned{}, Lock: "taken"}
	doc, err := b.readLocked(held)
	if err != nil {
		return report, err
	}
	if mutant.PruneWithoutLock && early != nil {
		doc = early
	}
	now := b.now()
	for tree, raw := range doc.All() {
		e, err := decode(tree, raw)
		if err != nil {
			return fleet.PruneReport{Pruned: []fleet.Pruned{}, Lock: "taken"}, b.corrupt(err)
		}
		if v, ok := fleet.Judge(e, roster, now); ok {
			report.Pruned = append(report.Pruned, fleet.Pruned{Tree: tree, ID: e.ID, Reason: v})
		} else {
			report.Kept++
		}
	}
	if len(report.Pruned) == 0 {
		return report, nil
	}
	for _, p := range report.Pruned {
		doc.Delete(p.Tree)
	}
	if err := b.write(held, doc); err != nil {
		return fleet.PruneReport{Pruned: []fleet.Pruned{}, Lock: "taken"}, err
	}
	return report, nil
}
