// Package observe makes snapshots of the fleet for whoever displays it.
//
// It takes no lock and never writes. It reads the reservation file first and the roster second, never the other way round: a
// worker that was listed and pruned between the two would otherwise be seen nowhere. Nobody decides on what it says.
package observe

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/ledger"
	"fleetdeck/fleet/tree"
)

// daemonTimeout bounds a question that is only asked for display.
const daemonTimeout = 2 * time.Second

// Sources are where a snapshot comes from.
type Sources struct {
	// Dir is the state directory.
	Dir    string
	Ledger ledger.Ledger
	// Lock is the admission lock of this host.
	Lock   Lock
	Client *client.Client
	// Cluster tells a [Live] of the other hosts of the fleet; nil where there is one.
	Cluster Cluster
	Config  *config.Config
	Now     func() fleet.Instant
}

// Lock is a lock as it can be seen from outside: that of the reservation book.
type Lock interface {
	LockInfo() fleet.LockInfo
	LockPath() string
}

// look is what one look at file and daemon brought.
type look struct {
	at      fleet.Instant // from before the first of it was read
	entries []fleet.Entry
	roster  fleet.Roster
	slots   []fleet.Slot
	file    fleet.FileInfo
	daemon  fleet.DaemonInfo
	stamp   stamp // of the file when it was read; zero where it may have changed right then
}

// read looks at the file, then at the daemon. A file that stands as it did at the look prev, if there is one, is not read again. Where
// away says why the cluster that stands in the file's place is not heard, it is not waited for.
func (s Sources) read(ctx context.Context, prev *look, away string) look {
	var l look
	var err error
	l.at = s.Now()
	l.file = fleet.FileInfo{Path: s.Ledger.Path(), ReadAt: l.at.Wall}
	l.stamp = stampOf(s.Ledger.Path())
	switch {
	case prev != nil && away != "":
		l.file.Error, l.file.Code = away, fleet.CodeClusterUnreachable
	case prev != nil && prev.file.Error == "" && prev.stamp == l.stamp:
		l.entries = prev.entries
	default:
		if l.entries, err = s.Ledger.Read(); err != nil {
			l.file.Error = err.Error()
		}
		if r := fleet.RefusalOf(err); r != nil {
			l.file.Code = r.Code
		}
	}
	if prev != nil && l.file.Code == fleet.CodeClusterUnreachable { // what stood there stands still, as far as anybody knows
		l.entries, l.file.ReadAt = prev.entries, prev.file.ReadAt
	}
	l.stamp = l.stamp.unlessFresh(l.at.Wall)
	timeout := daemonTimeout
	if prev != nil && !prev.daemon.Running {
		timeout /= 2 // it hangs: what else there is to see need not wait as long again
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	l.daemon = fleet.DaemonInfo{Socket: s.Client.Socket()}
	health, err := s.Client.Health(ctx)
	if err == nil {
		l.roster, err = s.Client.Roster(ctx)
	}
	if err == nil {
		l.slots, err = s.Client.Slots(ctx)
	}
	if err != nil {
		l.daemon.Error = err.Error()
		if prev != nil { // what was known last is worth more than nothing, and its age is told
			l.roster, l.slots, l.daemon.AnsweredAt = prev.roster, prev.slots, prev.daemon.AnsweredAt
			if errors.Is(err, context.DeadlineExceeded) {
				l.daemon.Pid = prev.daemon.Pid
			}
		}
		return l
	}
	l.daemon.Running, l.daemon.Pid, l.daemon.Version, l.daemon.Since = true, health.Pid, health.Version, health.Since
	l.daemon.AnsweredAt = s.Now().Wall
	return l
}

// Once looks once and gives the snapshot, with the facts of each tree read now.
func (s Sources) Once(ctx context.Context) fleet.Snapshot {
	snap := s.Outline(ctx)
	fillNow(ctx, snap.Trees)
	return snap
}

// Outline is Once without what git would have to be asked for, branch and dirt.
func (s Sources) Outline(ctx context.Context) fleet.Snapshot {
	l := s.read(ctx, nil, "")
	side := newSide(s)
	side.look(l.at)
	snap := s.snapshot(l, s.known(l), l.at)
	snap.Lock, snap.Queue, snap.Keeper, snap.History = s.Lock.LockInfo(), side.queue, side.keeper, side.history
	return snap
}

// fillNow fills in the facts of rows, as they are now.
func fillNow(ctx context.Context, rows []fleet.TreeRow) {
	var all sync.WaitGroup
	next := make(chan *fleet.TreeRow)
	for range min(len(rows), runtime.NumCPU()+1) { // git waits for the disk now and then
		all.Go(func() {
			for row := range next {
				setFacts(row, tree.FactsNow(ctx, row.Tree))
			}
		})
	}
	for i := range rows {
		next <- &rows[i]
	}
	close(next)
	all.Wait()
}

func setFacts(row *fleet.TreeRow, f tree.Facts) {
	row.Branch, row.Dirty, row.Repo, row.Missing = f.Branch, f.Dirty, f.Repo, f.Missing
	row.Upstream, row.Ahead, row.Behind = f.Upstream, f.Ahead, f.Behind
}

// snapshot makes what l says of trees at the moment now. The snapshot is as old as l all the same.
func (s Sources) snapshot(l look, trees []fleet.Tree, now fleet.Instant) fleet.Snapshot {
	snap := fleet.Snapshot{
		At: l.at, Members: l.roster.Members, Launches: l.roster.Launches, Slots: l.slots, Daemon: l.daemon, File: l.file,
		Trees: make([]fleet.TreeRow, 0, len(trees)), Reservations: make([]fleet.ReservationRow, 0, len(l.entries)),
	}
	free := fleet.Free
	if !l.daemon.Running || l.file.Error != "" {
		free = fleet.Unsure
	}
	// Where there are many trees, only those that somebody is in, or on the way to, cost more than a look-up.
	busy := newIndex(l)
	for _, t := range trees {
		if !busy.has(t) {
			snap.Trees = append(snap.Trees, fleet.TreeRow{Tree: t.Path, Occupancy: free})
			continue
		}
		entries, roster := busy.around(t)
		row := treeRow(t, fleet.Occupancy(t, entries, roster, now), now)
		if row.Occupancy == fleet.Free {
			row.Occupancy = free
		}
		snap.Trees = append(snap.Trees, row)
	}
	for _, e := range l.entries {
		verdict, droppable := fleet.Judge(e, busy.listed(e.ID), now)
		snap.Reservations = append(snap.Reservations, fleet.ReservationRow{
			Tree: e.Tree, ID: e.ID, Role: e.Role, Profile: e.Profile, Slot: e.Slot, ReservedAt: e.ReservedAt, ExpiresAt: e.ExpiresAt,
			RemainingS: e.Remaining(now).Seconds(), Verdict: verdict, Dispatcher: e.Dispatcher, Deadline: e.Deadline(), Droppable: droppable,
		})
	}
	return snap
}

func treeRow(t fleet.Tree, h fleet.Holding, now fleet.Instant) fleet.TreeRow {
	row := fleet.TreeRow{Tree: t.Path, Occupancy: h.State, Reservation: h.ReservationID()}
	if h.State == fleet.Reserved {
		row.RemainingS = max(0, h.Remaining.Seconds())
	}
	if f := h.Foreign; f != nil {
		row.Foreign = fleet.ForeignRow{Pid: f.Pid, Agent: f.Agent, Since: f.Since}
	}
	switch {
	case h.Member != nil:
		row.Member = h.Member.ID
	case h.Launch != nil:
		row.Launch, row.Deadline = h.Launch.ID, h.Launch.Deadline
	case h.Entry != nil:
		row.Deadline = h.Entry.Deadline()
	}
	return row
}

// Trees gives every tree that is configured, found below a root, reserved or staffed, sorted by path.
func (s Sources) Trees(entries []fleet.Entry, roster fleet.Roster) []fleet.Tree {
	return s.known(look{entries: entries, roster: roster})
}

// known gives every tree that is configured, found below a root, reserved or staffed, sorted by path.
func (s Sources) known(l look) []fleet.Tree {
	return withBusy(s.configured(s.finder()), l)
}

func (s Sources) finder() *tree.Finder { return tree.NewFinder(s.Config.Ignore) }

// configured gives the trees of the configuration, each once.
func (s Sources) configured(finder *tree.Finder) []fleet.Tree {
	var paths []string
	for _, p := range s.Config.Trees {
		if top, ok := displayTop(p); ok {
			paths = append(paths, top)
		}
	}
	paths = append(paths, finder.Find(s.Config.Roots...)...)
	slices.Sort(paths)
	var trees []fleet.Tree
	for _, p := range slices.Compact(paths) {
		file, _ := tree.Identify(p)
		trees = append(trees, fleet.Tree{Path: p, File: file})
	}
	return trees
}

// withBusy adds the trees of l that are not among trees.
func withBusy(trees []fleet.Tree, l look) []fleet.Tree {
	seen := make(map[string]bool, len(trees))
	files := make(map[fleet.FileID]bool, len(trees))
	for _, t := range trees {
		seen[t.Path] = true
		if t.File != "" {
			files[t.File] = true
		}
	}
	out := slices.Clone(trees)
	add := func(path string, file fleet.FileID) {
		if !seen[path] && (file == "" || !files[file]) {
			seen[path] = true
			out = append(out, fleet.Tree{Path: path, File: file})
		}
	}
	for _, e := range l.entries {
		t := e.On()
		add(t.Path, t.File)
	}
	for _, la := range l.roster.Launches {
		add(la.Tree, la.File)
		for _, t := range la.Also {
			add(t.Path, t.File)
		}
	}
	for _, m := range l.roster.Members {
		if m.Alive() {
			add(m.Tree, m.File)
			for _, t := range m.Also {
				add(t.Path, t.File)
			}
		}
	}
	slices.SortFunc(out, func(a, b fleet.Tree) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// displayTop finds the top of the tree that path lies in without asking git: good enough to draw a row.
func displayTop(path string) (string, bool) {
	dir, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, filepath.IsAbs(path) // shown as missing rather than not at all
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, true
		}
		if at == filepath.Dir(at) {
			return "", false
		}
	}
}
