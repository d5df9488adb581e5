package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/history"
	"fleetdeck/lockfile"
)

// Outcomes of a deed.
const (
	deedDone      = "done"
	deedRefused   = "refused"
	deedUnknown   = "unknown"
	deedFailed    = "failed"
	deedCancelled = "cancelled"
)

// recorder writes down what a console did, in the background: an act neither fails nor waits where that cannot be written.
type recorder struct {
	log  *history.Log
	warn func(error)
	by   fleet.Dispatcher

	deeds chan fleet.Deed
	done  chan struct{}
	once  sync.Once
}

// closeWait is how long a console that ends waits for its last deeds to be written.
const closeWait = time.Second

func newRecorder(log *history.Log, by fleet.Dispatcher, warn func(error)) *recorder {
	r := &recorder{log: log, warn: warn, by: by, deeds: make(chan fleet.Deed, 64), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for d := range r.deeds {
			if err := r.log.Add(d); err != nil {
				r.warn(err)
			}
		}
	}()
	return r
}

// add writes down d, whose outcome is that of err; ctx is the one that the act ran under.
func (r *recorder) add(ctx context.Context, d fleet.Deed, err error) {
	d.Time, d.By = time.Now().UTC().Truncate(time.Millisecond), r.by
	d.Outcome, d.Code = judgeDeed(ctx, err)
	if err != nil {
		d.Message = err.Error()
	}
	if d.Outcome == deedFailed && (d.What == "send" || d.What == "stop") {
		d.Outcome = deedUnknown // the daemon has no part in such an error: its answer is what was lost
	}
	select {
	case r.deeds <- d:
	default:
		r.warn(fmt.Errorf("the history is not written fast enough: %s is missing from it", d.Command))
	}
}

// close writes what is left. Nothing may be added afterwards.
func (r *recorder) close() {
	r.once.Do(func() { close(r.deeds) })
	select {
	case <-r.done:
	case <-time.After(closeWait):
	}
}

// judgeDeed says what an act that ended with err came to.
func judgeDeed(ctx context.Context, err error) (outcome string, code fleet.Code) {
	var missing *notFoundError
	refusal := fleet.RefusalOf(err)
	switch {
	case err == nil:
		return deedDone, ""
	case refusal != nil && refusal.Code == fleet.CodeOutcomeUnknown:
		return deedUnknown, refusal.Code // also where it was called off: it may have been carried out
	case ctx.Err() != nil:
		return deedCancelled, ""
	case refusal != nil && refusal.Code == fleet.CodeInternal:
		return deedFailed, refusal.Code
	case refusal != nil:
		return deedRefused, refusal.Code
	case errors.As(err, &missing):
		return deedRefused, fleet.CodeNotFound
	case errors.Is(err, lockfile.ErrBusy):
		return deedRefused, fleet.CodeLockBusy
	case errors.Is(err, client.ErrNotSent):
		return deedRefused, fleet.CodeDaemonUnreachable
	}
	return deedFailed, ""
}

// commandLine is args as a line for a shell: pasted there it is split into just these arguments again.
func commandLine(args ...string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = shellQuote(a)
	}
	return strings.Join(quoted, " ")
}

// bare is what no shell takes for anything but itself.
var bare = regexp.MustCompile(`^[A-Za-z0-9_./:@,+-]+$`)

func shellQuote(s string) string {
	if bare.MatchString(s) {
		return s
	}
	if !strings.ContainsFunc(s, control) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	// What would change a terminal stands as text, in the one form of quotes that can hold it.
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c != '\n' && (c < ' ' || c == 0x7f):
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

func control(r rune) bool { return r != '\n' && (r < ' ' || r == 0x7f) }

// CommandLine is the command line that runs fleetdeck with args over this very fleet.
func (s *session) CommandLine(args ...string) string {
	return commandLine(append([]string{"fleetdeck"}, s.overThis(args...)...)...)
}

// overThis names state and configuration to args where a call without would find others.
func (s *session) overThis(args ...string) []string {
	var flags []string
	if !s.dir.Usual {
		flags = append(flags, "--state", s.dir.Path)
	}
	if s.conf.Path != "" && (s.config != "" || os.Getenv("FLEETDECK_CONFIG") != "") {
		flags = append(flags, "--config", s.conf.Path)
	}
	return append(flags, args...)
}

// orderArgs are the arguments that say what order says, after those of the command itself.
func orderArgs(order fleet.Order, command ...string) []string {
	args := append(command, order.Tree, "--role", order.Role, "--profile", order.Profile)
	if order.Branch != "" {
		args = append(args, "--new-worktree", order.Branch)
	}
	if order.Grace != 0 {
		args = append(args, "--grace", order.Grace.String())
	}
	if order.NoGit {
		args = append(args, "--no-git")
	}
	for _, path := range order.Also {
		args = append(args, "--also", path)
	}
	if order.BesideForeign {
		args = append(args, "--beside-foreign")
	}
	if order.Task != "" {
		args = append(args, "--task", order.Task)
	}
	return args
}
