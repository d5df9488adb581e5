package observe

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/history"
	"fleetdeck/fleet/keeper"
)

// stamp is what a change of a file shows in. That of a file that is not there is none of a file that is, and the zero value is
// that of no file at all.
type stamp struct {
	missing  bool
	dev, ino uint64
	size     int64
	mode     fs.FileMode
	changed  time.Time
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{missing: true}
	}
	s := stamp{size: info.Size(), mode: info.Mode(), changed: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.dev, s.ino = uint64(st.Dev), uint64(st.Ino)
	}
	return s
}

// unlessFresh is s, unless the file was written just before now: then one more write might leave the same stamp.
func (s stamp) unlessFresh(now time.Time) stamp {
	const grain = 100 * time.Millisecond
	if !s.missing && now.Sub(s.changed) < grain {
		return stamp{}
	}
	return s
}

// side is what stands beside the reservation file: the queue, the keeper and what consoles did.
type side struct {
	Sources
	queue   []fleet.QueueRow
	keeper  fleet.KeeperInfo
	history []fleet.Deed

	log    *history.Log
	stamps map[string]stamp
	asked  time.Duration // when the keeper was looked at, on the monotonic clock
	hinted bool          // it may have come or gone since
}

const (
	// keeperEvery is how often to look whether a keeper runs where nothing hints at a change: to find who holds a lock costs a look
	// at the kernel's table, and then at every process.
	keeperEvery = 5 * time.Second
	// keeperSoon is how often to look while the queue or the keeper's memory change.
	keeperSoon = 400 * time.Millisecond
)

// The keeper's files, by name in the state directory.
const (
	queueFile  = "queue.json"
	memoryFile = "keeper.json"
	resetsFile = "keeper-resets.json"
)

func newSide(s Sources) side {
	return side{Sources: s, log: history.In(s.Dir), stamps: map[string]stamp{}}
}

// look reads what has changed, and reports whether that says something new.
func (s *side) look(now fleet.Instant) bool {
	wall := now.Wall
	queue := s.moved(filepath.Join(s.Dir, queueFile), wall)
	kept := s.moved(filepath.Join(s.Dir, memoryFile), wall)
	resets := s.moved(filepath.Join(s.Dir, resetsFile), wall)
	changed := false
	if queue || kept || resets || s.keeperMoved(now) {
		before := s.keeper
		s.lookAtKeeper(now)
		s.hinted = queue || kept || resets // it takes its lock after the first of these, and gives it back after the last
		changed = !sameKeeper(before, s.keeper)
	}
	if queue {
		s.lookAtQueue()
		changed = true
	}
	if s.moved(s.log.Path(), wall) {
		if deeds, err := s.log.Tail(keepEvents); err == nil {
			changed = changed || !sameEnd(deeds, s.history)
			s.history = deeds
		}
	}
	return changed
}

// moved reports whether the file at path is another than when it was last asked for.
func (s *side) moved(path string, now time.Time) bool {
	is := stampOf(path)
	was, known := s.stamps[path]
	s.stamps[path] = is.unlessFresh(now)
	return !known || is != was
}

// keeperMoved reports whether a keeper came or went, or might have.
func (s *side) keeperMoved(now fleet.Instant) bool {
	h := s.keeper.Holder
	return now.Mono-s.asked > keeperEvery || s.hinted && now.Mono-s.asked > keeperSoon || h != nil && syscall.Kill(h.Pid, 0) == syscall.ESRCH
}

func (s *side) lookAtKeeper(now fleet.Instant) {
	s.asked = now.Mono
	status, err := keeper.ReadStatus(s.Dir, s.Config, now)
	s.keeper = fleet.KeeperInfo{Running: status.Running, Holder: status.Holder, OnDemand: s.Config.Keeper.InDaemon, Staff: len(status.Staff)}
	if err != nil {
		s.keeper.Error = err.Error()
	}
	for _, row := range status.Staff {
		if row.State == "broken" {
			s.keeper.Broken++
		}
	}
}

func (s *side) lookAtQueue() {
	q, err := keeper.OpenQueue(s.Dir)
	if err != nil {
		return // the keeper's status says so
	}
	tasks, err := q.List()
	if err != nil {
		return
	}
	s.queue = make([]fleet.QueueRow, len(tasks))
	for i, t := range tasks {
		s.queue[i] = QueueRow(t)
	}
}

// QueueRow is t as lists show it.
func QueueRow(t keeper.Task) fleet.QueueRow {
	row := fleet.QueueRow{
		ID: t.ID, Tree: t.Tree, Role: t.Role, Profile: t.Profile, Task: t.Task, State: "queued", AddedAt: t.AddedAt,
		Reservation: t.Reservation, Error: t.Error,
	}
	switch {
	case t.GivenUp:
		row.State = "given_up"
	case t.Reservation != "":
		row.State = "sent"
	}
	return row
}
