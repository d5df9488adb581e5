package foreign

import (
	"path"
	"slices"
	"strings"

	"fleetdeck/fleet/agent"
)

// names are the agents that are looked for: those that fleetdeck knows how to start, and a few more that people use.
var names = func() []string {
	all := []string{"claude", "codex", "opencode", "gemini", "aider"}
	for _, name := range agent.Names() {
		if name != "shell" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}()

// packages are directories that agents are installed in, whatever their script is called there.
var packages = map[string]string{
	"/@anthropic-ai/claude-code/": "claude",
	"/@openai/codex/":             "codex",
	"/opencode-ai/":               "opencode",
	"/@google/gemini-cli/":        "gemini",
	"/site-packages/aider/":       "aider",
}

// valued are, by interpreter, the options before its script that take the next argument as their value.
var valued = map[string][]string{
	"node": {"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"},
	"bun":  {"-r", "--preload", "--cwd"}, "deno": {},
	"python": {"-W", "-X"},
	"sh":     {"-o"}, "bash": {"-o", "-O", "--rcfile", "--init-file"}, "dash": {"-o"}, "zsh": {"-o"}, "ksh": {"-o"},
}

// heldBy is the member whose terminal argv is the holder of; empty if it is no holder.
func heldBy(argv []string) string {
	if len(argv) != 4 || argv[1] != "holder" && argv[1] != "pane" || argv[2] != "--dir" {
		return ""
	}
	return path.Base(argv[3])
}

// programOf is the name of what argv runs.
func programOf(argv []string) string {
	if len(argv) == 0 {
		return "agent"
	}
	return path.Base(argv[0])
}

// agentOf names the agent that a command line runs, by itself or through an interpreter; empty if it is none.
func agentOf(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	if name := named(argv[0]); name != "" {
		return name
	}
	interpreter := strings.TrimRight(path.Base(argv[0]), "0123456789.") // python3.12
	if interpreter == "nodejs" {
		interpreter = "node"
	}
	takes, ok := valued[interpreter]
	if !ok {
		return ""
	}
	for args := argv[1:]; len(args) > 0; args = args[1:] {
		switch arg := args[0]; {
		case arg == "-m" && interpreter == "python" && len(args) > 1:
			return named(args[1])
		case arg == "--" && len(args) > 1:
			return named(args[1])
		case arg == "run" && (interpreter == "bun" || interpreter == "deno"):
		case slices.Contains(takes, arg) && len(args) > 1:
			args = args[1:]
		case strings.HasPrefix(arg, "-c"), strings.HasPrefix(arg, "-e"), strings.HasPrefix(arg, "--eval"), arg == "-p", arg == "--print":
			return "" // the program is text, not a file
		case !strings.HasPrefix(arg, "-"):
			return named(arg)
		}
	}
	return ""
}

// named is the agent that the program at path is.
func named(program string) string {
	base := path.Base(program)
	for _, ext := range []string{".js", ".mjs", ".cjs", ".py"} {
		base = strings.TrimSuffix(base, ext)
	}
	if slices.Contains(names, base) {
		return base
	}
	for dir, name := range packages {
		if strings.Contains(program, dir) {
			return name
		}
	}
	return ""
}
