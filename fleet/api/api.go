// Package api is the daemon's interface as both sides see it: the bodies that travel over the socket. It is a leaf that
// client and daemon share.
package api

import (
	"time"

	"fleetdeck/fleet"
)

// Spawn asks for an agent: the body of POST /v1/members. It is idempotent by Reservation.
type Spawn struct {
	Reservation string     `json:"reservation"`
	Tree        string     `json:"tree"`
	Role        fleet.Role `json:"role"`
	Profile     string     `json:"profile"`
	Task        string     `json:"task"`
	// Also are the keys of further trees that the agent is to hold. The reservation stands for each of them.
	Also []string `json:"also,omitempty"`
	// Made says that the tree is a linked worktree that was made for this launch: if that fails, the daemon takes it back.
	Made *fleet.MadeWorktree `json:"made,omitempty"`
	// Resumes is the id of a member that has ended, whose session the agent is to take up: in the same tree, role and profile. An
	// empty Task then sends nothing: the session knows what it was told.
	Resumes string `json:"resumes,omitempty"`
	// BesideForeign says that an agent in the tree that fleetdeck did not start is no reason to refuse.
	BesideForeign bool `json:"beside_foreign,omitempty"`
}

// Accepted answers Spawn: the launch, or the member where its worker is listed already.
type Accepted struct {
	Launch *fleet.Launch `json:"launch,omitempty"`
	Member *fleet.Member `json:"member,omitempty"`
}

// ID is the member's id.
func (a Accepted) ID() string {
	switch {
	case a.Launch != nil:
		return a.Launch.ID
	case a.Member != nil:
		return a.Member.ID
	}
	return ""
}

// Slot is the slot that the agent holds, or empty.
func (a Accepted) Slot() string {
	switch {
	case a.Launch != nil:
		return a.Launch.Slot
	case a.Member != nil:
		return a.Member.Slot
	}
	return ""
}

// LaunchStatus answers GET /v1/launches/{id}: how a launch stands or ended. Exactly one of its fields is set.
type LaunchStatus struct {
	Launch *fleet.Launch  `json:"launch,omitempty"`
	Member *fleet.Member  `json:"member,omitempty"`
	Failed *fleet.Refusal `json:"failed,omitempty"`
}

// Input is the body of POST /v1/members/{id}/input.
type Input struct {
	// Text is typed as it stands.
	Text string `json:"text"`
	// Enter presses the return key afterwards.
	Enter bool `json:"enter"`
}

// Report is the body of POST /v1/members/{id}/state.
type Report struct {
	State   fleet.State `json:"state"`
	Message string      `json:"message"`
	// Source is "hook" where the agent's own hook says so and not the agent itself. The fields below are a hook's, and its
	// state may be empty: then only they are told.
	Source string `json:"source,omitempty"`
	// Seq is the monotonic time at which the hook began, in nanoseconds: of two that overtake each other the later one counts.
	Seq uint64 `json:"seq,omitempty"`
	// Turn says that a turn begins ("begin") or ends ("end") with it.
	Turn string `json:"turn,omitempty"`
	// Topic is what it is about: a question is answered by what has the same topic, or none.
	Topic string `json:"topic,omitempty"`
	// Session is the agent's own name of its session. Opens says that it may be another one than before.
	Session string `json:"session,omitempty"`
	Opens   bool   `json:"opens,omitempty"`
}

// SourceHook is the source of a report that an agent's hook made.
const SourceHook = "hook"

// Identity answers GET /v1/whoami.
type Identity struct {
	Member        string     `json:"member"`
	Role          fleet.Role `json:"role"`
	Slot          string     `json:"slot"`
	Tree          string     `json:"tree"`
	Profile       string     `json:"profile"`
	CharterSHA256 string     `json:"charter_sha256"`
	// CharterMismatch says that the charter is of a role that the member does not hold.
	CharterMismatch bool     `json:"charter_mismatch,omitempty"`
	May             []string `json:"may"`
}

// Health answers GET /v1/health.
type Health struct {
	Status  string    `json:"status"`
	Pid     int       `json:"pid"`
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
}

// Limits of what the daemon reads.
const (
	MaxBody = 4 << 20
	MaxTask = 1 << 20
)
