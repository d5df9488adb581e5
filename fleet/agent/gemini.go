package agent

import "fleetdeck/fleet"

// gemini is Google's Gemini CLI. It has no flag for a charter beside its own instructions, so charter and task are its first
// prompt, in one argument with its option, whatever they begin with.
var gemini = Agent{
	Name:     "gemini",
	Command:  []string{"gemini", "{args}", "--session-id", "{session}", "--prompt-interactive={charter}\n\n{task}"},
	Resume:   []string{"gemini", "{args}", "--resume", "{session}", "--prompt-interactive={task}"},
	Ready:    "output",
	Recorded: "0.61.0",
	Titles: []Sign{
		sign(fleet.StateWaiting, `^✋`),
		sign(fleet.StateWorking, `^✦`),
		sign(fleet.StateIdle, `^◇`),
	},
	Screens: []Dialog{
		dialog(fleet.StateWaiting, `^\s*╰─+╯\s*$`, `^\s*│\s*(\S.*\?)\s*│\s*$`, `^\s*│\s*●\s*\d+\.`),
	},
}
