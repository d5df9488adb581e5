package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/plain"
)

// handler routes the API. Every call comes from the daemon's own user: others are turned away before it is read.
func (d *Daemon) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h func(w http.ResponseWriter, r *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r); err != nil {
				writeError(w, err)
			}
		})
	}
	handle("GET /v1/health", d.getHealth)
	handle("POST /v1/members", d.postMember)
	handle("GET /members", d.getMembers)
	handle("GET /v1/members", d.getMembers)
	handle("GET /v1/roster", d.getRoster)
	handle("GET /v1/launches", d.getLaunches)
	handle("GET /v1/launches/{id}", d.getLaunch)
	handle("GET /v1/reservations/{id}", d.getReservation)
	handle("GET /v1/slots", d.getSlots)
	handle("GET /v1/trees", d.getTrees)
	handle("GET /v1/members/{id}", d.getMember)
	handle("DELETE /v1/members/{id}", d.deleteMember)
	handle("GET /v1/members/{id}/screen", d.getScreen)
	handle("GET /v1/members/{id}/log", d.getLog)
	handle("POST /v1/members/{id}/input", d.postInput)
	handle("POST /v1/members/{id}/state", d.postState)
	handle("GET /v1/members/{id}/witnesses", d.getWitnesses)
	handle("GET /v1/whoami", d.getWhoami)
	handle("GET /v1/may/{what}", d.getMay)
	handle("GET /v1/events", d.getEvents)
	handle("POST /v1/shutdown", d.postShutdown)
	mux.Handle("/mcp", d.mcpHandler())
	handle("/", func(_ http.ResponseWriter, r *http.Request) error {
		return fleet.Refuse(fleet.CodeNotFound, "no such call: %s %s", r.Method, r.URL.Path)
	})
	return whole(bodyTimeout, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkPeer(r.Context()); err != nil {
			writeError(w, fleet.Refuse(fleet.CodeNotAllowed, "%w", err))
			return
		}
		// A token that is no live member's is worth nothing, not even what needs none.
		if _, err := d.caller(r); err != nil && r.URL.Path != "/v1/health" {
			d.turnedAway(r, err)
			writeError(w, err)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

func (d *Daemon) getHealth(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, api.Health{Status: "ok", Pid: d.pid(), Version: d.Version, Since: d.since})
}

func (d *Daemon) postMember(w http.ResponseWriter, r *http.Request) error {
	caller, err := d.caller(r)
	if err != nil {
		return err
	}
	var req api.Spawn
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if err := d.allow(caller, "spawn"); err != nil {
		return err
	}
	// The decision does not hang on the caller's patience: once taken it is carried out.
	rec, err := d.admit(context.WithoutCancel(r.Context()), req)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, accepted(rec))
}

func accepted(rec record) api.Accepted {
	if rec.launching() {
		l := rec.launch()
		return api.Accepted{Launch: &l}
	}
	m := rec.member()
	return api.Accepted{Member: &m}
}

func (d *Daemon) getMembers(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, d.outdated(d.reg.view().roster.Members))
}

func (d *Daemon) getRoster(w http.ResponseWriter, _ *http.Request) error {
	roster := d.reg.view().roster
	roster.Foreign = d.foreignIn(roster)
	roster.Members = d.outdated(roster.Members)
	return writeJSON(w, http.StatusOK, roster)
}

func (d *Daemon) getLaunches(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, d.reg.view().roster.Launches)
}

func (d *Daemon) getLaunch(w http.ResponseWriter, r *http.Request) error {
	rec, err := d.lookup(r)
	if err != nil {
		return err
	}
	d.awaitGivenBack(r.Context(), rec)
	return writeJSON(w, http.StatusOK, launchStatus(rec))
}

// getReservation tells what became of a reservation that a spawn came with.
func (d *Daemon) getReservation(w http.ResponseWriter, r *http.Request) error {
	rec, ok := d.reg.view().byReservation(r.PathValue("id"))
	if !ok {
		return fleet.Refuse(fleet.CodeNotFound, "no spawn was accepted for reservation %s", plain.Clean(r.PathValue("id"), 80))
	}
	d.awaitGivenBack(r.Context(), rec)
	return writeJSON(w, http.StatusOK, launchStatus(rec))
}

func launchStatus(rec record) api.LaunchStatus {
	var s api.LaunchStatus
	switch {
	case rec.launching():
		l := rec.launch()
		s.Launch = &l
	case rec.Step == stepFailed:
		s.Failed = rec.Failure
	default:
		m := rec.member()
		s.Member = &m
	}
	return s
}

func (d *Daemon) getSlots(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, d.pool.List())
}

// getTrees gives the trees that the daemon knows of by itself: those of its launches and members.
func (d *Daemon) getTrees(w http.ResponseWriter, _ *http.Request) error {
	roster, rows := d.reg.view().roster, []fleet.TreeRow{}
	for _, l := range roster.Launches {
		for _, t := range append([]fleet.Tree{{Path: l.Tree}}, l.Also...) {
			rows = append(rows, fleet.TreeRow{Tree: t.Path, Occupancy: fleet.Reserved, Reservation: l.Reservation,
				RemainingS: max(0, l.Deadline.Remaining(d.Now()).Seconds())})
		}
	}
	for _, m := range roster.Members {
		for _, t := range append([]fleet.Tree{{Path: m.Tree}}, m.Also...) {
			if m.Alive() {
				rows = append(rows, fleet.TreeRow{Tree: t.Path, Occupancy: fleet.Taken, Member: m.ID, Reservation: m.Reservation})
			}
		}
	}
	return writeJSON(w, http.StatusOK, rows)
}

func (d *Daemon) getMember(w http.ResponseWriter, r *http.Request) error {
	rec, err := d.lookup(r)
	if err != nil {
		return err
	}
	if rec.launching() || rec.Step == stepFailed {
		return fleet.Refuse(fleet.CodeNotFound, "%s is no member: its launch is %s", rec.ID, rec.Step)
	}
	return writeJSON(w, http.StatusOK, d.outdated([]fleet.Member{rec.member()})[0])
}

func (d *Daemon) getScreen(w http.ResponseWriter, r *http.Request) error {
	rec, err := d.lookup(r)
	if err != nil {
		return err
	}
	after, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	screen, err := d.screens.get(r.Context(), d, rec, after)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, screen)
}

func (d *Daemon) getLog(w http.ResponseWriter, r *http.Request) error {
	rec, err := d.lookup(r)
	if err != nil {
		return err
	}
	term, err := d.find(r.Context(), rec)
	if err != nil {
		return fleet.Refuse(fleet.CodeNotFound, "the log of %s: %w", rec.ID, err)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	follow := r.URL.Query().Get("follow") == "true"
	status, serr := term.Status(r.Context())
	data, err := term.Log(0)
	if err != nil {
		return fmt.Errorf("the log of %s: %w", rec.ID, err)
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := w.Write(data); err != nil || !follow || serr != nil {
		return nil
	}
	flush := http.NewResponseController(w)
	flush.Flush()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	// What came between the two looks is told twice rather than never.
	frames, err := term.Follow(ctx, launch.FollowOptions{Output: true, From: status.Output})
	if err != nil {
		return nil
	}
	for frame := range frames {
		if len(frame.Data) == 0 {
			continue
		}
		flush.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := w.Write(frame.Data); err != nil || flush.Flush() != nil {
			return nil
		}
	}
	return nil
}

func (d *Daemon) postInput(w http.ResponseWriter, r *http.Request) error {
	caller, err := d.caller(r)
	if err != nil {
		return err
	}
	var in api.Input
	if err := readJSON(r, &in); err != nil {
		return err
	}
	rec, err := d.lookup(r)
	if err != nil {
		return err
	}
	if err := d.allow(caller, "send"); err != nil {
		return err
	}
	if rec.over() {
		return fleet.Refuse(fleet.CodeNotFound, "%s has ended", rec.ID)
	}
	term, err := d.find(r.Context(), rec)
	if err != nil {
		return fmt.Errorf("write to %s: %w", rec.ID, err)
	}
	if err := d.screens.typeText(r.Context(), d, rec, term, in); err != nil {
		return fmt.Errorf("write to %s: %w", rec.ID, err)
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

func (d *Daemon) postState(w http.ResponseWriter, r *http.Request) error {
	caller, err := d.caller(r)
	if err != nil {
		return err
	}
	var report api.Report
	if err := readJSON(r, &report); err != nil {
		return err
	}
	rec, err := d.lookup(r)
	if err != nil {
		return err
	}
	if caller == nil || caller.ID != rec.ID {
		return d.forbid(caller, "only %s itself may report its state, with its token", rec.ID)
	}
	if !report.State.Reportable() && (report.Source != api.SourceHook || report.State != "") {
		return fleet.Refuse(fleet.CodeBadRequest, "state %q is unknown: use working, idle, waiting or done", report.State)
	}
	report.Message = plain.Clean(report.Message, 500)
	if report.Source == api.SourceHook {
		err = d.hearHook(rec, report)
	} else {
		err = d.hearReport(rec, report)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

func (d *Daemon) getWhoami(w http.ResponseWriter, r *http.Request) error {
	caller, err := d.caller(r)
	if err != nil {
		return err
	}
	if caller == nil {
		return fleet.Refuse(fleet.CodeNotAllowed, "whoami needs a member's token").
			WithHint("it is in $FLEETDECK_TOKEN of an agent that fleetdeck started")
	}
	may := d.Config.Roles[caller.Role].May
	if may == nil {
		may = []string{}
	}
	return writeJSON(w, http.StatusOK, api.Identity{
		Member: caller.ID, Role: caller.Role, Slot: caller.Slot, Tree: caller.Tree, Profile: caller.Profile,
		CharterSHA256: d.receipt(r.Context(), *caller), CharterMismatch: caller.CharterMismatch, May: may,
	})
}

// forbid refuses the caller something, loudly.
func (d *Daemon) forbid(caller *record, format string, args ...any) error {
	refusal := fleet.Refuse(fleet.CodeNotAllowed, format, args...)
	who := record{}
	if caller != nil {
		who = *caller
	}
	d.alarm("not_allowed", who, "refused: %v", refusal)
	return refusal
}

func readJSON(r *http.Request, v any) error {
	dec := json.NewDecoder(r.Body)
	if err := dec.Decode(v); err != nil {
		return fleet.Refuse(fleet.CodeBadRequest, "read the request: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fleet.Refuse(fleet.CodeBadRequest, "read the request: there is more than one JSON value")
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(data, '\n'))
	return nil
}

// writeError answers with a code. Only what is no refusal is an internal error: then nobody knows what was done.
func writeError(w http.ResponseWriter, err error) {
	refusal, status := fleet.RefusalOf(err), http.StatusConflict
	if refusal == nil {
		refusal, status = &fleet.Refusal{Code: fleet.CodeInternal, Message: err.Error()}, http.StatusInternalServerError
	}
	switch refusal.Code {
	case fleet.CodeNotFound:
		status = http.StatusNotFound
	case fleet.CodeNotAllowed:
		status = http.StatusForbidden
	case fleet.CodeBadRequest, fleet.CodeProfileUnknown, fleet.CodeRoleUnknown, fleet.CodeSlotUnconfigured, fleet.CodeLaunchFailed:
		status = http.StatusUnprocessableEntity
	}
	writeJSON(w, status, refusal)
}
