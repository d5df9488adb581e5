// Package slots is the slot pool: the configured places for members of a limited role.
//
// A slot is reserved before its agent is launched, bound once the agent is listed, and released on every other ending. All
// three go by reservation id and may be repeated: a late or doubled call changes nothing.
package slots

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"fleetdeck/fleet"
	"fleetdeck/fleet/mutant"
)

// ErrNotReserved means that no slot is held under this reservation, so none can be bound.
var ErrNotReserved = errors.New("no slot is reserved under this id")

// Pool is the slots of one fleet. It is safe for use by several goroutines.
//
//	        Reserve             Bind
//	free ────────────► reserved ─────► bound
//	  ▲                   │              │
//	  └───────────────────┴──────────────┘
//	                 Release
type Pool struct {
	now func() fleet.Instant

	mu    sync.Mutex // guards slots
	slots []fleet.Slot
	// configured is how many of them are: the others, restored for a member, go when they are released.
	configured int
}

// New makes a pool of free slots. Only name, role and profile of each are taken.
func New(configured []fleet.Slot, now func() fleet.Instant) *Pool {
	p := &Pool{now: now, configured: len(configured)}
	for _, s := range configured {
		p.slots = append(p.slots, fleet.Slot{Name: s.Name, Role: s.Role, Profile: s.Profile, State: fleet.SlotFree})
	}
	return p
}

// Request asks for a slot.
type Request struct {
	Role        fleet.Role
	Profile     string
	Reservation string
	Member      string
	Tree        string
	// Slot is the one that is meant; empty means any.
	Slot string
}

// Reserve takes a free slot of the role that carries the profile. Asked again for one reservation it gives the same slot.
func (p *Pool) Reserve(req Request) (fleet.Slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var free *fleet.Slot
	var takenBy []string
	configured := false
	for i := range p.slots {
		s := &p.slots[i]
		if s.Reservation == req.Reservation && s.State != fleet.SlotFree {
			return *s, nil
		}
		if s.Role != req.Role || s.Profile != req.Profile {
			continue
		}
		configured = true
		if req.Slot != "" && s.Name != req.Slot {
			continue
		}
		if s.State != fleet.SlotFree {
			takenBy = append(takenBy, fmt.Sprintf("%s by %s in %s", s.Name, s.Member, s.Tree))
		} else if free == nil {
			free = s
		}
	}
	switch {
	case free != nil && mutant.SlotCheckedOnly:
		return *free, nil
	case free != nil:
		free.State, free.Reservation, free.Member = fleet.SlotReserved, req.Reservation, req.Member
		free.Tree, free.Since = req.Tree, p.now().Wall.UTC()
		return *free, nil
	case !configured:
		return fleet.Slot{}, fleet.Refuse(fleet.CodeSlotUnconfigured, "no slot of role %s carries profile %s", req.Role, req.Profile).
			WithHint("add a [[slots]] entry for it to fleetdeck.toml, or choose another profile")
	}
	return fleet.Slot{}, fleet.Refuse(fleet.CodeSlotUnavailable, "every %s slot on profile %s is taken: %s",
		req.Role, req.Profile, strings.Join(takenBy, ", ")).
		WithHint("stop one of them, or wait until one ends")
}

// Bind makes the slot reserved under id the place of its member.
func (p *Pool) Bind(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.find(id)
	if i < 0 {
		return fmt.Errorf("bind %s: %w", id, ErrNotReserved)
	}
	if s := &p.slots[i]; s.State != fleet.SlotBound {
		s.State, s.Since = fleet.SlotBound, p.now().Wall.UTC()
	}
	return nil
}

// Release frees the slot held under id. Releasing what nobody holds is no error.
func (p *Pool) Release(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch i := p.find(id); {
	case i >= p.configured:
		p.slots = slices.Delete(p.slots, i, i+1)
	case i >= 0:
		s := &p.slots[i]
		*s = fleet.Slot{Name: s.Name, Role: s.Role, Profile: s.Profile, State: fleet.SlotFree}
	}
}

// Restore puts back what held a slot before a restart. A slot that is configured no more is kept, as what it was, until
// its holder ends; one that another holds already is an error.
func (p *Pool) Restore(held fleet.Slot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.slots, func(s fleet.Slot) bool { return s.Name == held.Name })
	switch {
	case i < 0:
		p.slots = append(p.slots, held)
	case p.slots[i].State != fleet.SlotFree && p.slots[i].Reservation != held.Reservation:
		return fmt.Errorf("slot %s is held twice: by %s and by %s", held.Name, p.slots[i].Member, held.Member)
	default:
		held.Role, held.Profile = p.slots[i].Role, p.slots[i].Profile
		p.slots[i] = held
	}
	return nil
}

// List gives all slots as they stand.
func (p *Pool) List() []fleet.Slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.slots)
}

// find is the index of the slot held under id, or -1. p.mu is held.
func (p *Pool) find(id string) int {
	return slices.IndexFunc(p.slots, func(s fleet.Slot) bool { return s.State != fleet.SlotFree && s.Reservation == id })
}
