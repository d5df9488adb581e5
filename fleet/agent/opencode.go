package agent

import (
	"encoding/json"
	"net/url"

	"fleetdeck/fleet"
)

// opencode is OpenCode. A variable of the launch's own adds to its configuration: the charter as one of its instructions, and
// a plugin that hands its events to this program.
var opencode = Agent{
	Name:     "opencode",
	Command:  []string{"opencode", "{hooks}", "{args}", "--prompt={task}"},
	Resume:   []string{"opencode", "{hooks}", "{args}", "--session", "{session}"}, // with a session it does nothing about --prompt
	Charter:  "file",
	Ready:    "output",
	Recorded: "1.18.33",
	inject:   injectOpenCode,
	read:     readOpenCode,
}

// opencodePlugin passes events on, without waiting: a report that is lost is better than an agent that is held up. An OpenCode
// that is started from within inherits the variable that names the plugin, and is another agent: it finds whose it is, and is mute.
const opencodePlugin = `// Tells fleetdeck what this session is doing. Made for one launch.
const told = new Set(["session.created", "session.status", "session.idle", "session.error", "permission.asked", "permission.updated", "permission.replied", "question.asked", "question.replied", "question.rejected"])
const self = String(process.pid)
process.env.FLEETDECK_TELLER ??= self
export const Fleetdeck = async () => process.env.FLEETDECK_TELLER !== self ? {} : ({
  event: async ({ event }) => {
    if (!told.has(event.type)) return
    try {
      const hook = Bun.spawn([process.env.FLEETDECK_EXE, "hook", "opencode"], { stdin: "pipe", stdout: "ignore", stderr: "ignore" })
      hook.stdin.write(JSON.stringify(event))
      hook.stdin.end()
      hook.unref()
    } catch {}
  },
})
`

func injectOpenCode(l Launch) Injection {
	const name = "opencode-plugin.js"
	conf := map[string][]string{"instructions": {l.Charter}}
	var in Injection
	if l.Report {
		file := url.URL{Scheme: "file", Path: l.Dir + "/" + name}
		conf["plugin"] = []string{file.String()}
		in.Files = map[string]string{name: opencodePlugin}
	}
	text, _ := json.Marshal(conf) // strings only: it cannot fail
	in.Env = []string{"OPENCODE_CONFIG_CONTENT=" + string(text)}
	return in
}

// readOpenCode reads an event. One of a session that another one began belongs to a task that the agent gave to another.
func readOpenCode(payload []byte) (Report, bool) {
	var e struct {
		Type       string `json:"type"`
		Properties struct {
			Session string `json:"sessionID"`
			Status  struct {
				Type string `json:"type"`
			} `json:"status"`
			Info struct {
				ID     string `json:"id"`
				Parent string `json:"parentID"`
			} `json:"info"`
			ID         string `json:"id"`
			Title      string `json:"title"`
			Permission string `json:"permission"`
			Patterns   []string
			Questions  []struct {
				Question string `json:"question"`
			} `json:"questions"`
			Error struct {
				Name string `json:"name"`
				Data struct {
					Message string `json:"message"`
				} `json:"data"`
			} `json:"error"`
		} `json:"properties"`
	}
	if json.Unmarshal(payload, &e) != nil {
		return Report{}, false
	}
	p := e.Properties
	r := Report{Session: p.Session}
	switch e.Type {
	case "session.created":
		if p.Info.Parent != "" {
			return Report{}, false
		}
		r.Session, r.Opens = p.Info.ID, true
	case "session.status":
		switch p.Status.Type {
		case "busy", "retry":
			r.State = fleet.StateWorking
		case "idle":
			r.State, r.Turn = fleet.StateIdle, TurnEnds
		default:
			return Report{}, false
		}
	case "session.idle":
		r.State, r.Turn = fleet.StateIdle, TurnEnds
	case "session.error":
		r.State, r.Turn, r.Message = fleet.StateIdle, TurnEnds, brief(p.Error.Name+" "+p.Error.Data.Message)
	case "permission.asked", "permission.updated":
		what := p.Title
		if what == "" {
			what = p.Permission
			for _, pattern := range p.Patterns {
				what += " " + pattern
			}
		}
		r.State, r.Message = fleet.StateWaiting, brief("allow "+what+"?")
	case "question.asked":
		r.State = fleet.StateWaiting
		if len(p.Questions) > 0 {
			r.Message = brief(p.Questions[0].Question)
		}
	case "permission.replied", "question.replied", "question.rejected":
		r.State = fleet.StateWorking
	default:
		return Report{}, false
	}
	return r, true
}
