package tui

import (
	"context"
	"os/exec"

	"fleetdeck/fleet"
)

// Fleet is all that the console can see and do. The console touches no file and no socket itself.
//
// Every method may block and is called from a tea.Cmd only; each returns soon after its ctx ends. Methods that change
// something go through the one dispatcher and the one reservation book of the program, under the admission lock.
type Fleet interface {
	// Snapshot returns the fleet once it is newer than rev; 0 asks for what is known now.
	Snapshot(ctx context.Context, rev uint64) (fleet.Snapshot, error)
	// Look asks for a look now, at tree above all, where it is not empty. It is cheap.
	Look(tree string)
	// Now is the present moment, to count down by. It is cheap, and the one method that may be called from anywhere.
	Now() fleet.Instant
	// Lock looks who holds the admission lock. It is cheap.
	Lock() fleet.LockInfo
	// Screen returns a member's terminal once it is newer than rev; 0 asks for what is known now.
	Screen(ctx context.Context, member string, rev uint64) (fleet.Screen, error)
	// Choices are the roles and profiles that a dispatch can name.
	Choices() fleet.Choices
	// Dispatch reserves, sends and settles. An order for a branch has a linked worktree made first.
	Dispatch(ctx context.Context, order fleet.Order) fleet.Outcome
	// Settled waits until an accepted dispatch is listed, or has failed, and says which.
	Settled(ctx context.Context, out fleet.Outcome) fleet.Outcome
	// Enqueue puts a task for a tree into the queue.
	Enqueue(ctx context.Context, order fleet.Order) error
	// Unqueue takes a task out of the queue.
	Unqueue(ctx context.Context, id string) error
	// PrunePlan says what a prune would drop, without the lock.
	PrunePlan(ctx context.Context) (fleet.PruneReport, error)
	// Prune drops what may be dropped.
	Prune(ctx context.Context) (fleet.PruneReport, error)
	// Release drops one reservation by hand, if its id still stands.
	Release(ctx context.Context, tree, id string) error
	// Send types text to a member, and a line end after it where enter is set.
	Send(ctx context.Context, member, text string, enter bool) error
	// Stop ends a member.
	Stop(ctx context.Context, member string) error
	// Restart ends a member and dispatches its task again, on the same role and profile.
	Restart(ctx context.Context, member string) fleet.Outcome

	// Explain says why a tree can or cannot be dispatched into now, as text of several lines.
	Explain(ctx context.Context, tree string) (string, error)
	// Witnesses says who says what of a member, and when, as text of several lines.
	Witnesses(ctx context.Context, member string) (string, error)
	// Diff is what a tree holds that is not committed; since asks for all since its branch left its upstream, its commits first.
	Diff(ctx context.Context, tree string, since bool) (string, error)
	// CommandLine is the command that does the same in a shell.
	CommandLine(args ...string) string

	// Attach is the command that takes over the terminal until the operator detaches. It and those below return nil
	// and an error where there is none.
	Attach(member string) (*exec.Cmd, error)
	// Shell is an interactive shell in a tree.
	Shell(tree string) (*exec.Cmd, error)
	// Editor is the operator's editor on a tree.
	Editor(tree string) (*exec.Cmd, error)
	// EditText is the operator's editor on a text. Once it has ended, edited gives what became of that.
	EditText(text string) (cmd *exec.Cmd, edited func() (string, error), err error)
}
