package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fleetdeck/fleet/agent"
)

// teller loads the plugin as OpenCode does, has it take an event, and says how many hooks it ran. Told to, it then starts itself again,
// as an agent's shell starts another OpenCode.
const teller = `
import { spawnSync } from "node:child_process"
let hooks = 0
globalThis.Bun = { spawn: () => { hooks++; return { stdin: { write() {}, end() {} }, unref() {} } } }
const { Fleetdeck } = await import(process.argv[2])
for (let load = 0; load < 2; load++) { // one process loads it for each of its projects
  const plugin = await Fleetdeck()
  await plugin.event?.({ event: { type: "session.idle" } })
}
console.log(hooks)
if (process.argv[3]) {
  spawnSync(process.execPath, [process.argv[1], process.argv[2]], { stdio: "inherit", env: { ...process.env } })
}
`

// TestAnOpenCodeWithinAnotherIsMute: it has the member's environment, and is not the member.
func TestAnOpenCodeWithinAnotherIsMute(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil { // who builds fleetdeck needs none; .ci/run installs it
		t.Skip("SKIPPED: no node here, which runs the plugin")
	}
	dir := t.TempDir()
	a, _ := agent.Lookup("opencode")
	in := a.Inject(agent.Launch{Exe: "/bin/fleetdeck", Dir: dir, Charter: "/m/charter.md", Report: true})
	plugin := filepath.Join(dir, "plugin.mjs")
	for _, text := range in.Files {
		if err := os.WriteFile(plugin, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "teller.mjs")
	if err := os.WriteFile(script, []byte(teller), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, script, plugin, "again")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.Fields(string(out)); len(got) != 2 || got[0] != "2" || got[1] != "0" {
		t.Errorf("it ran %q hooks, and the one within it; want 2 and none", got)
	}
}
