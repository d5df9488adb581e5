package keeper

import (
	"context"
	"errors"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/config"
)

// world is a book and a daemon as a pass sees them. Each look moves it on to the next of its moments, and stays at the last.
type world struct {
	moments []moment
	sent    []fleet.Order
}

// moment is what stands in the book, and what the daemon answers for the one reservation that there is.
type moment struct {
	entries []fleet.Entry
	status  api.LaunchStatus
	err     error
}

func (w *world) look() moment {
	m := w.moments[0]
	if len(w.moments) > 1 {
		w.moments = w.moments[1:]
	}
	return m
}

func (w *world) Read() ([]fleet.Entry, error) { return w.look().entries, nil }

func (w *world) Prune(context.Context, time.Duration, fleet.Roster) (fleet.PruneReport, error) {
	return fleet.PruneReport{}, nil
}

func (w *world) Roster(context.Context) (fleet.Roster, error) {
	var r fleet.Roster
	if m := w.look().status.Member; m != nil {
		r.Members = append(r.Members, *m)
	}
	return r, nil
}

func (w *world) Reservation(context.Context, string, string) (api.LaunchStatus, error) {
	m := w.look()
	return m.status, m.err
}

func (w *world) Dispatch(_ context.Context, order fleet.Order) (fleet.Outcome, error) {
	w.sent = append(w.sent, order)
	return fleet.Outcome{Outcome: fleet.Accepted, Tree: order.Tree}, nil
}

// keeperOf is a keeper of a state directory of its own over w.
func keeperOf(t *testing.T, w *world, conf *config.Config) *Keeper {
	t.Helper()
	k, err := Open(t.Context(), Options{
		Dir: t.TempDir(), Config: conf, Book: w, Daemon: w, Dispatcher: w, Now: func() fleet.Instant { return now },
		Say: func(level, kind, _, message string) { t.Logf("%s %s: %s", level, kind, message) },
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

var (
	notFound = fleet.Refuse(fleet.CodeNotFound, "no such reservation")
	standing = []fleet.Entry{{Tree: "/src/api", Reservation: fleet.Reservation{ID: "r1", ExpiresAt: now.Wall.Add(time.Minute)}}}
	runOut   = []fleet.Entry{{Tree: "/src/api", Reservation: fleet.Reservation{ID: "r1", ExpiresAt: now.Wall.Add(-time.Second)}}}
	another  = []fleet.Entry{{Tree: "/src/api", Reservation: fleet.Reservation{ID: "r2", ExpiresAt: now.Wall.Add(time.Minute)}}}
	live     = &fleet.Member{ID: "m1", Tree: "/src/api", Reservation: "r1", State: fleet.StateWorking, StartedAt: now.Wall.Add(-time.Second)}
)

func TestFateIsKnownOnlyByProof(t *testing.T) {
	gone := *live
	gone.State, gone.ExitCode, gone.EndedAt = fleet.StateExited, code(9), now.Wall
	recent := now.Wall.Add(-50 * time.Minute)
	for _, tt := range []struct {
		name     string
		moment   moment
		at       time.Time
		accepted bool
		want     fate
	}{
		{"neither in the book nor known", moment{err: notFound}, recent, false, unsent},
		{"its grace ran out, and it is not known", moment{entries: runOut, err: notFound}, recent, false, unsent},
		{"another stands in the book", moment{entries: another, err: notFound}, recent, false, unsent},
		{"it stands in the book", moment{entries: standing, err: notFound}, recent, false, pending},
		{"it stands in the book, and boots", moment{entries: standing, status: api.LaunchStatus{Launch: &fleet.Launch{}}}, recent, false, running},
		{"it is listed", moment{status: api.LaunchStatus{Member: live}}, recent, true, running},
		{"it ended", moment{status: api.LaunchStatus{Member: &gone}}, recent, true, ended},
		{"it failed", moment{status: api.LaunchStatus{Failed: notFound}}, recent, false, failed},
		{"it was accepted, and is not known any more", moment{err: notFound}, recent, true, forgotten},
		{"it is too old for the daemon to know", moment{err: notFound}, now.Wall.Add(-time.Hour), false, forgotten},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := keeperOf(t, &world{moments: []moment{tt.moment}}, config.Default(""))
			p := &pass{k: k}
			if err := p.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := p.fateOf(t.Context(), "/src/api", "r1", tt.at, tt.accepted); err != nil || got.fate != tt.want {
				t.Errorf("fateOf = %+v, %v, want %d", got, err, tt.want)
			}
		})
	}
	t.Run("the daemon does not answer", func(t *testing.T) {
		k := keeperOf(t, &world{moments: []moment{{err: errors.New("no answer")}}}, config.Default(""))
		if got, err := (&pass{k: k}).fateOf(t.Context(), "/src/api", "r1", recent, false); err == nil {
			t.Errorf("fateOf = %+v, want an error", got)
		}
	})
}

func TestAgentListedAndSettledBetweenTwoLooksIsNotStartedAgain(t *testing.T) {
	conf := config.Default("")
	conf.Staff = []config.Staff{wanting("always")}
	for looks := range 4 {
		w := &world{}
		for range looks {
			w.moments = append(w.moments, moment{entries: standing, err: notFound})
		}
		w.moments = append(w.moments, moment{status: api.LaunchStatus{Member: live}})
		k := keeperOf(t, w, conf)
		k.staff["/src/api"] = memory{Order: fingerprint(wanting("")), Attempt: "r1", AttemptedAt: now.Wall}
		for range 3 {
			if _, err := k.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.sent) > 0 {
			t.Errorf("listed after %d looks: sent %+v, want nothing", looks, w.sent)
		}
	}
}

func TestIdIsOnDiskBeforeAnybodyIsAsked(t *testing.T) {
	conf := config.Default("")
	conf.Staff = []config.Staff{wanting("always")}
	k := keeperOf(t, &world{moments: []moment{{err: notFound}}}, conf)
	if _, _, err := k.queue.Add(t.Context(), Task{Tree: "/src/web"}, now); err != nil {
		t.Fatal(err)
	}
	var staffed, worked string
	k.Dispatcher = dispatchFunc(func(order fleet.Order) (fleet.Outcome, error) {
		status, err := ReadStatus(k.Dir, conf, now)
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := k.queue.List()
		if err != nil {
			t.Fatal(err)
		}
		switch order.Tree {
		case "/src/api":
			staffed = order.ID
			if got := status.Staff[0].Reservation; got == "" || got != order.ID {
				t.Errorf("staff: %q is on disk, %q is used", got, order.ID)
			}
		case "/src/web":
			worked = order.ID
			if got := tasks[0].Reservation; got == "" || got != order.ID {
				t.Errorf("queue: %q is on disk, %q is used", got, order.ID)
			}
		}
		return fleet.Outcome{Outcome: fleet.Unknown, Tree: order.Tree}, errors.New("no answer")
	})
	if _, err := k.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if staffed == "" || worked == "" || staffed == worked {
		t.Errorf("sent under %q and %q, want two ids", staffed, worked)
	}
}

type dispatchFunc func(fleet.Order) (fleet.Outcome, error)

func (f dispatchFunc) Dispatch(_ context.Context, order fleet.Order) (fleet.Outcome, error) {
	return f(order)
}
