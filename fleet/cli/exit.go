package cli

import (
	"errors"
	"fmt"
	"io"

	"fleetdeck/fleet"
	"fleetdeck/fleet/config"
	"fleetdeck/fleet/plain"
	"fleetdeck/fleet/tree"
	"fleetdeck/lockfile"
)

// Exit codes, the same for every command.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitRefused     = 3
	exitBusy        = 4
	exitUnknown     = 5
	exitUnreachable = 6
	exitNotFound    = 7
	exitCorrupt     = 8
)

const exitHelp = `
EXIT STATUS
  0  done
  1  an unexpected failure
  2  the call or the configuration is wrong
  3  refused, provably: nothing was started and nothing stays reserved
  4  the admission lock stayed busy past the acquire window: nothing changed
  5  the outcome is unknown: the reservation stays until its grace runs out
  6  the daemon, or the cluster, is out of reach: nothing was reserved
  7  no such member, tree or reservation
  8  the reservation file is corrupt or of a newer format: nothing was changed`

// usageError is a call that is wrong.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// exitError carries an exit code of another program, with nothing to say about it.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// errNotFound is an answer that names nothing.
type notFoundError struct{ what, hint string }

func (e *notFoundError) Error() string { return e.what }

// exitCode says with what code a command ends that came to err.
func exitCode(err error) int {
	var code exitError
	var usage *usageError
	var conf *config.Error
	var missing *notFoundError
	var silent *silentError
	var ended *endedError
	refusal := fleet.RefusalOf(err)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &ended):
		return ended.code
	case errors.As(err, &usage), errors.As(err, &conf):
		return exitUsage
	case errors.As(err, &missing), errors.Is(err, tree.ErrNotFound):
		return exitNotFound
	case errors.Is(err, tree.ErrNotTree), errors.Is(err, tree.ErrUnusable):
		return exitUsage
	case errors.As(err, &silent):
		return exitUnreachable
	case refusal == nil:
		if errors.Is(err, lockfile.ErrBusy) {
			return exitBusy
		}
		return exitFailure
	}
	switch refusal.Code {
	case fleet.CodeLockBusy:
		return exitBusy
	case fleet.CodeOutcomeUnknown:
		return exitUnknown
	case fleet.CodeDaemonUnreachable, fleet.CodeClusterUnreachable:
		return exitUnreachable
	case fleet.CodeNotFound:
		return exitNotFound
	case fleet.CodeFileCorrupt:
		return exitCorrupt
	case fleet.CodeBadRequest:
		return exitUsage
	case fleet.CodeInternal:
		return exitFailure
	}
	return exitRefused
}

// printError tells a person what went wrong, and what to do next where there is something to do.
func printError(w io.Writer, err error) {
	var code exitError
	if errors.As(err, &code) {
		return
	}
	for _, line := range messages(err) {
		fmt.Fprintf(w, "fleetdeck: error: %s\n", line)
	}
	hint := ""
	var missing *notFoundError
	var silent *silentError
	var ended *endedError
	if r := fleet.RefusalOf(err); r != nil {
		hint = r.Hint
	} else if errors.As(err, &missing) {
		hint = missing.hint
	} else if errors.As(err, &silent) {
		hint = silent.hint()
	} else if errors.As(err, &ended) {
		hint = ended.hint
	}
	if hint != "" {
		fmt.Fprintf(w, "fleetdeck: hint: %s\n", plain.Clean(hint, -1))
	}
}

// messages is what err says, a line for each error that it joins. It quotes what others wrote: paths, branches, the words of git.
func messages(err error) (lines []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all := joined.Unwrap()
		if errors.Join(all...).Error() == err.Error() {
			for _, e := range all {
				lines = append(lines, messages(e)...)
			}
			return lines
		}
	}
	return []string{plain.Clean(err.Error(), -1)}
}
