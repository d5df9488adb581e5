// Package fleet is the domain of fleetdeck: trees, reservations, members, slots and the one rule, [Occupancy],
// that says what a tree is.
//
// It is pure. It reads no file, opens no socket and has no clock of its own: who calls hands in an [Instant]. Every
// other package may depend on it; it depends on none of them.
package fleet

import (
	"slices"
	"strings"
	"time"
)

// Tree is a git working tree: the canonical absolute path of its top level, and the file that this path names.
type Tree struct {
	// Path is the key of the tree everywhere: in the reservation file, in the roster and on screen.
	Path string `json:"tree"`
	// File is the device and inode of the top level, so that a bind mount or another spelling is the same tree.
	// It is zero where nobody has looked.
	File FileID `json:"file,omitzero"`
}

// Same reports whether t and u are one tree: one path, or one directory under two paths.
func (t Tree) Same(u Tree) bool {
	return t.Path == u.Path || t.File != "" && t.File == u.File
}

// FileID names a directory on this host as "DEVICE:INODE", both decimal. Empty means unknown.
type FileID string

// IsZero reports whether nobody has looked.
func (f FileID) IsZero() bool { return f == "" }

// Instant is a moment as one host sees it: the wall clock for people and other hosts, the monotonic clock for
// deadlines within one boot.
type Instant struct {
	Wall time.Time
	// Mono is CLOCK_MONOTONIC: the same for all processes of one boot, and deaf to clock steps.
	Mono time.Duration
	// Boot identifies the boot that Mono counts from.
	Boot string
	// Host and Machine identify the host; Machine is empty where the system has no machine id.
	Host    string
	Machine string
}

// Process identifies a process beyond the reuse of its pid.
type Process struct {
	Pid int `json:"pid"`
	// Start is the start time in the system's own unit (clock ticks since boot on Linux).
	Start uint64 `json:"start,omitempty"`
	Boot  string `json:"boot,omitempty"`
}

// IsZero reports whether no process is named.
func (p Process) IsZero() bool { return p == Process{} }

// Role names what a member is. RoleDev is the one that needs no slot while no slot names it.
type Role = string

// RoleDev is a plain worker.
const RoleDev Role = "dev"

// State is what an agent is doing, as its best witness says.
type State string

// The states of a member.
const (
	StateWorking State = "working"
	StateIdle    State = "idle"
	StateWaiting State = "waiting" // a person must answer
	StateDone    State = "done"
	StateUnknown State = "unknown"
	StateExited  State = "exited"
)

// Reportable reports whether an agent may report s of itself.
func (s State) Reportable() bool {
	switch s {
	case StateWorking, StateIdle, StateWaiting, StateDone:
		return true
	}
	return false
}

// Member is a row of the roster: an agent that the daemon lists.
type Member struct {
	ID            string `json:"id"`
	Tree          string `json:"tree"`
	File          FileID `json:"file,omitzero"`
	Role          Role   `json:"role"`
	RequestedRole Role   `json:"requested_role"`
	Profile       string `json:"profile"`
	Slot          string `json:"slot"`
	// Terminal says where the agent's terminal is, for example "embedded:01JE…".
	Terminal string `json:"terminal"`
	Pid      int    `json:"pid"`
	State    State  `json:"state"`
	// StateMessage is what the agent said with its last report.
	StateMessage string `json:"state_message"`
	// StateSource is the witness of State: "hook", "report", "title", "progress", "screen", "silence", "process" or "launch".
	StateSource string    `json:"state_source"`
	StartedAt   time.Time `json:"started_at"`
	ListedAt    time.Time `json:"listed_at"`
	Reservation string    `json:"reservation"`
	// CharterSHA256 is the receipt: the hash of the bytes that the agent was really handed.
	CharterSHA256   string `json:"charter_sha256"`
	CharterMismatch bool   `json:"charter_mismatch"`
	// CharterOutdated says that the role has another charter by now: one changed on disk is for new launches.
	CharterOutdated bool `json:"charter_outdated"`
	// ExitCode is set once the agent has ended: its code, or 128 and the signal's number.
	ExitCode *int      `json:"exit_code"`
	EndedAt  time.Time `json:"ended_at,omitzero"`
	Task     string    `json:"task,omitempty"`
	// Also are the trees that it holds beside Tree.
	Also []Tree `json:"also,omitempty"`
	// Node is its host where the members of many are shown together, and the trees of another host are named NODE:PATH then. A daemon
	// leaves it empty.
	Node string `json:"node,omitempty"`
}

// Holds reports whether t is one of m's trees, dead or alive.
func (m Member) Holds(t Tree) bool { return holds(t, Tree{m.Tree, m.File}, m.Also) }

// Alive reports whether the member still occupies its tree.
func (m Member) Alive() bool { return m.State != StateExited }

// Launch is an agent that the daemon accepted and does not list yet.
type Launch struct {
	ID          string `json:"id"`
	Tree        string `json:"tree"`
	File        FileID `json:"file,omitzero"`
	Role        Role   `json:"role"`
	Profile     string `json:"profile"`
	Slot        string `json:"slot"`
	Reservation string `json:"reservation"`
	// Step is how far the launch is: "accepted", "starting", "booting" or "ending".
	Step       string    `json:"step"`
	Terminal   string    `json:"terminal"`
	Pid        int       `json:"pid"`
	AcceptedAt time.Time `json:"accepted_at"`
	Deadline   Deadline  `json:"deadline"`
	// Also are the trees that it holds beside Tree.
	Also []Tree `json:"also,omitempty"`
}

// Holds reports whether t is one of l's trees.
func (l Launch) Holds(t Tree) bool { return holds(t, Tree{l.Tree, l.File}, l.Also) }

func holds(t, main Tree, also []Tree) bool { return t.Same(main) || slices.ContainsFunc(also, t.Same) }

// ForeignAgent is a process of a known agent that works in a tree and that nobody started through this fleet.
type ForeignAgent struct {
	Process
	// Agent is its name, such as "claude".
	Agent string `json:"agent"`
	// Dir is its working directory, Tree the top level of the git working tree that this lies in: empty outside git.
	Dir   string    `json:"dir"`
	Tree  string    `json:"tree"`
	File  FileID    `json:"file,omitzero"`
	Since time.Time `json:"since"`
}

// In reports whether f works in t. Outside git it is in each directory that its own lies in.
func (f ForeignAgent) In(t Tree) bool {
	if f.Tree != "" {
		return t.Same(Tree{f.Tree, f.File})
	}
	return f.Dir == t.Path || strings.HasPrefix(f.Dir, strings.TrimSuffix(t.Path, "/")+"/")
}

// Roster is the daemon's answer to "who is there": one consistent view of members and launches, and the foreign agents
// of a second ago at most.
type Roster struct {
	Members  []Member       `json:"members"`
	Launches []Launch       `json:"launches"`
	Foreign  []ForeignAgent `json:"foreign,omitempty"`
}

// Listed reports whether the worker of the reservation id is, or was, a member.
func (r Roster) Listed(id string) bool {
	if id == "" {
		return false
	}
	for i := range r.Members {
		if r.Members[i].Reservation == id {
			return true
		}
	}
	return false
}

// Slot states.
const (
	SlotFree     = "free"
	SlotReserved = "reserved"
	SlotBound    = "bound"
)

// Slot is a configured place for one member of a role on a profile, and what fills it.
type Slot struct {
	Name        string    `json:"name"`
	Role        Role      `json:"role"`
	Profile     string    `json:"profile"`
	State       string    `json:"state"`
	Member      string    `json:"member"`
	Reservation string    `json:"reservation"`
	Tree        string    `json:"tree"`
	Since       time.Time `json:"since,omitzero"`
	// Node is the host of who fills it where those of many are shown together.
	Node string `json:"node,omitempty"`
}

// Event is something that happened, in the order of Seq.
type Event struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	// Level is "info", "warn" or "alarm".
	Level string `json:"level"`
	// Kind is a stable word such as "listed" or "launch_failed".
	Kind    string `json:"kind"`
	Tree    string `json:"tree,omitempty"`
	Member  string `json:"member,omitempty"`
	Message string `json:"message"`
}

// ShortPath is path with home written as "~", for people.
func ShortPath(path, home string) string {
	if home != "" && home != "/" {
		if path == home {
			return "~"
		}
		if rest, ok := strings.CutPrefix(path, home+"/"); ok {
			return "~/" + rest
		}
	}
	return path
}
