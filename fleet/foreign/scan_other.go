//go:build !linux

package foreign

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"fleetdeck/fleet"
)

// Supported says whether this system shows what other processes run, and where.
const Supported = false

func (s *Scanner) scan(func(member string) bool) []candidate { return nil }

func locate(int) (dir string, top fleet.Tree, ok bool) { return "", top, false }

// Inside gives the processes with their working directory in the directory at path or below it, this one left out, as lsof
// tells. An error means that nobody can say.
func Inside(ctx context.Context, path string) ([]Occupant, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "lsof", "-w", "-d", "cwd", "-F", "pcn").Output()
	if len(out) == 0 { // it exits with 1 where anything at all could not be read
		return nil, fmt.Errorf("look who works in %s: lsof: %w", path, err)
	}
	var found []Occupant
	var at Occupant
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		field, value := lines.Text()[:min(1, len(lines.Text()))], lines.Text()[min(1, len(lines.Text())):]
		switch field {
		case "p":
			at = Occupant{}
			at.Pid, _ = strconv.Atoi(value)
		case "c":
			at.Command = value
		case "n":
			if at.Dir = value; inside(value, path) && at.Pid != os.Getpid() {
				found = append(found, at)
			}
		}
	}
	return found, lines.Err()
}
