// Package agent knows the agents that people run: how each is started and resumed, how it is handed charter and task, how
// its session is known, and how what it says of itself is read.
//
// It is pure but for [OnPath]: an adapter is data and functions of their arguments, one file an agent. Nothing here edits a
// file of the user's: what an agent needs in order to report is handed to that one launch, as arguments, as variables and as
// files in the member's own directory. Package fleet is all that it depends on.
package agent

import (
	"os/exec"
	"slices"
	"strings"

	"fleetdeck/fleet"
)

// Agent is a known agent.
type Agent struct {
	Name string
	// Command is run in the tree. {task}, {task_file}, {charter}, {charter_file} and {session} are replaced; an argument that
	// is only {task} is left out where there is no task, and one that is only {hooks} or {args} gives way to any number:
	// those of [Injection] and those of the profile.
	Command []string
	// Resume takes the session {session} up again, and is told a further {task}, if there is one; empty where the agent cannot.
	Resume []string
	// Charter is the way by which it is handed its charter where its command does not say.
	Charter string
	// Ready is when a launch of it is listed.
	Ready string
	// Recorded is the version whose payloads, titles and screens the rules below were made from; empty means that they
	// follow its documentation and were not tried.
	Recorded string
	// Titles and Notices say what a terminal title, and a notification, of it mean: the first that matches.
	Titles, Notices []Sign
	// Screens say what its screen means: the first that matches.
	Screens []Dialog
	// Animates says that it redraws something all the time while it works.
	Animates bool

	inject func(Launch) Injection
	read   func(payload []byte) (Report, bool)
}

// Launch is what an adapter is told of the launch that is to report.
type Launch struct {
	// Exe is this program's absolute path, Dir the member's own directory.
	Exe, Dir string
	// Charter is the charter's file.
	Charter string
	// Report asks that it reports at all, All for hooks too that the agent's own trust gate would stop: the profile opted in.
	Report, All bool
}

// Injection is what one launch is given so that it reports.
type Injection struct {
	// Args take the place of {hooks}.
	Args []string
	// Env is set where neither the profile nor the user set it.
	Env []string
	// Files are written into the member's directory, by name.
	Files map[string]string
}

// Report is what a hook's payload says.
type Report struct {
	// State is empty where it says nothing of that.
	State   fleet.State
	Message string
	// Session is the agent's own name of its session.
	Session string
	// Opens says that it may be of another session than before: elsewhere that would be a nested agent's, or a stray one.
	Opens bool
	// Turn says that a turn begins or ends with this.
	Turn string
	// Topic is what it is about, such as one call of a tool: who waits because of it is not done waiting because of another.
	Topic string
}

// The ends of a turn.
const (
	TurnBegins = "begin"
	TurnEnds   = "end"
)

// known are the agents with an adapter, in the order in which they are offered.
var known = []Agent{claude, codex, opencode, gemini, aider, plainShell}

// Lookup finds a known agent.
func Lookup(name string) (Agent, bool) {
	for _, a := range known {
		if a.Name == name {
			return a, true
		}
	}
	return Agent{}, false
}

// Names are the names of the known agents.
func Names() []string {
	names := make([]string, len(known))
	for i, a := range known {
		names[i] = a.Name
	}
	return names
}

// OnPath are the known agents that can be run here, the shell always among them.
func OnPath() []Agent {
	var found []Agent
	for _, a := range known {
		if _, err := exec.LookPath(a.Command[0]); err == nil || a.Name == plainShell.Name {
			found = append(found, a)
		}
	}
	return found
}

// Inject is what a launch of a is given so that it reports by itself. It is empty for an agent that has no such way.
func (a Agent) Inject(l Launch) Injection {
	if a.inject == nil {
		return Injection{}
	}
	return a.inject(l)
}

// Read reads the payload that a hook was called with. It reports false for one that says nothing of this session.
func (a Agent) Read(payload []byte) (Report, bool) {
	if a.read == nil {
		return Report{}, false
	}
	return a.read(payload)
}

// Tells reports whether a's hooks say which session it is in.
func (a Agent) Tells() bool { return a.read != nil }

// Expand replaces each argument of command that is only {hooks} or {args} by what stands for it.
func Expand(command, hooks, args []string) []string {
	out := make([]string, 0, len(command)+len(hooks)+len(args))
	for _, arg := range command {
		switch arg {
		case "{hooks}":
			out = append(out, hooks...)
		case "{args}":
			out = append(out, args...)
		default:
			out = append(out, arg)
		}
	}
	return out
}

// Bare is command for a person to type: without the arguments that hold charter or task, and the options that they belong to.
func Bare(command []string) []string {
	var out []string
	for _, arg := range command {
		if !strings.Contains(arg, "{charter") && !strings.Contains(arg, "{task") {
			out = append(out, arg)
			continue
		}
		if last := len(out) - 1; last >= 0 && !strings.HasPrefix(arg, "-") && strings.HasPrefix(out[last], "-") {
			out = out[:last]
		}
	}
	return out
}

// Mentions reports whether a part of command holds the placeholder.
func Mentions(command []string, placeholder string) bool {
	return slices.ContainsFunc(command, func(arg string) bool { return strings.Contains(arg, placeholder) })
}

// hookCommand is the command, as a shell reads it, that hands what it is given to this program.
func hookCommand(exe, agent string) string {
	return "'" + strings.ReplaceAll(exe, "'", `'\''`) + "' hook " + agent
}
