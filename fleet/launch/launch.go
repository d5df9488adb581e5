// Package launch is what holds an agent's terminal: one interface, with an implementation in each package below it.
//
// A terminal outlives the process that started it, and everybody who looks at it. Two facts are kept apart
// throughout: a terminal that is provably gone ([ErrGone]), and one that cannot be asked just now (any other error).
// Only the first ever frees a tree.
package launch

import (
	"context"
	"errors"
	"time"

	"fleetdeck/fleet"
)

var (
	// ErrGone means that the terminal and every process that it held have ended and no exit was recorded: the holder
	// was killed. It is never returned for a question that merely failed.
	ErrGone = errors.New("terminal is gone")
	// ErrNotStarted means that nothing was ever started under this id: no process, no terminal.
	ErrNotStarted = errors.New("nothing was started")
)

// Spec is everything that is needed to start an agent. It is made by the daemon and complete: nothing is inherited.
type Spec struct {
	// ID is the member's id. Starting the same id twice starts one agent.
	ID string `json:"id"`
	// Dir is the member's own directory, mode 0700. The terminal keeps its files there.
	Dir string `json:"dir"`
	// Argv is run as it stands, without a shell. Argv[0] is an absolute path.
	Argv []string `json:"argv"`
	// Env is the whole environment.
	Env []string `json:"env"`
	// Tree is where the agent runs. The child checks, in itself, that it stands in this very directory before it
	// becomes the agent.
	Tree fleet.Tree `json:"tree"`
	// CharterFile is the file whose bytes the agent is handed; the child takes their hash as the receipt. It may be empty.
	CharterFile string `json:"charter_file"`
	// CharterMark stands in Argv and Env where the charter's text belongs: the child puts it there, out of the very
	// bytes that the receipt is of. Nothing else may hold it; empty means that the text goes nowhere.
	CharterMark string `json:"charter_mark,omitempty"`
	Cols        int    `json:"cols"`
	Rows        int    `json:"rows"`
	// Deadline ends the agent, with every process it started, unless [Terminal.Confirm] came before: also while no
	// daemon runs. The zero deadline never comes.
	Deadline fleet.Deadline `json:"deadline"`
	// LogLimit bounds the log on disk, in bytes.
	LogLimit int64 `json:"log_limit"`
}

// Phase is how far a terminal is.
type Phase string

// The phases, in order.
const (
	Starting Phase = "starting" // the agent's program has not been entered yet
	Running  Phase = "running"  // the last gate let it through: the agent's own program runs
	Exited   Phase = "exited"
)

// Status is what a terminal knows of its agent.
type Status struct {
	Phase  Phase         `json:"phase"`
	Holder fleet.Process `json:"holder"`
	Agent  fleet.Process `json:"agent"`
	// Receipt is the hex SHA-256 of the charter's bytes, taken by the child itself just before it became the agent.
	Receipt string `json:"receipt"`
	// Failure says in plain words why the last gate gave up. The agent's program never ran.
	Failure string `json:"failure,omitempty"`
	// Exit is set once Phase is Exited.
	Exit *Exit `json:"exit,omitempty"`
	// Output counts the bytes that the agent has printed, terminal queries aside.
	Output uint64 `json:"output"`
	// Confirmed says that the deadline is off.
	Confirmed bool `json:"confirmed"`
	// Fenced says that the terminal ends its agent by itself where nobody tells it to go on: see [Fencer].
	Fenced bool `json:"fenced,omitempty"`
	Cols   int  `json:"cols"`
	Rows   int  `json:"rows"`
}

// Exit is how an agent ended.
type Exit struct {
	// Code is the exit code, or 128 and the signal's number.
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
	// Reason is set where the terminal ended the agent: "stopped", "deadline", [Fenced], or "closed" where the pane that it was in is gone.
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Fenced is the reason of an exit where the fence was over.
const Fenced = "fenced"

// Exit codes of the last gate, as shells use them.
const (
	ExitGate          = 125 // the gate itself gave up: wrong directory, charter unreadable
	ExitNotExecutable = 126
	ExitNotFound      = 127
)

// Launcher starts terminals and finds them again.
type Launcher interface {
	// Name is the word before the colon in a member's terminal.
	Name() string
	// Start starts the agent of spec, or finds the one already started under its id. An error that is
	// [ErrNotStarted] means that provably nothing runs.
	Start(ctx context.Context, spec Spec) (Terminal, error)
	// Find finds a terminal started earlier, by this process or another. A terminal whose agent ended in order is
	// found, with its exit.
	Find(ctx context.Context, id, dir string) (Terminal, error)
}

// Terminal is the terminal of one agent.
type Terminal interface {
	// Status asks how things stand.
	Status(ctx context.Context) (Status, error)
	// Follow streams frames until ctx ends or the terminal does. After the frame with the exit the channel closes; a
	// channel that closes without one means that the connection broke: ask again.
	Follow(ctx context.Context, opts FollowOptions) (<-chan Frame, error)
	// Input types p into the terminal.
	Input(ctx context.Context, p []byte) error
	// Resize gives the terminal a new size; the agent gets SIGWINCH.
	Resize(ctx context.Context, cols, rows int) error
	// Confirm switches the deadline off: the agent is listed.
	Confirm(ctx context.Context) error
	// Stop ends the agent and every process that it started: TERM, then KILL after patience. It returns once all of
	// them are gone. Stopping what has ended is no error.
	Stop(ctx context.Context, patience time.Duration) error
	// Log gives the last n bytes of the agent's raw output from disk, also after its end. n <= 0 means all that is kept.
	Log(n int64) ([]byte, error)
}

// Fencer is a [Terminal] that ends its agent by itself where nobody tells it to go on.
type Fencer interface {
	// Fence fences the agent until a moment of this boot, sleep included, or moves the fence that it has to a later one. When that moment
	// comes the agent is ended with all that it started, whatever became of who called this: TERM, then KILL after
	// [fleet.FencePatience]. A fence that is over is not moved, and none is taken away.
	Fence(ctx context.Context, until time.Duration) error
}

// FollowOptions says what to stream.
type FollowOptions struct {
	// Output asks for the agent's bytes: first what the ring still holds from From on, then what comes.
	Output bool
	From   uint64
	// Cursor offers to answer cursor position queries: frames with Query set come, and whoever gets one types the
	// answer with [Terminal.Input]. While nobody offers, the terminal answers with the home position.
	Cursor bool
	// Every is the shortest time between two deliveries of output: what is printed meanwhile comes in one. The first after a
	// pause comes at once, and so does all up to what may mean that a person is waited for: a notification, a change of the
	// progress, or another title, as far as more of it changed than its first character.
	Every time.Duration
}

// Frame is one piece of a stream.
type Frame struct {
	// Offset is the place of Data[0], or of the query, in all that the agent printed.
	Offset uint64
	Data   []byte
	// Query says that the agent asked for the cursor's position at Offset.
	Query bool
	// Status is set where it changed.
	Status *Status
}
