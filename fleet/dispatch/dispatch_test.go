package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/launch/process"
)

// slowDaemon loses the answer to the first request, which it decides on later, and refuses the second.
type slowDaemon struct {
	book *book.Book
	// late is when it comes to the first request: "before" or "after" the refusal has been dealt with, or "never".
	late    string
	asked   int
	spawn   api.Spawn
	started string
}

func (d *slowDaemon) Roster(context.Context) (fleet.Roster, error) { return fleet.Roster{}, nil }

func (d *slowDaemon) Launch(context.Context, string) (api.LaunchStatus, error) {
	return api.LaunchStatus{}, errors.New("nobody waits")
}

func (d *slowDaemon) Spawn(ctx context.Context, req api.Spawn) (api.Accepted, error) {
	d.asked++
	if d.asked == 1 {
		d.spawn = req
		return api.Accepted{}, errors.New("the connection broke")
	}
	if d.late == "before" {
		d.admit(ctx)
	}
	return api.Accepted{}, fleet.Refuse(fleet.CodeSlotUnavailable, "every slot is taken")
}

func (d *slowDaemon) Reservation(_ context.Context, id string) (api.LaunchStatus, error) {
	if d.started == id {
		return api.LaunchStatus{Launch: &fleet.Launch{ID: "L1", Reservation: id}}, nil
	}
	return api.LaunchStatus{}, fleet.Refuse(fleet.CodeNotFound, "no reservation %s", id)
}

// admit decides on the first request as the daemon does, under the lock.
func (d *slowDaemon) admit(ctx context.Context) error {
	return d.book.Admit(ctx, time.Second, d.spawn.Tree, d.spawn.Reservation, func(fleet.Entry) error {
		d.started = d.spawn.Reservation
		return nil
	})
}

// TestARefusalIsNoProofWhileAnEarlierRequestIsUnderWay: what is told to be refused was not started, and never is.
func TestARefusalIsNoProofWhileAnEarlierRequestIsUnderWay(t *testing.T) {
	for _, late := range []string{"before", "after", "never"} {
		t.Run(late, func(t *testing.T) {
			b, err := book.Open(t.TempDir(), process.Now)
			if err != nil {
				t.Fatal(err)
			}
			daemon := &slowDaemon{book: b, late: late}
			d := dispatch.Dispatcher{Ledger: b, Daemon: daemon, LockWait: time.Second, Grace: time.Minute, Now: process.Now}
			out, err := d.Dispatch(t.Context(), fleet.Order{Tree: t.TempDir(), Role: fleet.RoleDev, Profile: "p", NoGit: true})
			if late == "after" {
				if err := daemon.admit(t.Context()); err == nil {
					t.Error("the first request was accepted after the dispatch had been told to be refused")
				}
			}
			switch {
			case late == "before" && (err != nil || out.Outcome != fleet.Accepted || out.Member != "L1"):
				t.Errorf("%+v, %v, want the launch that was started", out, err)
			case late != "before" && (out.Outcome != fleet.Refused || out.Code != fleet.CodeSlotUnavailable || daemon.started != ""):
				t.Errorf("%+v, %v, started %q, want it refused and nothing started", out, err, daemon.started)
			}
			if entries, err := b.Read(); err != nil || len(entries) > 0 {
				t.Errorf("entries %+v, %v", entries, err)
			}
		})
	}
}
