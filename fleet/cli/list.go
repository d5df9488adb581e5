package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/plain"
)

// statusReport is `status --json`.
type statusReport struct {
	Daemon       fleet.DaemonInfo `json:"daemon"`
	Lock         fleet.LockInfo   `json:"lock"`
	Trees        int              `json:"trees"`
	Members      int              `json:"members"`
	Launches     int              `json:"launches"`
	Reservations int              `json:"reservations"`
	Slots        slotCounts       `json:"slots"`
	File         fleet.FileInfo   `json:"file"`
	State        string           `json:"state"`
	// Keeper is who keeps a fleet of many hosts.
	Keeper *keeperSeat `json:"keeper,omitempty"`

	keeperUnknown error
	manyHosts     bool
}

type slotCounts struct {
	Free     int `json:"free"`
	Reserved int `json:"reserved"`
	Bound    int `json:"bound"`
	Unsure   int `json:"unsure,omitempty"` // while the cluster does not say
}

func newStatusCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "daemon, lock, and counts", Args: noArgs,
		Long: `status says whether the daemon answers, who holds the admission lock, and how many trees, members, launches,
reservations and slots there are. It works without a daemon, and takes no lock.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), g) },
	}
}

func runStatus(ctx context.Context, g *globals) error {
	s, err := g.open()
	if err != nil {
		return err
	}
	snap := s.sources().Outline(ctx)
	r := statusReport{
		Daemon: snap.Daemon, Lock: snap.Lock, Trees: len(snap.Trees), Launches: len(snap.Launches),
		Reservations: len(snap.Reservations), File: snap.File, State: s.dir.Path,
	}
	for _, m := range snap.Members {
		if m.Alive() {
			r.Members++
		}
	}
	for _, sl := range s.slotRows(ctx, snap.Slots) {
		switch sl.State {
		case fleet.SlotFree:
			r.Slots.Free++
		case fleet.SlotReserved:
			r.Slots.Reserved++
		case slotUnsure:
			r.Slots.Unsure++
		default:
			r.Slots.Bound++
		}
	}
	r.Keeper, r.keeperUnknown = s.seat(ctx)
	r.manyHosts = s.cluster != nil
	if g.json {
		return g.printJSON(r)
	}
	printStatus(g.out, r, time.Now())
	return nil
}

func printStatus(w io.Writer, r statusReport, now time.Time) {
	if r.Daemon.Running {
		fmt.Fprintf(w, "daemon        running, pid %d, up %s, version %s\n", r.Daemon.Pid, age(r.Daemon.Since, now), r.Daemon.Version)
	} else {
		fmt.Fprintf(w, "daemon        not running (start it with 'fleetdeck up')\n")
	}
	fmt.Fprintf(w, "socket        %s\n", plain.Clean(r.Daemon.Socket, -1))
	if h := r.Lock.Holder; h != nil {
		fmt.Fprintf(w, "lock          held by pid %d (%s)\n", h.Pid, plain.Clean(h.Program, 80))
	} else {
		fmt.Fprintf(w, "lock          free\n")
	}
	if r.File.Error != "" {
		fmt.Fprintf(w, "file          UNUSABLE: %s\n", plain.Clean(r.File.Error, 200))
	} else {
		fmt.Fprintf(w, "file          %s\n", plain.Clean(r.File.Path, -1))
	}
	if r.keeperUnknown != nil {
		fmt.Fprintf(w, "keeper        unknown: %s\n", plain.Clean(r.keeperUnknown.Error(), 200))
	} else if r.manyHosts {
		fmt.Fprintf(w, "keeper        %s\n", r.Keeper)
	}
	fmt.Fprintf(w, "trees         %d\n", r.Trees)
	if r.Daemon.Running {
		fmt.Fprintf(w, "members       %d\n", r.Members)
		fmt.Fprintf(w, "launches      %d\n", r.Launches)
	} else {
		fmt.Fprintf(w, "members       unknown without the daemon\n")
	}
	fmt.Fprintf(w, "reservations  %d\n", r.Reservations)
	unsure := ""
	if r.Slots.Unsure > 0 {
		unsure = fmt.Sprintf(", %d unsure", r.Slots.Unsure)
	}
	fmt.Fprintf(w, "slots         %d free, %d reserved, %d bound%s\n", r.Slots.Free, r.Slots.Reserved, r.Slots.Bound, unsure)
}

func newTreesCommand(g *globals) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "trees", Short: "every known tree with its occupancy", Args: noArgs,
		Long: `trees lists every known tree: configured, found below a root, reserved or staffed. Its occupancy is free, reserved
(with the seconds left), occupied (by a member) or foreign. Without a daemon nobody knows the members: that is an error.

In a fleet of many hosts --all adds the trees of the others that are not free, and names all of them NODE:PATH.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			snap := s.sources().Once(cmd.Context())
			if err := usable(snap, true); err != nil {
				return err
			}
			rows, err := s.treeRows(cmd.Context(), snap.Trees, all)
			if err != nil {
				return err
			}
			if g.json {
				return g.printJSON(rows)
			}
			t := newTable(g.out, "TREE", "OCCUPANCY", "LEFT", "MEMBER", "BRANCH", "DIRTY")
			for _, r := range rows {
				left, dirty := "", ""
				if r.Occupancy == fleet.Reserved {
					left = duration(time.Duration(r.RemainingS * float64(time.Second)))
				}
				if r.Dirty {
					dirty = "dirty"
				}
				if r.Missing {
					dirty = "missing"
				}
				t.row(placed(r.Node, r.Tree), string(r.Occupancy), left, r.Member, r.Branch, dirty)
			}
			return t.flush()
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "those of the other hosts too")
	return cmd
}

// usable is the error of a snapshot that does not show the whole truth.
func usable(snap fleet.Snapshot, daemon bool) error {
	if snap.File.Error != "" {
		if snap.File.Code == fleet.CodeMoved {
			return fleet.Refuse(snap.File.Code, "%s", snap.File.Error).WithHint("use a fleetdeck.toml with that [cluster], or 'fleetdeck cluster export' to move them back")
		}
		if snap.File.Code == fleet.CodeClusterUnreachable {
			return fleet.Refuse(snap.File.Code, "%s", snap.File.Error).WithHint("members go on running: see 'fleetdeck members'")
		}
		return fleet.Refuse(fleet.CodeFileCorrupt, "%s", snap.File.Error).
			WithHint("nothing was changed; 'fleetdeck repair' sets a corrupt file aside, and leaves one of a newer format alone")
	}
	if daemon && !snap.Daemon.Running {
		return fleet.Refuse(fleet.CodeDaemonUnreachable, "%s", snap.Daemon.Error).WithHint("start it with 'fleetdeck up'")
	}
	return nil
}

func newMembersCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "members", Aliases: []string{"ls"}, Short: "the roster", Args: noArgs,
		Long: `members lists the agents that the daemon lists, those that ended lately among them with their exit code. Agents that
are still booting are launches, and not in it: see 'fleetdeck trees'.

In a fleet of many hosts those of the others are among them, with their tree as NODE:PATH. The state of a host's members that is not
heard of any more is lost: they keep their trees.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			roster, err := s.client.Roster(cmd.Context())
			if err != nil {
				return err
			}
			members := s.everywhere(cmd.Context(), roster.Members)
			if g.json {
				return g.printJSON(members)
			}
			t := newTable(g.out, "MEMBER", "TREE", "ROLE", "PROFILE", "SLOT", "STATE", "AGE", "SAYS")
			now := time.Now()
			for _, m := range members {
				state := string(m.State)
				if m.ExitCode != nil {
					state += fmt.Sprintf(" (%d)", *m.ExitCode)
				}
				if m.CharterMismatch {
					state += " CHARTER MISMATCH"
				}
				where := shorten(m.Tree)
				if m.Node != "" {
					where = m.Node + ":" + m.Tree
				}
				t.row(m.ID, where, m.Role, m.Profile, m.Slot, state, age(m.StartedAt, now), m.StateMessage)
			}
			return t.flush()
		},
	}
}

func newSlotsCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "slots", Short: "the slot bindings", Args: noArgs,
		Long: `slots lists the configured slots: free, reserved for a launch, or bound to a member. In a fleet of many hosts they are shared,
and the tree is that of the host that has the slot, NODE:PATH. While etcd does not answer, one that nobody here has is unsure.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			slots, err := s.client.Slots(cmd.Context())
			if err != nil {
				return err
			}
			rows := s.slotRows(cmd.Context(), slots)
			s.warnOfSlots(s.slotsDiffer(cmd.Context()))
			if g.json {
				return g.printJSON(rows)
			}
			return s.printSlots(rows, time.Now())
		},
	}
}

func newReservationsCommand(g *globals) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "reservations", Short: "the reservation file, with what occupancy makes of it", Args: noArgs,
		Long: `reservations lists the entries of the reservation file with a verdict on each: pending (holds its tree), listed (its
worker is a member), expired (its grace ran out) or invalid. It takes no lock. Without a daemon nobody can say who is
listed, which is said on stderr.

In a fleet of many hosts --all adds those of the others, and names their trees NODE:PATH.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			snap := s.sources().Outline(cmd.Context())
			if err := usable(snap, false); err != nil {
				return err
			}
			if !snap.Daemon.Running {
				g.warn("the daemon does not answer, so none is shown as listed")
			}
			rows, err := s.reservationRows(cmd.Context(), snap.Reservations, all)
			if err != nil {
				return err
			}
			if g.json {
				return g.printJSON(rows)
			}
			t := newTable(g.out, "TREE", "VERDICT", "LEFT", "ROLE", "PROFILE", "ID", "WRITTEN BY")
			for _, r := range rows {
				by := r.Dispatcher.Program
				if r.Dispatcher.Pid != 0 {
					by += fmt.Sprintf(" (pid %d)", r.Dispatcher.Pid)
				}
				t.row(placed(r.Node, r.Tree), string(r.Verdict), duration(time.Duration(r.RemainingS*float64(time.Second))), r.Role, r.Profile, r.ID, by)
			}
			return t.flush()
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "those of the other hosts too")
	return cmd
}

func newEventsCommand(g *globals) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "events", Short: "what happened", Args: noArgs,
		Long: "events prints what happened, oldest first; with --json one JSON document a line.\n" + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.open()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			var werr error
			err = s.client.Events(ctx, 0, follow, func(e fleet.Event) {
				if werr == nil {
					if werr = g.printEvent(e); werr != nil {
						stop()
					}
				}
			})
			if errors.Is(err, context.Canceled) {
				err = nil
			}
			return errors.Join(werr, err)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens from now on")
	return cmd
}

func (g *globals) printEvent(e fleet.Event) error {
	if g.json {
		return g.printLine(e)
	}
	where := ""
	if e.Tree != "" {
		where = plain.Clean(shorten(e.Tree), -1) + ": "
	}
	_, err := fmt.Fprintf(g.out, "%s  %-5s  %-14s  %s%s\n", e.Time.Local().Format("15:04:05"), e.Level, e.Kind, where, plain.Clean(e.Message, -1))
	return err
}

func newWhoamiCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "for an agent: who it is", Args: noArgs,
		Long: "whoami answers an agent by its token, $FLEETDECK_TOKEN: which member it is, with what role, slot and charter.\n" + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := agentClient()
			if err != nil {
				return err
			}
			id, err := c.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			if g.json {
				return g.printJSON(id)
			}
			fmt.Fprintf(g.out, "member   %s\nrole     %s\nslot     %s\ntree     %s\nprofile  %s\ncharter  %s\nmay      %v\n",
				id.Member, id.Role, id.Slot, plain.Clean(id.Tree, -1), id.Profile, id.CharterSHA256, id.May)
			return nil
		},
	}
}

// now is the present moment, for commands that judge by themselves.
func now() fleet.Instant { return process.Now() }
