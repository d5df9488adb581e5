package daemon

import (
	"regexp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
	"fleetdeck/fleet/config"
)

// sessionName is what can be the name of a session. The agent says it: it must not be read as an option.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`)

// resumable gives the session of rec's agent that a new launch can take up, empty where the profile needs no name for it, or says
// why there is none.
func (d *Daemon) resumable(rec record) (session string, refusal *fleet.Refusal) {
	const instead = "restart it without --resume: that begins a new session, with its charter and task"
	p, ok := d.Config.Profiles[rec.Profile]
	switch {
	case !ok:
		return "", fleet.Refuse(fleet.CodeProfileUnknown, "profile %q is configured no more", rec.Profile)
	case len(p.Resume) == 0:
		return "", fleet.Refuse(fleet.CodeLaunchFailed, "profile %s has no command that takes a session up again", p.Name).WithHint("%s", instead)
	}
	if _, err := lookPath(p.Resume[0], d.environment(p, nil, nil)); err != nil {
		return "", fleet.Refuse(fleet.CodeLaunchFailed, "profile %s: %w", p.Name, err).
			WithHint("install it, or mend the profile's resume in fleetdeck.toml")
	}
	if !agent.Mentions(p.Resume, "{session}") {
		return "", nil
	}
	if !sessionName.MatchString(rec.Session) || rec.Resumes == "" && !rec.Reported && tellsSession(p) {
		return "", fleet.Refuse(fleet.CodeLaunchFailed, "no session of %s is known: its agent has not told of one", rec.ID).WithHint("%s", instead)
	}
	return rec.Session, nil
}

// tellsSession reports whether an agent on p tells once it begins a session, also one that its command names.
func tellsSession(p config.Profile) bool {
	a, _ := agent.Lookup(p.Agent)
	return a.Tells() && p.Hooks != config.HooksNone && agent.Mentions(p.Command, "{hooks}")
}

// resume makes rec take up the session of the member before, if one is named. That must have ended, and been the same.
func (d *Daemon) resume(rec *record, before string) error {
	if before == "" {
		return nil
	}
	was, ok := d.reg.get(before)
	if !ok {
		return fleet.Refuse(fleet.CodeNotFound, "no such member: %s, whose session is to be taken up", before)
	}
	role := was.RequestedRole
	if role == "" {
		role = was.Role
	}
	if !was.over() || was.Tree != rec.Tree || was.Profile != rec.Profile || role != rec.RequestedRole {
		return fleet.Refuse(fleet.CodeBadRequest, "the session of %s (%s on %s in %s) is taken up once it has ended, as the same and in the same tree",
			was.ID, role, was.Profile, was.Tree)
	}
	session, refusal := d.resumable(was)
	if refusal != nil {
		return refusal
	}
	p := d.Config.Profiles[rec.Profile]
	rec.Resumes, rec.Session = was.ID, session
	switch {
	case rec.Task == "":
		rec.Task, rec.TaskTold = was.Task, true
	case p.Charter != config.CharterTyped && !agent.Mentions(p.Resume, "{task"):
		return fleet.Refuse(fleet.CodeLaunchFailed, "the resume command of profile %s takes no task", p.Name).
			WithHint("resume it without one, and then type it: fleetdeck send MEMBER TEXT")
	}
	if rec.keepsCharter(p) {
		rec.CharterSHA256 = was.CharterSHA256
	}
	return nil
}

// command is what r runs on p.
func (r *record) command(p config.Profile) []string {
	if r.Resumes != "" {
		return p.Resume
	}
	return p.Command
}

// session is what {session} stands for in r's command.
func (r *record) session() string {
	if r.Resumes != "" {
		return r.Session
	}
	return sessionOf(r.ID)
}

// toTell is the task that r's agent is handed.
func (r *record) toTell() string {
	if r.TaskTold {
		return ""
	}
	return r.Task
}

// keepsCharter reports whether r's agent is on the charter that its session was handed when it began, since the command that takes
// it up hands over none: the receipt is that of then.
func (r *record) keepsCharter(p config.Profile) bool {
	return r.Resumes != "" && p.Charter != config.CharterTyped && agent.Mentions(p.Command, "{charter") && !agent.Mentions(p.Resume, "{charter")
}
