package book

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/lockfile"
)

// Repaired says what a repair did.
type Repaired struct {
	// Aside is where the corrupt file lies now; empty means that there was nothing to repair.
	Aside string `json:"aside"`
	// Rebuilt counts the entries made anew from the daemon's launches.
	Rebuilt int `json:"rebuilt"`
}

// Repair sets a corrupt file aside, byte for byte, and writes one with an entry for each launch of the roster. A dispatch
// whose reservation is lost that way is refused by the daemon later on, so nothing is staffed twice. A file of a newer format is
// not corrupt, and is left alone.
func (b *Book) Repair(ctx context.Context, window time.Duration, roster fleet.Roster) (Repaired, error) {
	held, err := b.lock(ctx, window)
	if err != nil {
		return Repaired{}, err
	}
	defer held.Unlock()

	data, err := held.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return Repaired{}, nil
	}
	if err == nil {
		err = b.check(data)
		if err == nil {
			return Repaired{}, nil
		}
		if errors.Is(err, lockfile.ErrFormat) {
			return Repaired{}, b.corrupt(err)
		}
	}
	aside, err := b.setAside()
	if err != nil {
		return Repaired{}, fmt.Errorf("set the reservation file aside: %w", err)
	}
	doc := lockfile.NewDocument(Format)
	for _, l := range roster.Launches {
		for _, t := range append([]fleet.Tree{{Path: l.Tree, File: l.File}}, l.Also...) {
			raw, err := json.Marshal(fleet.Reservation{
				ID: l.Reservation, Role: l.Role, Profile: l.Profile, Slot: l.Slot, File: t.File,
				ReservedAt: l.AcceptedAt, ExpiresAt: l.Deadline.Wall, Boot: l.Deadline.Boot,
			})
			if err != nil {
				return Repaired{}, fmt.Errorf("rebuild the entry of %s: %w", t.Path, err)
			}
			doc.Set(t.Path, raw)
		}
	}
	if err := b.write(held, doc); err != nil {
		return Repaired{}, err
	}
	return Repaired{Aside: aside, Rebuilt: doc.Len()}, nil
}

// check reports whether data is a file that an admission would accept.
func (b *Book) check(data []byte) error {
	doc, err := lockfile.Parse(data, Format)
	if err != nil {
		return err
	}
	for tree, raw := range doc.All() {
		if _, err := decode(tree, raw); err != nil {
			return err
		}
	}
	return nil
}

// setAside gives the file a second name, so that the path always names a whole file, the old one or the new one. What
// cannot have two names is renamed.
func (b *Book) setAside() (string, error) {
	stamp := b.now().Wall.UTC().Format("20060102T150405")
	for i := range 100 {
		aside := fmt.Sprintf("%s.corrupt-%s-%d", b.Path(), stamp, i)
		err := os.Link(b.Path(), aside)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			if _, serr := os.Lstat(aside); serr == nil {
				continue
			}
			err = os.Rename(b.Path(), aside)
		}
		return aside, err
	}
	return "", fmt.Errorf("too many files set aside beside %s", b.Path())
}
