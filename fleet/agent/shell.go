package agent

import "os"

// plainShell is the user's shell, for whoever works by hand.
var plainShell = Agent{Name: "shell", Command: []string{loginShell()}, Ready: "started"}

func loginShell() string {
	if sh := os.Getenv("SHELL"); sh != "" {
		return sh
	}
	return "/bin/sh"
}
