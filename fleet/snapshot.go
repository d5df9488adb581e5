package fleet

import "time"

// Snapshot is the fleet at one moment, for whoever displays it. It was made without a lock: the reservation file was
// read first and the roster second, so that no worker is missing from both.
type Snapshot struct {
	// Rev grows with each snapshot of one observer.
	Rev          uint64
	At           Instant
	Trees        []TreeRow
	Members      []Member
	Launches     []Launch
	Slots        []Slot
	Reservations []ReservationRow
	Queue        []QueueRow
	Events       []Event // oldest first
	History      []Deed  // oldest first
	Lock         LockInfo
	Daemon       DaemonInfo
	Keeper       KeeperInfo
	// File says how the reservation file is; an unreadable file is an error here, never an empty fleet.
	File FileInfo

	// Nodes are the hosts of a fleet of many, by name, as the cluster last told of them. Their trees, members, reservations and slots stand
	// in the lists above too. It is empty on one host, and until the cluster has told.
	Nodes []Node
	// Cluster says how the cluster is; nil on one host. While it is not heard, what is shown of other hosts is of its HeardAt.
	Cluster *ClusterInfo
}

// StateLost is what is shown of a member whose host is lost: whether it still runs nobody knows. It keeps its tree and its slot.
const StateLost State = "lost"

// QueueRow is one task that waits for its tree.
type QueueRow struct {
	ID      string `json:"id"`
	Tree    string `json:"tree"`
	Role    Role   `json:"role"`
	Profile string `json:"profile"`
	Task    string `json:"task"`
	// State is "queued", "sent" (its outcome is not known yet) or "given_up".
	State       string    `json:"state"`
	AddedAt     time.Time `json:"added_at"`
	Reservation string    `json:"reservation"`
	Error       string    `json:"error"`
}

// KeeperInfo says whether a keeper runs, and how what it keeps stands.
type KeeperInfo struct {
	Running bool        `json:"running"`
	Holder  *LockHolder `json:"holder,omitempty"`
	// OnDemand says that a daemon that runs starts one once there is something to keep.
	OnDemand bool `json:"on_demand"`
	// Staff counts the trees to keep staffed, Broken those whose breaker is open until an operator resets it.
	Staff  int `json:"staff"`
	Broken int `json:"broken"`
	// Error says why this could not be read.
	Error string `json:"error,omitempty"`
}

// Deed is one command that a console issued, with how it ended.
type Deed struct {
	Time time.Time  `json:"time"` // of its end
	By   Dispatcher `json:"by"`
	// What is the command's name, Command the command line that does the same.
	What    string `json:"what"`
	Command string `json:"command"`
	Tree    string `json:"tree,omitempty"`
	Member  string `json:"member,omitempty"`
	// Outcome is "done", "refused", "unknown", "failed" or "cancelled".
	Outcome string `json:"outcome"`
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// TreeRow is one tree as lists show it. One of another host is named NODE:PATH, and listed while it is held.
type TreeRow struct {
	Tree string `json:"tree"`
	// Node is its host, in a fleet of many.
	Node   string `json:"node,omitempty"`
	Branch string `json:"branch"`
	Dirty  bool   `json:"dirty"`
	// Upstream is the branch that Branch is compared with, where it has one; Ahead and Behind count the commits that only one of both
	// has, as git knew at the last fetch.
	Upstream string `json:"upstream,omitempty"`
	Ahead    int    `json:"ahead,omitempty"`
	Behind   int    `json:"behind,omitempty"`
	// Repo is the main working tree of its repository, which linked worktrees share; empty where that is not known.
	Repo        string   `json:"repo,omitempty"`
	Occupancy   Occupied `json:"occupancy"`
	Member      string   `json:"member"`
	Reservation string   `json:"reservation"`
	// RemainingS is the rest of the grace in seconds when the row was made. A live view counts down from Deadline.
	RemainingS float64  `json:"remaining_s"`
	Deadline   Deadline `json:"-"`
	// Launch is the launch that holds the tree, where there is one.
	Launch string `json:"-"`
	// Missing says that the directory is gone.
	Missing bool `json:"missing,omitempty"`
	// Foreign is an agent in the tree that fleetdeck did not start: beside a member too, where somebody wanted that.
	Foreign ForeignRow `json:"foreign,omitzero"`
}

// ForeignRow is a foreign agent as lists show it. It is zero where none is there.
type ForeignRow struct {
	Pid   int       `json:"pid"`
	Agent string    `json:"agent"`
	Since time.Time `json:"since"`
}

// ReservationRow is one entry with what occupancy makes of it.
type ReservationRow struct {
	Tree       string     `json:"tree"` // one of another host is named NODE:PATH
	Node       string     `json:"node,omitempty"`
	ID         string     `json:"id"`
	Role       Role       `json:"role"`
	Profile    string     `json:"profile"`
	Slot       string     `json:"slot"`
	ReservedAt time.Time  `json:"reserved_at"`
	ExpiresAt  time.Time  `json:"expires_at"`
	RemainingS float64    `json:"remaining_s"`
	Verdict    Verdict    `json:"verdict"`
	Dispatcher Dispatcher `json:"dispatcher"`
	Deadline   Deadline   `json:"-"`
	// Droppable says whether a prune would drop it now.
	Droppable bool `json:"-"`
}

// LockInfo is the admission lock as the system shows it.
type LockInfo struct {
	State  string      `json:"state"` // "free" or "held"
	Holder *LockHolder `json:"holder,omitempty"`
}

// LockHolder is a process that holds the lock.
type LockHolder struct {
	Pid     int    `json:"pid"`
	Program string `json:"program"`
	// Since is when this observer first saw it hold the lock.
	Since time.Time `json:"since"`
}

// DaemonInfo says whether the daemon answers, and since when it runs.
type DaemonInfo struct {
	Running bool      `json:"running"`
	Pid     int       `json:"pid"`
	Version string    `json:"version"`
	Since   time.Time `json:"since,omitzero"`
	Socket  string    `json:"socket,omitempty"`
	// Error says why it does not answer.
	Error string `json:"error,omitempty"`
	// AnsweredAt is when it last answered this observer.
	AnsweredAt time.Time `json:"-"`
}

// FileInfo says how the reservation file is, or the cluster that stands in its place.
type FileInfo struct {
	Path string `json:"path"`
	// Error says what is wrong with it, empty if nothing is.
	Error string `json:"error,omitempty"`
	// Code is the refusal that it is, where it is one.
	Code Code `json:"code,omitempty"`
	// ReadAt is when it was last read.
	ReadAt time.Time `json:"-"`
}

// PruneReport is what a prune did or would do, as `prune --json` prints it.
type PruneReport struct {
	Pruned []Pruned `json:"pruned"`
	Kept   int      `json:"kept"`
	Lock   string   `json:"lock"` // "taken" or "busy"
}

// Pruned is one entry that a prune dropped, or would drop.
type Pruned struct {
	Tree   string  `json:"tree"`
	ID     string  `json:"id"`
	Reason Verdict `json:"reason"`
}

// Screen is a member's terminal as somebody would see it. Its lines are safe to draw: Styled holds SGR sequences and
// printable text only.
type Screen struct {
	Cols   int      `json:"cols"`
	Rows   int      `json:"rows"`
	Lines  []string `json:"lines"`
	Styled []string `json:"styled"`
	Title  string   `json:"title"`
	Cursor Cursor   `json:"cursor"`
	// Rev grows with each change, so that a reader can wait for the next.
	Rev uint64 `json:"rev"`
}

// Cursor is the place of the cursor, from 0,0.
type Cursor struct {
	X       int  `json:"x"`
	Y       int  `json:"y"`
	Visible bool `json:"visible"`
}

// Order is what a dispatch is asked to do.
type Order struct {
	// Tree is a path in the tree; it is resolved to the tree's top level.
	Tree    string
	Role    Role
	Profile string
	Task    string
	// Grace overrides the configured boot grace where it is not zero.
	Grace time.Duration
	// ID is the reservation's id where the caller must know it beforehand, to find out after a crash what became of
	// it. It must never have been used. Empty means a new one.
	ID string
	// NoGit allows a directory outside git to be a tree of its own.
	NoGit bool
	// Also are paths in further trees that the agent works in: all are reserved, and held, or none.
	Also []string
	// BesideForeign sends the agent also where one works that fleetdeck did not start.
	BesideForeign bool
	// Branch, where it is not empty, asks for a linked worktree of Tree on that branch to be made first, and the
	// dispatch to go there.
	Branch string
}

// MadeWorktree is what must be known of a linked worktree that a dispatch made to take it back with its branch.
type MadeWorktree struct {
	// Main is a directory of the same repository that stays.
	Main   string `json:"main"`
	Branch string `json:"branch"`
	// NewBranch says that the branch was made for it, and Start at which commit.
	NewBranch bool   `json:"new_branch"`
	Start     string `json:"start"`
	// Parents are the directories that were made on the way, the outermost first.
	Parents []string `json:"parents,omitempty"`
}

// Choices are what an operator can choose from when dispatching.
type Choices struct {
	Roles    []Role
	Profiles []ProfileInfo
	Grace    time.Duration
}

// ProfileInfo is a configured way to run an agent.
type ProfileInfo struct {
	Name string `json:"name"`
	// Command is the argv as configured, for people.
	Command string `json:"command"`
	Ready   string `json:"ready"`
}
