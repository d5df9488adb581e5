package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"fleetdeck/fleet/cluster"
	"fleetdeck/fleet/plain"
)

// lostOptions are what a release of a lost host goes by.
type lostOptions struct {
	node   string
	yes    bool
	dryRun bool
}

func (o *lostOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.node, "lost", "", "everything that the lost `node` holds, and its members")
	f.BoolVar(&o.yes, "yes", false, "with --lost: do not ask")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "with --lost: only say what would go")
}

// args are those of release: a tree, or none where a node is named.
func (o *lostOptions) args(cmd *cobra.Command, args []string) error {
	if !cmd.Flags().Changed("lost") {
		if o.yes || o.dryRun {
			return usagef("--yes and --dry-run are for release --lost NODE")
		}
		return exactly("TREE")(cmd, args)
	}
	if o.node == "" || len(args) > 0 || cmd.Flags().Changed("id") {
		return usagef("release --lost names a node, and nothing else")
	}
	return nil
}

// lostReport is `release --lost --json`.
type lostReport struct {
	Outcome string       `json:"outcome"` // "released" or "would_release"
	Node    string       `json:"node"`
	Members []lostMember `json:"members"`
	Trees   []lostTree   `json:"trees"`
}

type lostMember struct {
	Member string `json:"member"`
	Tree   string `json:"tree"`
	Role   string `json:"role"`
	Slot   string `json:"slot,omitempty"`
}

type lostTree struct {
	Tree        string `json:"tree"`
	State       string `json:"state"`
	Slot        string `json:"slot,omitempty"`
	Reservation string `json:"reservation"`
	Member      string `json:"member,omitempty"`
}

func newLostReport(loss cluster.Loss) lostReport {
	r := lostReport{Outcome: "would_release", Node: loss.Name, Members: []lostMember{}, Trees: []lostTree{}}
	for _, m := range loss.Members {
		r.Members = append(r.Members, lostMember{m.ID, m.Tree, m.Role, m.Slot})
	}
	for _, t := range loss.Held {
		r.Trees = append(r.Trees, lostTree{t.Tree, t.State, t.Slot, t.ID, t.Member})
	}
	return r
}

func runReleaseLost(ctx context.Context, s *session, o lostOptions) error {
	if s.cluster == nil {
		return usagef("--lost is for a fleet of many hosts: this one has no [cluster] in fleetdeck.toml")
	}
	if err := s.insideAgent(); err != nil {
		return usagef("an agent cannot release a lost node")
	}
	loss, err := s.cluster.Lost(ctx, s.conf.LockWait, o.node)
	if err != nil {
		return err
	}
	r := newLostReport(loss)
	if !o.dryRun {
		if !o.yes {
			if err := s.askForNode(ctx, r); err != nil {
				return err
			}
		}
		if err := s.cluster.ReleaseLost(ctx, s.conf.LockWait, loss); err != nil {
			return err
		}
		r.Outcome = "released"
	}
	if s.json {
		return s.printJSON(r)
	}
	verb := "would release"
	if !o.dryRun {
		verb = "released"
	}
	for _, line := range r.lines() {
		s.say("%s: %s", verb, line)
	}
	s.say("%d trees and %d members of node %s: %s", len(r.Trees), len(r.Members), r.Node, verb)
	return nil
}

// lines say what goes, for people.
func (r lostReport) lines() (lines []string) {
	for _, t := range r.Trees {
		slot, id := "", t.Reservation
		if t.Member != "" {
			id = t.Member
		}
		if t.Slot != "" {
			slot = ", slot " + t.Slot
		}
		lines = append(lines, fmt.Sprintf("%s:%s (%s %s%s)", r.Node, t.Tree, t.State, id, slot))
	}
	return lines
}

// askForNode has the operator type the node's name: whether its agents still run nobody here can see.
func (s *session) askForNode(ctx context.Context, r lostReport) error {
	if !isTerminal(s.in) {
		return usagef("nobody is here to be asked: give --yes with --lost %s, after a look with --dry-run", r.Node)
	}
	for _, line := range r.lines() {
		fmt.Fprintf(s.err, "  %s\n", plain.Clean(line, -1))
	}
	fmt.Fprintf(s.err, "Nobody has heard of node %s. If its agents still run, others can be sent beside them from now on;\nwhen it comes back, those whose place is taken by then are ended.\nType the node's name to release all of this: ", plain.Clean(r.Node, -1))
	typed := make(chan bool, 1)
	go func() {
		line, err := bufio.NewReader(s.in).ReadString('\n')
		typed <- err == nil && strings.TrimSpace(line) == r.Node
	}()
	select {
	case <-ctx.Done(): // ctrl+c
		fmt.Fprintln(s.err)
		return usagef("nobody typed %s: nothing was released", r.Node)
	case ok := <-typed:
		if !ok {
			return usagef("that was not %s: nothing was released", r.Node)
		}
	}
	return nil
}
