package daemon

import (
	"errors"
	"os"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/mutant"
	"fleetdeck/fleet/plain"
)

// fail ends a launch that will not be listed. Its processes go first, then the record says so, and only then are slot and
// tree free.
func (t *tender) fail(term launch.Terminal, why error) {
	rec := t.record()
	reason := fleet.RefusalOf(why)
	if reason == nil {
		reason = launchFailed("%w", why)
	}
	if term != nil {
		if !t.end(term) {
			return // not proven dead, so the record goes on holding tree and slot; the next daemon takes it up
		}
		if tail := logTail(term); tail != "" {
			reason.Hint = "its last words: " + tail
		}
	}
	for {
		err := t.d.reg.update(t.id, func(r *record) error {
			r.Step, r.Failure, r.EndedAt = stepFailed, reason, t.d.Now().Wall.UTC()
			return nil
		})
		if err == nil {
			break
		}
		t.d.Log("launch %s: %v", t.id, err)
		if !sleep(t.d.ctx, time.Second) {
			return
		}
	}
	if !mutant.SlotKeptOnFailure {
		t.d.pool.Release(rec.Reservation)
	}
	t.d.screens.forget(rec.ID)
	t.d.hearings.close(rec.ID)
	t.d.events.add("warn", "launch_failed", rec.Tree, rec.ID, "%s on %s: %v", rec.Role, rec.Profile, reason)
	rec.Step = stepFailed
	t.d.vacate(rec)
	if term == nil {
		os.RemoveAll(t.d.dirOf(rec.ID))
	}
}

// end stops the terminal's processes, and goes on until they are gone: as long as one may live the tree is not free. It
// reports whether they are; they may not be where the daemon ends first.
func (t *tender) end(term launch.Terminal) bool {
	for {
		err := term.Stop(t.d.ctx, bootPatience)
		if err == nil || errors.Is(err, launch.ErrGone) {
			return true
		}
		if errors.Is(err, launch.ErrNotStarted) && t.endMarked() == nil {
			return true // the holder died before it had anything on record
		}
		t.d.Log("end launch %s: %v", t.id, err)
		if !sleep(t.d.ctx, time.Second) {
			return false
		}
	}
}

// exited records the end of a member. Without an exit the terminal was killed, and nobody knows the code.
func (t *tender) exited(exit *launch.Exit) {
	rec := t.record() // one that ended long ago is forgotten as soon as its end is on record
	for {
		err := t.d.reg.update(t.id, func(r *record) error {
			r.Step, r.State, r.StateSource, r.EndedAt = stepExited, fleet.StateExited, "process", t.d.Now().Wall.UTC()
			r.StateAt = r.EndedAt
			if exit != nil {
				code := exit.Code
				r.ExitCode, r.EndedAt = &code, exit.At.UTC()
			}
			return nil
		})
		if err == nil {
			break
		}
		t.d.Log("member %s: %v", t.id, err)
		if !sleep(t.d.ctx, time.Second) {
			return
		}
	}
	t.d.pool.Release(rec.Reservation)
	t.d.vacate(rec)
	t.d.screens.forget(rec.ID)
	t.d.hearings.close(rec.ID)
	switch {
	case exit == nil:
		t.d.events.add("warn", "gone", rec.Tree, rec.ID, "its terminal was killed; its exit code is not known")
	case exit.Reason == launch.Fenced:
		t.d.alarm("fenced", rec, "member %s was ended by its holder, code %d: etcd did not confirm in time that it has slot %s", rec.ID, exit.Code, rec.Slot)
	case exit.Reason != "":
		t.d.events.add("info", "exited", rec.Tree, rec.ID, "the agent was ended (%s, code %d)", exit.Reason, exit.Code)
	default:
		level := "info"
		if exit.Code != 0 {
			level = "warn"
		}
		t.d.events.add(level, "exited", rec.Tree, rec.ID, "the agent exited with code %d", exit.Code)
	}
}

// logTail is the end of what the agent printed, for people.
func logTail(term launch.Terminal) string {
	data, err := term.Log(2000)
	if err != nil {
		return ""
	}
	s := plain.Clean(ansi.Strip(string(data)), -1)
	if r := []rune(s); len(r) > 300 {
		s = "…" + string(r[len(r)-300:])
	}
	return s
}
