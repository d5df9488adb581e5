package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/cluster"
	"fleetdeck/fleet/plain"
)

func newClusterCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cluster", Short: "a fleet of many hosts: set it up, look at it, move into it", Args: noArgs,
		Long: "cluster is for a fleet whose reservations are in etcd, by [cluster] in fleetdeck.toml.\n" + exitHelp,
		RunE: func(*cobra.Command, []string) error {
			return usagef("fleetdeck cluster needs a command: init, status, import or export")
		},
	}
	cmd.AddCommand(newClusterInitCommand(g), newClusterStatusCommand(g), newClusterImportCommand(g), newClusterExportCommand(g))
	return cmd
}

// openCluster is open for what only a fleet of many hosts has.
func (g *globals) openCluster() (*session, error) {
	s, err := g.open()
	if err != nil {
		return nil, err
	}
	if s.cluster == nil {
		return nil, usagef("this fleet is of one host: write [cluster] into fleetdeck.toml first, with endpoints, fleet and node")
	}
	return s, nil
}

func newClusterInitCommand(g *globals) *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use: "init", Short: "check etcd and write the fleet's slot table", Args: noArgs,
		Long: `init makes sure that etcd answers, that this host may write below the fleet's prefix and that a lease ends when it
should, which takes some seconds, and that no other host goes by this one's name. Then it writes the slot table of this host's
fleetdeck.toml, where the fleet has none. It may be run again at any time, on every host.

Where the fleet has another table the difference is shown, and nothing is changed. With --slots this host's takes its place,
unless a slot that would vanish is held.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.openCluster()
			if err != nil {
				return err
			}
			if err := s.may("spawn")(cmd.Context()); err != nil && replace {
				return err
			}
			return runClusterInit(cmd.Context(), s, replace)
		},
	}
	cmd.Flags().BoolVar(&replace, "slots", false, "replace another slot table by this host's")
	return cmd
}

func runClusterInit(ctx context.Context, s *session, replace bool) error {
	if err := s.cluster.Join(ctx, s.presence()); err != nil {
		return err
	}
	c, err := s.cluster.Init(ctx, s.conf.LockWait, replace, func(c cluster.Checked) {
		if s.quiet {
			return
		}
		for _, r := range c.Removed {
			fmt.Fprintf(s.err, "- %s\n", plain.Clean(r, -1))
		}
		for _, r := range c.Added {
			fmt.Fprintf(s.err, "+ %s\n", plain.Clean(r, -1))
		}
	})
	if err != nil {
		return err
	}
	if s.json {
		return s.printJSON(struct {
			Fleet     string   `json:"fleet"`
			Node      string   `json:"node"`
			Endpoints []string `json:"endpoints"`
			cluster.Checked
		}{s.conf.Cluster.Fleet, s.conf.Cluster.Node, s.conf.Cluster.Endpoints, c})
	}
	s.say("etcd answers and can be written to, below %s", s.cluster.Path())
	if c.LeaseLasted > 0 {
		s.say("a lease of %.0f s lasted %.1f s", c.LeaseAsked, c.LeaseLasted)
	}
	switch c.Table {
	case cluster.TableWritten:
		s.say("wrote the slot table of fleet %s, slots: %d", s.conf.Cluster.Fleet, c.Rows)
	case cluster.TableReplaced:
		s.say("replaced the slot table of fleet %s, slots now: %d. Change fleetdeck.toml on the other hosts, then 'fleetdeck down' and 'fleetdeck up' on each", s.conf.Cluster.Fleet, c.Rows)
	default:
		s.say("the slot table of fleet %s is this host's, slots: %d", s.conf.Cluster.Fleet, c.Rows)
	}
	return nil
}

// clusterReport is `cluster status --json`.
type clusterReport struct {
	fleet.ClusterInfo
	Nodes []nodeReport `json:"nodes"`
	Slots []fleet.Slot `json:"slots"`
	// SlotsDiffer says so where this host has another slot table than the fleet: it is refused then.
	SlotsDiffer string `json:"slots_differ,omitempty"`
}

// nodeReport is a host as the cluster knows it.
type nodeReport struct {
	Name         string `json:"node"`
	State        string `json:"state"` // "present" or "lost"
	Host         string `json:"host,omitempty"`
	Version      string `json:"version,omitempty"`
	Members      int    `json:"members"`
	Trees        int    `json:"trees"` // under a member
	Reservations int    `json:"reservations"`
}

func newClusterStatusCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "etcd's servers, the hosts, and the slots of all of them", Args: noArgs,
		Long: `status asks each etcd server how it is, and shows the hosts of the fleet with what they hold. A host that is lost was not
heard of for 15 s: its members keep their trees and slots. It needs no daemon here.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.openCluster()
			if err != nil {
				return err
			}
			return runClusterStatus(cmd.Context(), s)
		},
	}
}

func runClusterStatus(ctx context.Context, s *session) error {
	r := clusterReport{ClusterInfo: s.cluster.Info(ctx), Nodes: []nodeReport{}, Slots: []fleet.Slot{}}
	asking, cancel := context.WithTimeout(ctx, s.conf.LockWait)
	defer cancel()
	nodes, err := s.cluster.Nodes(asking)
	for _, n := range nodes {
		r.Nodes = append(r.Nodes, reportOf(n))
	}
	if err == nil {
		r.Slots = s.fleetSlots(nodes)
		r.SlotsDiffer = s.slotsDiffer(asking)
	} else if r.Error == "" {
		r.Error = err.Error()
	}
	if s.json {
		if perr := s.printJSON(r); perr != nil {
			return perr
		}
		if err != nil {
			return exitError(exitCode(err))
		}
		return nil
	}
	if perr := s.printCluster(r); perr != nil {
		return perr
	}
	return err
}

func reportOf(n fleet.Node) nodeReport {
	r := nodeReport{Name: n.Name, State: "present", Host: n.Host, Version: n.Version, Members: len(n.Members)}
	if n.Lost {
		r.State = "lost"
	}
	for _, t := range n.Held {
		if t.State == "member" {
			r.Trees++
		} else {
			r.Reservations++
		}
	}
	return r
}

func (s *session) printCluster(r clusterReport) error {
	fmt.Fprintf(s.out, "fleet %s, this host is node %s\n\n", r.Fleet, r.Node)
	t := newTable(s.out, "ETCD", "NAME", "VERSION", "LEADER", "LATENCY", "REVISION", "DATA", "SAYS")
	for _, e := range r.Endpoints {
		leader, latency, revision, data := "", "", "", ""
		if e.Leader {
			leader = "leader"
		}
		if e.Version != "" {
			latency, revision, data = fmt.Sprintf("%.1f ms", e.LatencyMS), fmt.Sprint(e.Revision), fmt.Sprintf("%.1f MB", float64(e.Bytes)/1e6)
		}
		t.row(e.URL, e.Name, e.Version, leader, latency, revision, data, e.Trouble())
	}
	if err := t.flush(); err != nil || len(r.Nodes) == 0 && len(r.Slots) == 0 {
		return err
	}
	fmt.Fprintln(s.out)
	t = newTable(s.out, "NODE", "STATE", "HOST", "VERSION", "MEMBERS", "TREES", "RESERVATIONS")
	for _, n := range r.Nodes {
		t.row(n.Name, n.State, n.Host, n.Version, fmt.Sprint(n.Members), fmt.Sprint(n.Trees), fmt.Sprint(n.Reservations))
	}
	if err := t.flush(); err != nil || len(r.Slots) == 0 {
		return err
	}
	fmt.Fprintln(s.out)
	s.warnOfSlots(r.SlotsDiffer)
	return s.printSlots(r.Slots, time.Now())
}
