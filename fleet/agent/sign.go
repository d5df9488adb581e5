package agent

import (
	"regexp"
	"strings"

	"fleetdeck/fleet"
)

// Sign says what a line of text means.
type Sign struct {
	State fleet.State
	Text  *regexp.Regexp
}

func sign(state fleet.State, text string) Sign { return Sign{state, regexp.MustCompile(text)} }

// ReadSign finds what text means by the first of signs that matches.
func ReadSign(signs []Sign, text string) (fleet.State, bool) {
	for _, s := range signs {
		if s.Text.MatchString(text) {
			return s.State, true
		}
	}
	return "", false
}

// Dialog says what a screen means. It is anchored to the frame of what the agent draws, so that nothing that an agent merely
// writes, however much it looks like a question, can match.
type Dialog struct {
	State fleet.State
	// Foot matches the last line of the screen that is not blank.
	Foot *regexp.Regexp
	// Body must match lines above it, in this order. The first submatch, if there is one, is what it asks.
	Body []*regexp.Regexp
}

func dialog(state fleet.State, foot string, body ...string) Dialog {
	d := Dialog{State: state, Foot: regexp.MustCompile(foot)}
	for _, expr := range body {
		d.Body = append(d.Body, regexp.MustCompile(expr))
	}
	return d
}

// ReadScreen finds what a screen means by the first of dialogs that matches. One that none matches is unknown: never idle.
func ReadScreen(dialogs []Dialog, lines []string) (state fleet.State, question string) {
	last := len(lines) - 1
	for last >= 0 && strings.TrimSpace(lines[last]) == "" {
		last--
	}
	if last < 0 {
		return fleet.StateUnknown, ""
	}
	for _, d := range dialogs {
		if q, ok := d.match(lines[:last], lines[last]); ok {
			return d.State, q
		}
	}
	return fleet.StateUnknown, ""
}

func (d Dialog) match(above []string, foot string) (question string, ok bool) {
	if !d.Foot.MatchString(foot) {
		return "", false
	}
	for _, expr := range d.Body {
		found := false
		for i, line := range above {
			m := expr.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			if question == "" && len(m) > 1 {
				question = strings.TrimSpace(m[1])
			}
			above, found = above[i+1:], true
			break
		}
		if !found {
			return "", false
		}
	}
	return question, true
}
