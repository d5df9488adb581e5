package fleet

import (
	"errors"
	"fmt"
	"time"
)

// Code is a refusal's stable name.
type Code string

// The codes with which a dispatch, or a call to the daemon, is refused.
const (
	CodeTreeReserved       Code = "tree_reserved"
	CodeTreeOccupied       Code = "tree_occupied"
	CodeTreeForeign        Code = "tree_foreign"
	CodeSlotUnconfigured   Code = "slot_unconfigured"
	CodeSlotUnavailable    Code = "slot_unavailable"
	CodeLockBusy           Code = "lock_busy"
	CodeDaemonUnreachable  Code = "daemon_unreachable"
	CodeReservationStale   Code = "reservation_stale"
	CodeProfileUnknown     Code = "profile_unknown"
	CodeRoleUnknown        Code = "role_unknown"
	CodeLaunchFailed       Code = "launch_failed"
	CodeNotAllowed         Code = "not_allowed"
	CodeWorktreeRefused    Code = "worktree_refused" // no linked worktree could be made for it
	CodeFileCorrupt        Code = "file_corrupt"
	CodeOutcomeUnknown     Code = "outcome_unknown"
	CodeClusterUnreachable Code = "cluster_unreachable" // etcd does not answer
	CodeSlotsDiffer        Code = "slots_differ"        // this host has another slot table than the fleet

	// The codes below answer calls that are no dispatch.

	CodeNodePresent Code = "node_present" // a host of the fleet is there, or holds something
	CodeMoved       Code = "moved"        // the reservations of this host are not where they are looked for
	CodeNotFound    Code = "not_found"
	CodeBadRequest  Code = "bad_request"
	CodeInternal    Code = "internal"
)

// Refusal is an error with a code: provably, nothing was started. Only [CodeOutcomeUnknown] is the exception, and
// says so.
type Refusal struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Hint says what to do next, where there is something to do.
	Hint string `json:"hint,omitempty"`
	// Err is the cause, where there is one.
	Err error `json:"-"`
}

// Refuse makes a refusal.
func Refuse(code Code, format string, args ...any) *Refusal {
	err := fmt.Errorf(format, args...)
	return &Refusal{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// WithHint adds what to do next.
func (r *Refusal) WithHint(format string, args ...any) *Refusal {
	r.Hint = fmt.Sprintf(format, args...)
	return r
}

func (r *Refusal) Error() string { return r.Message }

// Unwrap gives the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// RefusalOf finds the refusal in err, or nil.
func RefusalOf(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}

// Refusal is why nobody is sent into t, where f works.
func (f ForeignAgent) Refusal(t Tree, now Instant) *Refusal {
	age := max(0, now.Wall.Sub(f.Since)).Truncate(time.Second)
	return Refuse(CodeTreeForeign, "%s, which fleetdeck did not start, works in %s: pid %d, for %s", f.Agent, t.Path, f.Pid, age).
		WithHint("end it, or send somebody beside it with --beside-foreign")
}

// Outcomes of a dispatch.
const (
	Accepted = "accepted"
	Refused  = "refused"
	Unknown  = "unknown"
)

// Outcome is what a dispatch came to, as `dispatch --json` prints it.
type Outcome struct {
	Outcome string `json:"outcome"`
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Hint is for people; scripts go by Code.
	Hint        string `json:"hint,omitempty"`
	Tree        string `json:"tree"`
	Role        Role   `json:"role"`
	Profile     string `json:"profile"`
	Slot        string `json:"slot"`
	Reservation string `json:"reservation"`
	Member      string `json:"member"`
	// Until is the end of the reservation's grace, by which its launch is listed or has failed.
	Until Deadline `json:"-"`
}
