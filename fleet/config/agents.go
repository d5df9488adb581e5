package config

import (
	"fmt"
	"regexp"
	"strings"

	"fleetdeck/fleet"
	"fleetdeck/fleet/agent"
)

// fileSign says what a title or a notification means.
type fileSign struct {
	State string `toml:"state"`
	Text  string `toml:"text"`
}

// fileDialog says what a screen means: the last line that is not blank, and lines above it, in their order.
type fileDialog struct {
	State string   `toml:"state"`
	Foot  string   `toml:"foot"`
	Body  []string `toml:"body"`
}

// builtin is the profile of a known agent that nobody says more about.
func builtin(a agent.Agent) Profile {
	p := Profile{Name: a.Name, Agent: a.Name, Command: a.Command, Resume: a.Resume, Ready: Ready{On: a.Ready}, Charter: a.Charter,
		Titles: a.Titles, Notices: a.Notices, Screens: a.Screens}
	if expr, ok := strings.CutPrefix(a.Ready, "pattern:"); ok {
		p.Ready = Ready{On: "pattern", Pattern: regexp.MustCompile(expr)}
	}
	if p.Charter == "" {
		p.Charter = charterWay(a.Command)
	}
	return p
}

// signs takes over what the profile itself says of how its agent reports: its own rules come before the agent's.
func (b *builder) signs(key string, p fileProfile, out *Profile) {
	if p.Hooks != nil {
		out.Hooks = HooksNone
		if *p.Hooks {
			out.Hooks = HooksAll
		}
	}
	read := func(name string, own []fileSign, builtin []agent.Sign) []agent.Sign {
		var signs []agent.Sign
		for i, s := range own {
			at := fmt.Sprintf("%s.%s[%d]", key, name, i)
			signs = append(signs, agent.Sign{State: b.state(at+".state", s.State), Text: b.pattern(at+".text", s.Text)})
		}
		return append(signs, builtin...)
	}
	out.Titles = read("titles", p.Titles, out.Titles)
	out.Notices = read("notices", p.Notices, out.Notices)
	var dialogs []agent.Dialog
	for i, s := range p.Screens {
		at := fmt.Sprintf("%s.screens[%d]", key, i)
		d := agent.Dialog{State: b.state(at+".state", s.State), Foot: b.pattern(at+".foot", s.Foot)}
		for _, expr := range s.Body {
			d.Body = append(d.Body, b.pattern(at+".body", expr))
		}
		dialogs = append(dialogs, d)
	}
	out.Screens = append(dialogs, out.Screens...)
}

func (b *builder) state(key, s string) fleet.State {
	state := fleet.State(s)
	if !state.Reportable() {
		b.fail(key, "%q is unknown: use working, idle, waiting or done", s)
	}
	return state
}

// pattern compiles a rule. An empty one would match everything: that is a rule without its anchor.
func (b *builder) pattern(key, expr string) *regexp.Regexp {
	if expr == "" {
		b.fail(key, "is empty, and would match everything")
		return nil
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		b.fail(key, "%v", err)
	}
	return re
}
