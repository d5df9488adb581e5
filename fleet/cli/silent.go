package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fleetdeck/lockfile"
)

// healthTimeout bounds the question whether a daemon is well: one that is stopped takes the question and never answers.
const healthTimeout = 2 * time.Second

// silentDaemon finds the daemon that runs on the state directory although its socket does not answer: whoever holds the
// registry. It is zero where none runs, or where the system does not say who holds a lock.
func (s *session) silentDaemon() (pid int) {
	path := filepath.Join(s.dir.Path, "registry.json")
	if _, err := os.Stat(path + ".lock"); err != nil {
		return 0
	}
	file, err := lockfile.Open(path)
	if err != nil {
		return 0
	}
	holders, err := file.Holders()
	if err != nil || len(holders) == 0 {
		return 0
	}
	return holders[0].Pid
}

// health asks the daemon whether it is well, and tells one that is not there from one that does not answer.
func (s *session) health(ctx context.Context) (pid int, err error) {
	hctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	h, err := s.client.Health(hctx)
	if err == nil {
		return h.Pid, nil
	}
	if pid := s.silentDaemon(); pid != 0 {
		return 0, &silentError{pid: pid, socket: s.dir.Socket}
	}
	return 0, err
}

// silentError is a daemon that runs and does not answer.
type silentError struct {
	pid    int
	socket string
}

func (e *silentError) Error() string {
	return fmt.Sprintf("a daemon runs, pid %d, and does not answer at %s", e.pid, e.socket)
}

func (e *silentError) hint() string {
	return fmt.Sprintf("is it stopped (kill -CONT %d), or was its socket removed? 'kill %d' ends it, members go on, and 'fleetdeck up' starts the next one", e.pid, e.pid)
}

// insideAgent refuses to start this fleet's daemon as a child of one of its own agents: it would end with that agent, and take
// the others with it.
func (s *session) insideAgent() error {
	if os.Getenv("FLEETDECK_MEMBER") != "" && os.Getenv("FLEETDECK_SOCKET") == s.dir.Socket {
		return usagef("an agent cannot start the daemon of its own fleet: it would end with the agent. Start it outside")
	}
	return nil
}
