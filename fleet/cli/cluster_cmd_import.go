package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fleetdeck/fleet"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/cluster"
	"fleetdeck/fleet/daemon"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
)

func newClusterImportCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "import", Short: "move this host's running fleet into the cluster", Args: noArgs,
		Long: `import takes what this host's members, launches and reservations hold into the cluster that [cluster] names, under the ids that
they have, and starts the daemon on it. No member ends. Meanwhile the admission lock is held, so that nobody is dispatched.

It is all or nothing: where the fleet has another slot table, or another host has a slot that a member here fills, nothing is changed
and the daemon goes on as it was. Cut off in the middle it is finished by another import, or taken back by an export; until
then nothing is dispatched on this host.

Afterwards the reservation file says where the reservations are, and no dispatcher with an older fleetdeck.toml uses it.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.openCluster()
			if err != nil {
				return err
			}
			if err := s.insideAgent(); err != nil {
				return err
			}
			return runClusterImport(cmd.Context(), s)
		},
	}
}

// moveReport is what a move came to, as --json shows it.
type moveReport struct {
	Outcome      string `json:"outcome"` // "imported" or "exported"
	Fleet        string `json:"fleet"`
	Node         string `json:"node"`
	Members      int    `json:"members"`
	Launches     int    `json:"launches"`
	Reservations int    `json:"reservations"`
	Pid          int    `json:"pid,omitempty"` // of the daemon
}

// moveWindow is how long a move waits for etcd, which it asks several times.
func (s *session) moveWindow() time.Duration { return max(s.conf.LockWait, 10*time.Second) }

func runClusterImport(ctx context.Context, s *session) error {
	r := moveReport{Outcome: "imported", Fleet: s.conf.Cluster.Fleet, Node: s.conf.Cluster.Node}
	if err := s.cluster.Join(ctx, s.presence()); err != nil {
		return err
	}
	move, err := s.book.Move(ctx, s.conf.LockWait)
	if err != nil {
		return err
	}
	defer func() {
		if move != nil {
			move.Close()
		}
	}()
	if err := s.sameMove(move.From); err != nil {
		return err
	}
	// The daemon that runs is only stopped once it is known that nothing is in the way.
	if roster, err := s.client.Roster(ctx); err == nil {
		moving, err := movingOf(move, roster)
		if err != nil {
			return err
		}
		knows := func(id string) bool { return move.From != nil || knownTo(roster, id) }
		if err := s.cluster.Import(ctx, s.moveWindow(), moving, knows, true); err != nil {
			return err
		}
	}
	place, err := s.standIn(ctx)
	if err != nil {
		return err
	}
	moving, err := s.carryOver(ctx, move, place)
	if err := errors.Join(err, place.Close()); err != nil {
		if r := fleet.RefusalOf(err); r != nil {
			r.Hint += "\nfleetdeck: hint: the daemon is down, its members go on: mend that and run the import again, or take [cluster] out of fleetdeck.toml and run 'fleetdeck up'"
		}
		return err
	}
	for _, m := range moving {
		switch {
		case m.Member:
			r.Members++
		case m.Launching:
			r.Launches++
		default:
			r.Reservations++
		}
	}
	err = move.Close()
	move = nil
	if err != nil {
		return err
	}
	if r.Pid, _, err = s.ensureDaemon(ctx); err != nil {
		return fmt.Errorf("everything is in the cluster, and the daemon could not be started on it: %w", err)
	}
	if s.json {
		return s.printJSON(r)
	}
	s.say("imported into fleet %s as node %s: %d members, %d launches, %d reservations; the daemon is up, pid %d", r.Fleet, r.Node, r.Members, r.Launches, r.Reservations, r.Pid)
	return nil
}

// carryOver moves what stands into the cluster, with nobody else at it.
func (s *session) carryOver(ctx context.Context, move *book.Move, place *daemon.StandIn) ([]cluster.Moving, error) {
	moving, err := movingOf(move, place.Roster())
	if err != nil {
		return nil, err
	}
	to := book.Moved{Fleet: s.conf.Cluster.Fleet, Node: s.conf.Cluster.Node, Endpoints: s.conf.Cluster.Endpoints, At: time.Now().UTC().Truncate(time.Second)}
	to.Step = book.Importing
	if move.From == nil || move.From.Step != book.Imported { // from here on this host's file serves nobody
		if err := move.MoveTo(to); err != nil {
			return nil, err
		}
	}
	knows := func(id string) bool { return move.From != nil || place.Knows(id) } // after an earlier import all that stands is this host's
	if err := s.cluster.Import(ctx, s.moveWindow(), moving, knows, false); err != nil {
		if r := fleet.RefusalOf(err); move.From == nil && (r == nil || r.Code != fleet.CodeOutcomeUnknown) {
			err = errors.Join(err, move.MoveBack())
		}
		return nil, err
	}
	to.Step = book.Imported
	return moving, move.MoveTo(to)
}

// movingOf is what roster and the entries of the book hold.
func movingOf(move *book.Move, roster fleet.Roster) ([]cluster.Moving, error) {
	var moving []cluster.Moving
	for _, m := range roster.Members {
		if m.Alive() {
			moving = append(moving, cluster.Moving{Member: true, Claim: ledger.Claim{
				ID: m.Reservation, Member: m.ID, Trees: append([]fleet.Tree{{Path: m.Tree, File: m.File}}, m.Also...), Role: m.Role, Profile: m.Profile, Slot: m.Slot, Since: m.StartedAt,
			}})
		}
	}
	for _, l := range roster.Launches {
		moving = append(moving, cluster.Moving{Launching: true, Deadline: l.Deadline, Claim: ledger.Claim{
			ID: l.Reservation, Trees: append([]fleet.Tree{{Path: l.Tree, File: l.File}}, l.Also...), Role: l.Role, Profile: l.Profile, Slot: l.Slot, Since: l.AcceptedAt,
		}})
	}
	entries, err := move.Entries()
	if err != nil {
		return nil, err
	}
	at := map[string]int{} // of several trees under one id
	for _, e := range entries {
		now := process.Now()
		verdict, _ := fleet.Judge(e, roster, now)
		switch {
		case e.Expired(now) || verdict == fleet.VerdictListed || knownTo(roster, e.ID):
		case verdict == fleet.VerdictInvalid:
			return nil, fleet.Refuse(fleet.CodeTreeReserved, "%s is reserved by an entry without an id, which cannot be moved", e.Tree).
				WithHint("wait until its grace is over, or drop it with 'fleetdeck release'")
		default:
			i, ok := at[e.ID]
			if !ok {
				i = len(moving)
				at[e.ID] = i
				moving = append(moving, cluster.Moving{Deadline: e.Deadline(), Dispatcher: e.Dispatcher, Claim: ledger.Claim{ID: e.ID, Role: e.Role, Profile: e.Profile, Since: e.ReservedAt}})
			}
			moving[i].Trees = append(moving[i].Trees, e.On())
		}
	}
	return moving, nil
}

// knownTo reports whether a member or a launch of roster came of the reservation id.
func knownTo(roster fleet.Roster, id string) bool {
	for _, l := range roster.Launches {
		if l.Reservation == id {
			return true
		}
	}
	return roster.Listed(id)
}

// standIn stops the daemon, if it runs, and takes its place. Members go on.
func (s *session) standIn(ctx context.Context) (*daemon.StandIn, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := s.stopDaemon(ctx, false); err != nil {
		return nil, err
	}
	place, err := daemon.Stand(ctx, s.dir.Path, process.Now)
	if err != nil {
		return nil, fmt.Errorf("take the daemon's place: %w", err)
	}
	return place, nil
}

// sameMove refuses what has nothing to do with the move that the file is in.
func (s *session) sameMove(m *book.Moved) error {
	if m == nil || m.Fleet == s.conf.Cluster.Fleet && m.Node == s.conf.Cluster.Node {
		return nil
	}
	return fleet.Refuse(fleet.CodeMoved, "the reservations of this host are those of node %s of fleet %s, and [cluster] in %s says node %s of fleet %s",
		m.Node, m.Fleet, s.conf.Path, s.conf.Cluster.Node, s.conf.Cluster.Fleet).
		WithHint("set fleet and node as they were; 'fleetdeck cluster export' moves them back to this host")
}

// atHome makes sure that a daemon that is about to start finds its reservations where its configuration says that they are.
func (s *session) atHome(ctx context.Context) error {
	moved, err := s.book.Moved()
	if err != nil {
		return err
	}
	switch {
	case s.cluster == nil && moved == nil:
		return nil
	case s.cluster == nil || moved != nil && moved.Step != book.Imported:
		return moved.Refusal(s.book.Path())
	case moved != nil:
		return s.sameMove(moved)
	}
	if _, err := os.Stat(s.book.Path()); errors.Is(err, os.ErrNotExist) {
		return nil // nothing was ever dispatched by a file here
	}
	move, err := s.book.Move(ctx, s.conf.LockWait)
	if err != nil {
		return err
	}
	defer move.Close()
	place, err := daemon.Stand(ctx, s.dir.Path, process.Now)
	if err != nil {
		return err
	}
	defer place.Close()
	moving, err := movingOf(move, place.Roster())
	if err != nil || len(moving) == 0 {
		return err
	}
	return fleet.Refuse(fleet.CodeMoved, "this host has %d members, launches or reservations by its own file, %s, and not in the cluster", len(moving), s.book.Path()).
		WithHint("'fleetdeck cluster import' moves them there; without [cluster] in fleetdeck.toml the daemon starts as before")
}

// examineFile says whether the reservation file can be read, or says rightly that the reservations are elsewhere.
func (s *session) examineFile(add func(level, hint, format string, args ...any)) {
	moved, err := s.book.Moved()
	what, hint := "reservation file "+s.book.Path(), "'fleetdeck repair' sets it aside and rebuilds it"
	switch {
	case err != nil:
	case moved == nil:
		_, err = s.book.Read()
	case s.cluster == nil || moved.Step != book.Imported:
		err = moved.Refusal(s.book.Path())
	default:
		what += " is moved into the cluster"
		err = s.sameMove(moved)
	}
	if r := fleet.RefusalOf(err); r != nil && r.Code == fleet.CodeMoved {
		hint = r.Hint
	}
	if err != nil {
		add("fail", hint, "%v", err)
	} else {
		add("ok", "", "%s", what)
	}
}

func newClusterExportCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "export", Short: "move this host's running fleet out of the cluster", Args: noArgs,
		Long: `export is the way back from an import, or out of a cluster at all: what this host's members, launches and reservations hold is given
back to the cluster, and stands in this host's own file again. No member ends. Other hosts are not touched.

The daemon is down afterwards: take [cluster] out of fleetdeck.toml, then run 'fleetdeck up'.

It is refused where a member here fills a slot and the fleet has other hosts: the slot would be given away there while the agent
goes on; and while a member is fenced (self_fence), which would end. Cut off in the middle it is finished by another export.
` + exitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.openCluster()
			if err != nil {
				return err
			}
			if err := s.insideAgent(); err != nil {
				return err
			}
			return runClusterExport(cmd.Context(), s)
		},
	}
}

func runClusterExport(ctx context.Context, s *session) error {
	r := moveReport{Outcome: "exported", Fleet: s.conf.Cluster.Fleet, Node: s.conf.Cluster.Node}
	move, err := s.book.Move(ctx, s.conf.LockWait)
	if err != nil {
		return err
	}
	defer move.Close()
	if err := s.sameMove(move.From); err != nil {
		return err
	}
	finish := move.From != nil && move.From.Step != book.Imported
	if _, _, err := s.cluster.Leaving(ctx, s.moveWindow(), finish); err != nil { // before the daemon is stopped
		return err
	}
	place, err := s.standIn(ctx)
	if err != nil {
		return err
	}
	defer place.Close()
	loss, entries, err := s.cluster.Leaving(ctx, s.moveWindow(), finish)
	if err != nil {
		return err
	}
	earlier, err := move.Entries() // what an import that was cut off, or this export, left in the file
	if err != nil {
		return err
	}
	for _, e := range earlier {
		if !e.Expired(process.Now()) && !place.Roster().Listed(e.ID) {
			entries = append(entries, e)
		}
	}
	to := book.Moved{Step: book.Exporting, Fleet: r.Fleet, Node: r.Node, Endpoints: s.conf.Cluster.Endpoints, At: time.Now().UTC().Truncate(time.Second)}
	if err := move.MoveTo(to, entries...); err != nil {
		return err
	}
	if err := s.cluster.Leave(ctx, s.moveWindow(), loss); err != nil {
		return err
	}
	if err := move.MoveBack(); err != nil {
		return err
	}
	roster := place.Roster()
	left, err := move.Entries()
	if err != nil {
		return err
	}
	r.Launches, r.Reservations = len(roster.Launches), len(left)
	for _, m := range roster.Members {
		if m.Alive() {
			r.Members++
		}
	}
	if s.json {
		return s.printJSON(r)
	}
	s.say("exported: %d members go on, and %d reservations are in %s; the daemon is down", r.Members, r.Reservations, s.book.Path())
	s.say("take [cluster] out of %s, then run 'fleetdeck up'", s.conf.Path)
	return nil
}
