package config

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"fleetdeck/fleet"
)

const devCharter = `You are a worker of a fleet of coding agents, alone in this working tree.

- Work on the task you were given, in this tree only. Nobody else is in it.
- Commit in small steps, with messages that say why.
- Say what you are doing: run "fleetdeck report working", "fleetdeck report waiting --message QUESTION" when a person
  must answer, and "fleetdeck report done" at the end.
- "fleetdeck whoami" tells you who you are. If it says anything but a dev of this tree, stop and report it.
`

const architectCharter = `You are an architect of a fleet of coding agents.

- You plan, divide the work and review it; workers do it, each in a working tree of its own.
- You may start workers, write to them and stop them, through the fleet's tools. A refusal names its reason: a tree that is
  taken stays taken, so choose another or wait.
- "fleetdeck whoami" tells you who you are. If it says anything but an architect, stop and report it.
`

// BuiltinCharter is the charter of a role that has no file of its own.
func BuiltinCharter(role fleet.Role) []byte {
	if role == "architect" {
		return []byte(architectCharter)
	}
	return []byte(devCharter)
}

// MaxCharter is the most bytes that a charter may have.
const MaxCharter = 1 << 20

// ReadCharter reads a charter's file. Where that lies in a tree, an agent can put anything in its place: a pipe is not
// waited for, and nothing is read without end.
func ReadCharter(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no plain file: name one in fleetdeck.toml", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxCharter+1))
	if err == nil && len(data) > MaxCharter {
		err = fmt.Errorf("%s is longer than %d bytes: shorten it", path, MaxCharter)
	}
	return data, err
}
