package foreign

import (
	"strings"
	"testing"
)

func TestAgentsAreKnownByWhatTheyRun(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"claude", "claude"},
		{"/home/kim/.local/bin/claude --continue", "claude"},
		{"node /usr/local/bin/gemini -p hello", "gemini"},
		{"node --no-warnings=DEP0040 /usr/bin/gemini", "gemini"},
		{"/usr/bin/node -r /x/hook.js /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js", "claude"},
		{"/usr/bin/node /usr/lib/node_modules/@openai/codex/bin/codex.js exec", "codex"},
		{"/usr/lib/node_modules/@openai/codex/vendor/x86_64-unknown-linux-musl/codex/codex", "codex"},
		{"/usr/bin/python3.12 /home/kim/.local/bin/aider --model x", "aider"},
		{"python3 -m aider", "aider"},
		{"python -X utf8 -m aider", "aider"},
		{"bun run /opt/opencode", "opencode"},
		{"/bin/sh /home/kim/bin/codex", "codex"},
		{"bash -- /home/kim/bin/claude", "claude"},

		{"", ""},
		{"vim claude", ""},
		{"tail -f codex", ""},
		{"bash -c claude", ""}, // the shell waits; what it runs is seen by itself
		{"node -e claude", ""},
		{"python3 -c aider", ""},
		{"python3 -m pip install aider", ""},
		{"bash /usr/bin/which claude", ""},
		{"/home/kim/claude/build.sh", ""},
		{"claudette", ""},
		{"-bash", ""},
		{"fleetdeck dispatch --profile claude .", ""},
	} {
		if got := agentOf(strings.Fields(tt.line)); got != tt.want {
			t.Errorf("%q runs %q, want %q", tt.line, got, tt.want)
		}
	}
}
