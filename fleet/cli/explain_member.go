package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"fleetdeck/fleet/api"
	"fleetdeck/fleet/plain"
)

// memberNamed finds the member that name means by its id or the end of one. What is a path is none: a member's tree is
// explained as a tree.
func (s *session) memberNamed(ctx context.Context, name string) (id string, ok bool) {
	if strings.ContainsAny(name, "/.~") {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	roster, err := s.client.Roster(ctx)
	if err != nil {
		return "", false // without the daemon nobody knows its members; a tree is explained without it too
	}
	ids := make([]string, 0, len(roster.Members)+len(roster.Launches))
	for _, m := range roster.Members {
		ids = append(ids, m.ID)
	}
	for _, l := range roster.Launches {
		ids = append(ids, l.ID)
	}
	for _, known := range ids {
		switch {
		case strings.EqualFold(known, name):
			return known, true
		case len(name) >= 4 && strings.HasSuffix(known, strings.ToUpper(name)):
			if ok {
				return "", false // more than one
			}
			id, ok = known, true
		}
	}
	if _, err := os.Lstat(name); err == nil {
		return "", false
	}
	return id, ok
}

// explainMember says who says what of a member.
func explainMember(ctx context.Context, s *session, id string) error {
	w, err := s.client.Witnesses(ctx, id)
	if err != nil {
		return err
	}
	if s.json {
		return s.printJSON(w)
	}
	return printLines(s.out, witnessLines(w, now().Wall))
}

// witnessLines is w for people who read it at now.
func witnessLines(w api.Witnesses, now time.Time) []string {
	said := func(state, message string) string {
		if message == "" {
			return state
		}
		return state + ": " + plain.Clean(message, 200)
	}
	line := func(label, format string, args ...any) string {
		return fmt.Sprintf("%-10s", label) + fmt.Sprintf(format, args...)
	}
	state, source := string(w.Judgement.State), w.Judgement.Source
	if state == "" {
		state, source = "unknown", "launch"
	}
	lines := []string{line("member", "%s", w.Member), line("state", "%s", said(state, w.Judgement.Message))}
	by := "by " + sourceNames[source]
	if !w.Judgement.At.IsZero() {
		by += ", since " + clock(w.Judgement.At, now)
	}
	lines = append(lines, line("", "%s", by))
	for _, t := range w.Testimonies {
		when := "at " + clock(t.At, now)
		if t.Seen.Sub(t.At) >= time.Second {
			when = "since " + clock(t.At, now) + ", last " + age(t.Seen, now) + " ago"
		}
		lines = append(lines, line(t.Source, "%s (%s)", said(string(t.State), t.Message), when))
	}
	if len(w.Testimonies) == 0 && source != "process" {
		lines = append(lines, line("witnesses", "none yet"))
	}
	if !w.OutputAt.IsZero() {
		lines = append(lines, line("output", "last %s ago", age(w.OutputAt, now)))
	}
	if w.Notice != "" {
		lines = append(lines, line("notice", "%s (at %s)", plain.Clean(w.Notice, 200), clock(w.NoticeAt, now)))
	}
	if w.Session != "" {
		lines = append(lines, line("session", "%s", plain.Clean(w.Session, 80)))
	}
	if len(w.Resume) > 0 {
		var command []string
		for _, arg := range w.Resume {
			command = append(command, plain.Clean(arg, 200))
		}
		lines = append(lines, line("resume", "%s", commandLine(command...)))
	}
	if w.ResumeRefused != nil {
		lines = append(lines, line("resume", "not possible: %s", plain.Clean(w.ResumeRefused.Message, 200)))
	}
	if w.Recorded != "" {
		lines = append(lines, line("rules", "made from version %s of the agent", w.Recorded))
	}
	return lines
}

// sourceNames are the sources as people read them.
var sourceNames = map[string]string{
	"hook": "the agent's own hook", "report": "the agent's own report", "title": "the terminal's title",
	"progress": "the terminal's progress and notifications", "screen": "its screen, by a rule that knows it",
	"silence": "its silence", "process": "its process", "launch": "nobody yet",
}
