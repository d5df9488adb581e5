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
	// Now is the present moment, to count down by. It is cheap, and the one method that may be called from anywhere.
	Now() fleet.Instant
	// Lock looks who holds the admission lock. It is cheap.
	Lock() fleet.LockInfo
	// Screen returns a member's terminal once it is newer than rev; 0 asks for what is known now.
	Screen(ctx context.Context, member string, rev uint64) (fleet.Screen, error)
	// Choices are the roles and profiles that a dispatch can name.
	Choices() fleet.Choices
	// Dispatch reserves, sends and settles.
	Dispatch(ctx context.Context, order fleet.Order) fleet.Outcome
	// PrunePlan says what a prune would drop, without the lock.
	PrunePlan(ctx context.Context) (fleet.PruneReport, error)
	// Prune drops what may be dropped.
	Prune(ctx context.Context) (fleet.PruneReport, error)
	// Release drops one reservation by hand, if its id still stands.
	Release(ctx context.Context, tree, id string) error
	// Send types a line to a member.
	Send(ctx context.Context, member, text string) error
	// Stop ends a member.
	Stop(ctx context.Context, member string) error
	// Attach is the command that takes over the terminal until the operator detaches.
	Attach(member string) *exec.Cmd
}
