// Package agent knows the agents that people run: their commands, and how it is seen that they are ready.
package agent

import (
	"os"
	"os/exec"
)

// Agent is a known agent.
type Agent struct {
	Name string
	// Command is run in the tree. {task}, {task_file}, {charter} and {charter_file} are replaced; an argument that is
	// only {task} is left out where there is no task.
	Command []string
	// Ready is when a launch of it is listed.
	Ready string
}

// A task may begin with a dash: "--" keeps it from being read as an option.
//
// known are the agents with a profile of their own, in the order in which they are offered.
var known = []Agent{
	{Name: "claude", Command: []string{"claude", "--append-system-prompt", "{charter}", "--", "{task}"}, Ready: "output"},
	{Name: "codex", Command: []string{"codex", "-c", "developer_instructions={charter}", "--", "{task}"}, Ready: "output"},
	{Name: "shell", Command: []string{shell()}, Ready: "started"},
}

func shell() string {
	if sh := os.Getenv("SHELL"); sh != "" {
		return sh
	}
	return "/bin/sh"
}

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
		if _, err := exec.LookPath(a.Command[0]); err == nil || a.Name == "shell" {
			found = append(found, a)
		}
	}
	return found
}
