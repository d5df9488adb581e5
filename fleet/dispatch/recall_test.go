package dispatch_test

import (
	"context"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/book"
	"fleetdeck/fleet/dispatch"
	"fleetdeck/fleet/launch/process"
)

// knowing is a daemon that answers for one reservation, once it has hung for a while.
type knowing struct {
	slowDaemon
	hangs  int
	status *api.LaunchStatus
}

func (d *knowing) Reservation(_ context.Context, id string) (api.LaunchStatus, error) {
	if d.hangs--; d.hangs >= 0 {
		return api.LaunchStatus{}, fleet.Refuse(fleet.CodeDaemonUnreachable, "it is starting")
	}
	if d.status == nil {
		return api.LaunchStatus{}, fleet.Refuse(fleet.CodeNotFound, "no reservation %s", id)
	}
	return *d.status, nil
}

func TestADispatchWhoseDispatcherDiedIsFoundOut(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status *api.LaunchStatus
		want   string
		stands bool // its reservation does, afterwards
	}{
		{"a launch under way goes on", &api.LaunchStatus{Launch: &fleet.Launch{ID: "L1"}}, fleet.Accepted, true},
		{"a member is one", &api.LaunchStatus{Member: &fleet.Member{ID: "L1"}}, fleet.Accepted, true},
		{"a launch that failed was refused", &api.LaunchStatus{Failed: fleet.Refuse(fleet.CodeLaunchFailed, "it exited")}, fleet.Refused, true},
		{"what was never sent leaves nothing", nil, fleet.Refused, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := book.Open(t.TempDir(), process.Now)
			if err != nil {
				t.Fatal(err)
			}
			d := dispatch.Dispatcher{Ledger: b, Daemon: &knowing{hangs: 1, status: tt.status}, LockWait: time.Second, Grace: time.Minute, Now: process.Now}
			order := fleet.Order{ID: "R1", Tree: t.TempDir(), Role: fleet.RoleDev, Profile: "p", NoGit: true}
			if _, err := d.Reserve(t.Context(), order); err != nil {
				t.Fatal(err)
			}
			out, err := d.Recall(t.Context(), order)
			if out.Outcome != tt.want || (err == nil) != (tt.want == fleet.Accepted) || err == nil && (out.Member != "L1" || out.Reservation != "R1") {
				t.Errorf("recall: %+v, %v, want it %s", out, err, tt.want)
			}
			if entries, err := b.Read(); err != nil || (len(entries) == 1) != tt.stands {
				t.Errorf("entries %+v, %v, want one: %t", entries, err, tt.stands)
			}
		})
	}
}

func TestARecallThatNobodyAnswersIsUnknown(t *testing.T) {
	b, err := book.Open(t.TempDir(), process.Now)
	if err != nil {
		t.Fatal(err)
	}
	d := dispatch.Dispatcher{Ledger: b, Daemon: &knowing{hangs: 1 << 30}, LockWait: time.Second, Grace: time.Minute, Now: process.Now}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	out, err := d.Recall(ctx, fleet.Order{ID: "R1", Tree: "/src/api"})
	if r := fleet.RefusalOf(err); out.Outcome != fleet.Unknown || out.Reservation != "R1" || r == nil || r.Code != fleet.CodeOutcomeUnknown {
		t.Errorf("recall: %+v, %v, want it unknown", out, err)
	}
}
