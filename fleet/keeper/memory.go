package keeper

import (
	"context"
	"encoding/json"
	"fmt"

	"fleetdeck/lockfile"
)

// store is where a keeper's memory is durable.
type store interface {
	save(ctx context.Context, tree string, raw []byte) error
	close() error
}

// fileMemory is keeper.json, whose lock is held as long as its keeper works: nobody else writes there.
type fileMemory struct {
	held *lockfile.Held
	doc  *lockfile.Document
}

func (f *fileMemory) save(_ context.Context, tree string, raw []byte) error {
	if err := lockfile.CheckKey(tree); err != nil {
		return fmt.Errorf("remember %q: %w", tree, err)
	}
	was, had := f.doc.Get(tree)
	f.doc.Set(tree, raw)
	if err := replace(f.held, f.doc, "write the keeper's memory"); err != nil {
		if f.doc.Delete(tree); had {
			f.doc.Set(tree, was)
		}
		return err
	}
	return nil
}

func (f *fileMemory) close() error { return f.held.Unlock() }

// readMemory reads keeper.json.
func readMemory(path string, data []byte, err error) (*lockfile.Document, map[string]memory, error) {
	doc, err := parse(path, stateFormat, data, err)
	if err != nil {
		return nil, nil, err
	}
	staff := map[string]memory{}
	for tree, raw := range doc.All() {
		var m memory
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, nil, damaged(path, fmt.Errorf("entry %q: %w", tree, err))
		}
		staff[tree] = m
	}
	return doc, staff, nil
}

// remember makes m durable as what is known of tree's entry. It is not remembered before it is.
func (k *Keeper) remember(ctx context.Context, tree string, m memory) error {
	old, known := k.staff[tree]
	if known && old == m {
		return nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("remember %s: %w", tree, err)
	}
	if err := k.memory.save(ctx, tree, raw); err != nil {
		return err
	}
	k.staff[tree] = m
	return nil
}
