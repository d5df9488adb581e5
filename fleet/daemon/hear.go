package daemon

import (
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/plain"
	"fleetdeck/fleet/witness"
)

// hearings are the cases of the agents that have not ended.
type hearings struct {
	mu   sync.Mutex // guards open
	open map[string]*hearing
}

// hearing is the case of one agent.
type hearing struct {
	mu       sync.Mutex // guards all below; held while a judgement goes on record, so that they do so in their order
	who      witness.Case
	timer    *time.Timer // judges anew when time alone may change the judgement
	closed   bool
	notice   string
	noticeAt time.Time
}

// of gives the hearing of rec, which begins with what is on record. That of an agent that is over is closed.
func (h *hearings) of(rec record, animates bool, over func() bool) *hearing {
	h.mu.Lock()
	defer h.mu.Unlock()
	if over() { // asked in here: whoever records an end closes the hearing afterwards
		return &hearing{closed: true}
	}
	if h.open == nil {
		h.open = map[string]*hearing{}
	}
	one := h.open[rec.ID]
	if one == nil {
		one = &hearing{who: witness.Case{Animates: animates}}
		one.who.Restore(witness.Judgement{State: rec.State, Message: rec.StateMessage, Source: witness.Source(rec.StateSource), At: rec.StateAt}, rec.StateSeq)
		h.open[rec.ID] = one
	}
	return one
}

// close ends the hearing of id: what its process came to is known.
func (h *hearings) close(id string) {
	h.mu.Lock()
	one := h.open[id]
	delete(h.open, id)
	h.mu.Unlock()
	if one == nil {
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.closed = true
	if one.timer != nil {
		one.timer.Stop()
	}
}

func (d *Daemon) hearing(rec record) *hearing {
	a, _ := agent.Lookup(d.Config.Profiles[rec.Profile].Agent)
	return d.hearings.of(rec, a.Animates, func() bool {
		now, ok := d.reg.get(rec.ID)
		return !ok || now.over()
	})
}

// hear lets say speak in the case of rec, and puts on record what is judged then, with what else note changes of the record.
func (d *Daemon) hear(rec record, say func(*hearing) bool, note func(*record)) error {
	h := d.hearing(rec)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fleet.Refuse(fleet.CodeNotFound, "%s has ended", rec.ID)
	}
	if !say(h) {
		return nil
	}
	return d.judge(rec.ID, h, note)
}

// judge puts what is judged on record, where it changes anything. h.mu is held.
func (d *Daemon) judge(id string, h *hearing, note func(*record)) error {
	now := d.Now().Wall
	j, next := h.who.Judge(now)
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	if !next.IsZero() {
		h.timer = time.AfterFunc(max(next.Sub(now), 10*time.Millisecond), func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.closed || d.ctx.Err() != nil {
				return
			}
			if err := d.judge(id, h, nil); err != nil {
				d.Log("state of %s: %v", id, err)
			}
		})
	}
	old, ok := d.reg.get(id)
	if !ok || old.over() {
		return fleet.Refuse(fleet.CodeNotFound, "%s has ended", id)
	}
	change := func(r *record) {
		if (j.Source != witness.Launch || r.State != "") && (r.State != j.State || r.StateMessage != j.Message || r.StateSource != string(j.Source)) {
			r.State, r.StateMessage, r.StateSource, r.StateAt = j.State, j.Message, string(j.Source), j.At.UTC()
			r.StateSeq = h.who.Seq()
		}
		if note != nil {
			note(r)
		}
	}
	rec := old
	if change(&rec); reflect.DeepEqual(rec, old) {
		return nil
	}
	if err := d.reg.update(id, func(r *record) error {
		if r.over() {
			return fleet.Refuse(fleet.CodeNotFound, "%s has ended", r.ID)
		}
		change(r)
		return nil
	}); err != nil {
		return err
	}
	if rec.State != old.State && j.Source != witness.Report {
		what := string(j.State)
		if j.Message != "" {
			what += ": " + j.Message
		}
		d.events.add(levelOf(j.State), "state", rec.Tree, id, "%s (by %s)", what, j.Source)
	}
	return nil
}

func levelOf(s fleet.State) string {
	if s == fleet.StateWaiting {
		return "warn"
	}
	return "info"
}

// hearReport takes what an agent says of itself.
func (d *Daemon) hearReport(rec record, report api.Report) error {
	err := d.hear(rec, func(h *hearing) bool {
		return h.who.Hear(witness.Testimony{Source: witness.Report, State: report.State, Message: report.Message, Seen: d.Now().Wall})
	}, func(r *record) { r.Reported = true })
	if err != nil {
		return err
	}
	d.reports.wake(rec.ID)
	d.events.add(levelOf(report.State), "state", rec.Tree, rec.ID, "%s: %s", report.State, report.Message)
	return nil
}

// hearHook takes what an agent's hook says. One of another session than the agent's, or a late one, changes nothing.
func (d *Daemon) hearHook(rec record, report api.Report) error {
	session := plain.Clean(report.Session, 80)
	err := d.hear(rec, func(h *hearing) bool {
		if now, _ := d.reg.get(rec.ID); session != "" && now.Session != "" && session != now.Session && !report.Opens {
			return false
		}
		return h.who.Hear(witness.Testimony{Source: witness.Hook, State: report.State, Message: report.Message, Seq: report.Seq,
			Turn: report.Turn, Topic: plain.Clean(report.Topic, 80), Seen: d.Now().Wall})
	}, func(r *record) {
		r.Reported = true
		if session != "" {
			r.Session = session
		}
	})
	if err == nil {
		d.reports.wake(rec.ID)
	}
	return err
}

// getWitnesses tells who says what of a member.
func (d *Daemon) getWitnesses(w http.ResponseWriter, r *http.Request) error {
	rec, err := d.lookup(r)
	if err != nil {
		return err
	}
	profile := d.Config.Profiles[rec.Profile]
	a, _ := agent.Lookup(profile.Agent)
	out := api.Witnesses{
		Member:      rec.ID,
		Judgement:   api.Judgement{State: rec.State, Message: rec.StateMessage, Source: rec.StateSource, At: rec.StateAt},
		Testimonies: []api.Testimony{}, Session: rec.Session, Recorded: a.Recorded,
	}
	if session, refusal := d.resumable(rec); refusal != nil {
		out.ResumeRefused = refusal
	} else {
		for _, arg := range agent.Expand(agent.Bare(profile.Resume), nil, profile.Args) {
			out.Resume = append(out.Resume, strings.ReplaceAll(arg, "{session}", session))
		}
	}
	if !rec.over() {
		h := d.hearing(rec)
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, t := range h.who.Testimonies() {
			out.Testimonies = append(out.Testimonies, api.Testimony{Source: string(t.Source), State: t.State, Message: t.Message, At: t.At.UTC(), Seen: t.Seen.UTC()})
		}
		out.OutputAt, out.Notice, out.NoticeAt = h.who.Quiet().UTC(), h.notice, h.noticeAt.UTC()
	}
	return writeJSON(w, http.StatusOK, out)
}
