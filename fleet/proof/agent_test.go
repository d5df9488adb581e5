package proof_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"fleetdeck/fleet/proof"
)

// runAgent is an agent of the program: it writes down when it came and when it left, and works in between. In mode "fail" it
// ends while its launch still waits for it to be ready.
func runAgent(file, mode string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	stamp := func(what string) error {
		_, err := fmt.Fprintf(f, "%s %s %d %q %q\n", what, os.Getenv("FLEETDECK_MEMBER"), mono(), os.Getenv("FLEETDECK_SLOT"), os.Getenv("FLEETDECK_TREE"))
		return err
	}
	if err := stamp("came"); err != nil {
		return err
	}
	work := time.Duration(20+rand.IntN(150)) * time.Millisecond
	if os.Getenv("FLEETDECK_SLOT") != "" {
		work += 300 * time.Millisecond // long enough for others to find the slot taken
	}
	time.Sleep(work)
	if err := stamp("left"); err != nil {
		return err
	}
	if mode == "fail" {
		return fmt.Errorf("as it is told to")
	}
	return nil
}

// readStays gives what the agents wrote down, by member, once a tree and once more for a slot.
func readStays(file string) (map[string]proof.Stay, []proof.Stay, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	by := map[string]proof.Stay{}
	slots := map[string]string{}
	for in := bufio.NewScanner(f); in.Scan(); {
		var what, member, slot, tree string
		var at int64
		if _, err := fmt.Sscanf(in.Text(), "%s %s %d %q %q", &what, &member, &at, &slot, &tree); err != nil {
			return nil, nil, fmt.Errorf("%s: %q: %w", file, in.Text(), err)
		}
		switch s, again := by[member]; {
		case what == "left":
			s.To = at
			by[member] = s
		case again:
			return nil, nil, fmt.Errorf("member %s was started twice", member)
		default:
			by[member] = proof.Stay{Place: tree, ID: member, From: at, To: at}
			slots[member] = slot
		}
	}
	var all []proof.Stay
	for member, s := range by {
		all = append(all, s)
		if s.Place = "slot " + slots[member]; slots[member] != "" {
			all = append(all, s)
		}
	}
	return by, all, nil
}
