package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/cluster"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/keeper"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/plain"
)

// Who keeps what in a fleet of many hosts:
//
//   - [[staff]] is kept by one keeper in the fleet, which etcd elects among those that run. Each brings what its own configuration
//     asks for; the elected one sees to all of it, by orders to the hosts that the trees are on.
//   - A queue is its host's. A task in it is for a tree of that host, so that no two keepers could ever send it.
//
// Each order names the keeper's term and the host that asks, and both are compared when it is written and when its tree is reserved.

// daemonOf is this host's daemon, which knows of all that the keeper of this host asks for.
type daemonOf struct{ *client.Client }

func (d daemonOf) Reservation(ctx context.Context, _, id string) (api.LaunchStatus, error) {
	return d.Client.Reservation(ctx, id)
}

// fateHere answers another host's question for a reservation.
func (s *session) fateHere(ctx context.Context, id string) (json.RawMessage, error) {
	status, err := s.client.Reservation(ctx, id)
	if err != nil {
		return nil, err
	}
	return json.Marshal(status)
}

// allHosts is a fleet of many hosts as its elected keeper works with it.
type allHosts struct {
	s       *session
	program string
	fences  map[string][]cluster.Fence // of each tree that is wanted
}

// Read gives what is reserved, by NODE:PATH. That it stands is etcd's word, whatever the clocks of the hosts say.
func (a *allHosts) Read() ([]fleet.Entry, error) {
	nodes, err := a.nodes(context.Background())
	if err != nil {
		return nil, err
	}
	var entries []fleet.Entry
	for _, n := range nodes {
		for _, h := range n.Held {
			if h.State == "reserved" {
				entries = append(entries, fleet.Entry{Tree: n.Name + ":" + h.Tree, Reservation: fleet.Reservation{
					ID: h.ID, Role: h.Role, Profile: h.Profile, Slot: h.Slot, ReservedAt: h.ReservedAt, ExpiresAt: process.Now().Wall.Add(a.s.conf.Grace),
				}})
			}
		}
	}
	return entries, nil
}

func (a *allHosts) nodes(ctx context.Context) ([]fleet.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, a.s.conf.LockWait)
	defer cancel()
	return a.s.cluster.Nodes(ctx)
}

// Prune has nothing to drop.
func (a *allHosts) Prune(context.Context, time.Duration, fleet.Roster) (fleet.PruneReport, error) {
	return fleet.PruneReport{Pruned: []fleet.Pruned{}, Lock: "free"}, nil
}

// Roster gives who is in the trees of all hosts. Who holds a tree is there, listed by its host or not: also one of a host that is lost.
func (a *allHosts) Roster(ctx context.Context) (r fleet.Roster, err error) {
	nodes, err := a.nodes(ctx)
	if err != nil {
		return r, err
	}
	for _, n := range nodes {
		listed := map[string]bool{}
		for _, m := range n.Members {
			m.Tree = n.Name + ":" + m.Tree
			r.Members = append(r.Members, m)
			listed[m.Reservation] = true
		}
		for _, h := range n.Held {
			tree := n.Name + ":" + h.Tree
			switch {
			case h.State == "launching":
				r.Launches = append(r.Launches, fleet.Launch{Tree: tree, Reservation: h.ID, Role: h.Role, Profile: h.Profile})
			case h.State == "member" && !listed[h.ID]:
				r.Members = append(r.Members, fleet.Member{Tree: tree, Reservation: h.ID, State: fleet.StateUnknown, StartedAt: h.ReservedAt})
			}
		}
	}
	return r, nil
}

// Reservation asks the host that tree is on.
func (a *allHosts) Reservation(ctx context.Context, tree, id string) (status api.LaunchStatus, err error) {
	node, _ := splitNode(tree)
	raw, err := a.s.cluster.Fate(ctx, node, id)
	if errors.Is(err, cluster.ErrStands) {
		return status, fmt.Errorf("%w: %w", keeper.ErrPending, err)
	}
	if err != nil {
		return status, err
	}
	if err := json.Unmarshal(raw, &status); err != nil {
		return status, fmt.Errorf("the answer of node %s is damaged: %w", node, err)
	}
	return status, nil
}

// Dispatch has the host that the tree is on carry order out, while the term stands and the tree is wanted.
func (a *allHosts) Dispatch(ctx context.Context, order fleet.Order) (fleet.Outcome, error) {
	fences := a.fences[order.Tree]
	node, path := splitNode(order.Tree)
	order.Tree = path
	return a.s.cluster.Send(ctx, a.s.conf.LockWait, node, cluster.Order{Order: order, From: a.s.dispatcher(a.program).Self, Fences: fences})
}

// candidate is what this host brings to the election.
func (s *session) candidate() cluster.Candidate {
	now := process.Now()
	c := cluster.Candidate{Node: s.conf.Cluster.Node, Host: now.Host, Pid: os.Getpid(), Staff: []cluster.Staff{}}
	for _, want := range s.conf.Staff {
		c.Staff = append(c.Staff, cluster.Staff(want))
	}
	return c
}

// elected makes the keeper of the fleet for a term.
func (s *session) elected(term *cluster.Term, program string, say func(level, kind, tree, message string)) *keeper.Keeper {
	all := &allHosts{s: s, program: program}
	wanted := func(ctx context.Context) ([]config.Staff, error) {
		wanted, err := s.cluster.Wanted(ctx)
		all.fences = map[string][]cluster.Fence{}
		var staff []config.Staff
		for _, w := range wanted {
			all.fences[w.Tree] = []cluster.Fence{term.Fence, w.By}
			staff = append(staff, config.Staff(w.Staff))
		}
		return staff, err
	}
	return keeper.Elected(keeper.Options{
		Config: s.conf, Book: all, Daemon: all, Dispatcher: all, Now: process.Now, Say: say,
	}, wanted, term)
}

// keepFleet stands for election, and keeps the fleet whenever it is elected, until ctx ends.
func (s *session) keepFleet(ctx context.Context, program string, say func(level, kind, tree, message string)) {
	told := ""
	for ctx.Err() == nil {
		term, err := s.cluster.Campaign(ctx, s.candidate())
		if err != nil {
			if ctx.Err() == nil && err.Error() != told {
				told = err.Error()
				say("warn", "keeper_blind", "", told)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		told = ""
		say("info", "keeper_elected", "", "the fleet's keeper is node "+s.conf.Cluster.Node)
		office, cancel := term.Context(ctx)
		if err := s.elected(term, program, say).Run(office); err != nil {
			say("warn", "keeper_blind", "", err.Error())
		}
		cancel()
		term.End(ctx)
		if ctx.Err() == nil {
			say("warn", "keeper_unseated", "", "the term of node "+s.conf.Cluster.Node+" as the fleet's keeper is over")
		}
	}
}

// keepFleetOnce makes one pass as the fleet's keeper, if this host can be elected at once.
func (s *session) keepFleetOnce(ctx context.Context, say func(level, kind, tree, message string)) (keeper.Report, error) {
	standing, cancel := context.WithTimeout(ctx, electWait)
	defer cancel()
	term, err := s.cluster.Campaign(standing, s.candidate())
	if err != nil {
		if c, cerr := s.cluster.Elected(ctx); cerr == nil && c != nil && standing.Err() != nil {
			err = &keptElsewhereError{*c}
		}
		return keeper.Report{}, err
	}
	defer term.End(ctx)
	return s.elected(term, "fleetdeck keep", say).Pass(ctx)
}

// electWait is how long `keep --once` stands for election.
const electWait = 2 * time.Second

// keptElsewhereError says who keeps the fleet.
type keptElsewhereError struct{ by cluster.Candidate }

func (e *keptElsewhereError) Error() string {
	return fmt.Sprintf("the fleet's keeper is node %s (pid %d on %s), which sees to [[staff]]", e.by.Node, e.by.Pid, e.by.Host)
}

// keeperSeat is who keeps a fleet of many hosts.
type keeperSeat struct {
	Node string `json:"node"`
	Host string `json:"host"`
	Pid  int    `json:"pid"`
}

func (k *keeperSeat) String() string {
	if k == nil {
		return "none: no host's daemon runs a keeper, or one is being elected"
	}
	return fmt.Sprintf("node %s, pid %d on %s", plain.Clean(k.Node, 80), k.Pid, plain.Clean(k.Host, 80))
}

// seat says who keeps the fleet: nil where it has one host, there is none, or etcd does not say.
func (s *session) seat(ctx context.Context) (*keeperSeat, error) {
	if s.cluster == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, electWait)
	defer cancel()
	c, err := s.cluster.Elected(ctx)
	if err != nil || c == nil {
		return nil, err
	}
	return &keeperSeat{c.Node, c.Host, c.Pid}, nil
}

// fleetRows say how what the fleet's keeper keeps stands.
func (s *session) fleetRows(ctx context.Context) ([]keeper.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, s.conf.LockWait)
	defer cancel()
	wanted, err := s.cluster.Wanted(ctx)
	if err != nil {
		return nil, err
	}
	memories, err := s.cluster.Memories(ctx)
	if err != nil {
		return nil, err
	}
	var staff []config.Staff
	for _, w := range wanted {
		staff = append(staff, config.Staff(w.Staff))
	}
	return keeper.Rows(staff, memories, s.conf, process.Now())
}

// resetFleet lets what the fleet's keeper keeps in the tree called name begin anew.
func (s *session) resetFleet(ctx context.Context, name string) (bool, error) {
	if filepath.IsAbs(name) {
		name = s.conf.Cluster.Node + ":" + name
	}
	ctx, cancel := context.WithTimeout(ctx, s.conf.LockWait)
	defer cancel()
	return s.cluster.Amend(ctx, name, keeper.Anew)
}

// splitNode parts NODE:PATH.
func splitNode(tree string) (node, path string) {
	node, path, _ = strings.Cut(tree, ":")
	return node, path
}
