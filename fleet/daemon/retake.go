package daemon

import (
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/ledger"
)

// RetakeEvery is how often the ledger is asked, as a rule, whether it still knows of the members here.
const RetakeEvery = 5 * time.Second

// keepHeld holds again, until the daemon ends, what the ledger has lost of the members here, and gives back what it has found again of
// those that ended. One whose tree or slot somebody else has by then is ended: there are never two. While the ledger gives no answer
// nobody is.
func (d *Daemon) keepHeld() {
	ending, told := map[string]bool{}, ""
	for {
		claims := d.claims() // before the ledger is asked: all of these were bound
		retaken, err := d.Ledger.Retake(d.ctx, claims)
		if err != nil && d.ctx.Err() == nil && err.Error() != told {
			told = err.Error()
			d.Log("look whether the members here are held: %v", err)
		}
		for _, r := range retaken {
			rec, ok := d.reg.view().byReservation(r.ID)
			switch {
			case !ok || rec.over():
				rec.Reservation = r.ID
				d.vacate(rec) // it ended in between
			case rec.Agent.Pid != 0 && !process.Alive(rec.Agent): // its tender is about to say so: nobody is to be ended, and nobody to be told
			case r.Err == nil:
				d.alarm("hold_retaken", rec, "nothing was held for member %s any more, and is again: was etcd put back from an older copy, or this host released as lost?", rec.ID)
			case !ending[rec.ID]:
				ending[rec.ID] = true
				d.alarm("hold_lost", rec, "member %s is ended, since somebody else has its place: %v", rec.ID, r.Err)
				d.tending.Go(func() { d.endLost(rec) })
			}
		}
		d.vacateOver()
		if !sleep(d.ctx, d.RetakeEvery) {
			return
		}
	}
}

// vacateOver gives back what the ledger holds for members that have ended.
func (d *Daemon) vacateOver() {
	held, err := d.Ledger.Held(d.ctx)
	if err != nil {
		return // Retake has said so
	}
	for _, rec := range d.reg.view().records {
		if rec.over() && held[rec.Reservation] {
			d.vacate(*rec)
		}
	}
}

// endLost stops a member, however long that takes.
func (d *Daemon) endLost(rec record) {
	for {
		err := d.stop(d.ctx, rec)
		if err == nil || d.ctx.Err() != nil {
			return
		}
		d.Log("end member %s: %v", rec.ID, err)
		if !sleep(d.ctx, time.Second) {
			return
		}
	}
}

// claims are what the members hold by the records.
func (d *Daemon) claims() []ledger.Claim {
	var claims []ledger.Claim
	for _, rec := range d.reg.view().records {
		if rec.Step == stepListed {
			claims = append(claims, rec.claim())
		}
	}
	return claims
}

func (r *record) claim() ledger.Claim {
	return ledger.Claim{
		ID: r.Reservation, Member: r.ID, Trees: append([]fleet.Tree{{Path: r.Tree, File: r.File}}, r.Also...),
		Role: r.Role, Profile: r.Profile, Slot: r.Slot, Since: r.AcceptedAt,
	}
}
