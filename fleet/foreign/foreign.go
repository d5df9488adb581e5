// Package foreign finds who works in a tree without having been sent there: agents that people started by hand, and any
// process whose working directory is in the way of removing a tree.
//
// An agent that another fleet started, or this one before its state was lost, is found by the holder of its terminal,
// whatever its program is.
//
// It reads the process table and nothing else, and holds nobody up: agents are looked for when somebody asks, once a second at
// most for all trees together. What it finds is true of that moment only, since such agents take no lock and ask nobody; a
// process of another user is seen only by root. It sees nothing on systems without /proc: [Supported] says so.
package foreign

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/plain"
)

// maxAge is how old an answer may be: many who ask at once share one look.
const maxAge = time.Second

// Scanner looks for agents. It is safe for use by several goroutines.
type Scanner struct {
	mu    sync.Mutex // guards all below; held while it looks, so that who asks meanwhile gets the same answer
	at    time.Time
	found []candidate
	known map[fleet.Process]origin
}

// candidate is a process that runs a known agent.
type candidate struct {
	fleet.Process
	agent string
	origin
}

// origin is what a process has by birth.
type origin struct {
	since time.Time
	// marks are the members that the process and its ancestors say they belong to, ancestors their pids.
	marks     []string
	ancestors []int
}

// NewScanner makes a scanner that has not looked yet.
func NewScanner() *Scanner { return &Scanner{known: map[fleet.Process]origin{}} }

// Agents gives the agents that work somewhere and belong to no living member of this fleet: ours says which members those
// are. An agent that another one started in the same tree is part of that one. It is sorted by pid.
func (s *Scanner) Agents(ours func(member string) bool) []fleet.ForeignAgent {
	var agents []fleet.ForeignAgent
	var kin [][]int // the ancestors of each
	for _, c := range s.look(ours) {
		if slices.ContainsFunc(c.marks, ours) || !process.Alive(c.Process) {
			continue
		}
		dir, tree, ok := locate(c.Pid)
		if !ok {
			continue
		}
		agents = append(agents, fleet.ForeignAgent{
			Process: c.Process, Agent: c.agent, Dir: dir, Tree: tree.Path, File: tree.File, Since: c.since,
		})
		kin = append(kin, c.ancestors)
	}
	heads := agents[:0:0]
	for i, a := range agents {
		if !slices.ContainsFunc(agents, func(b fleet.ForeignAgent) bool {
			return slices.Contains(kin[i], b.Pid) && b.File == a.File && b.Tree == a.Tree
		}) {
			heads = append(heads, a)
		}
	}
	slices.SortFunc(heads, func(a, b fleet.ForeignAgent) int { return a.Pid - b.Pid })
	return heads
}

// look gives what was found not longer than maxAge ago.
func (s *Scanner) look(ours func(member string) bool) []candidate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) > maxAge {
		s.found = s.scan(ours)
		s.at = time.Now()
		known := make(map[fleet.Process]origin, len(s.found))
		for _, c := range s.found {
			known[c.Process] = c.origin
		}
		s.known = known
	}
	return s.found
}

// Occupant is a process with its working directory in some place.
type Occupant struct {
	Pid int
	// Command is its program's name, or its command line as far as it is short.
	Command string
	Dir     string
}

// Nobody refuses where a process works in the directory at, which people know as name.
func Nobody(ctx context.Context, at, name string) error {
	found, err := Inside(ctx, at)
	if err != nil || len(found) == 0 {
		return err
	}
	who := make([]string, 0, len(found))
	for _, p := range found[:min(5, len(found))] {
		who = append(who, fmt.Sprintf("%d (%s)", p.Pid, plain.Clean(p.Command, 60)))
	}
	return fleet.Refuse(fleet.CodeWorktreeRefused, "%d processes work in %s: pid %s", len(found), name, strings.Join(who, ", ")).
		WithHint("end them, or let them go elsewhere: a shell that stands in it counts")
}

// inside reports whether path is dir or lies below it.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
