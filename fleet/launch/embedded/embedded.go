// Package embedded holds each agent in a pseudo-terminal of a small process of its own, the holder: the same binary
// again, in its own session, so that neither a crash of the daemon nor of a console takes an agent with it, and one
// killed holder costs one agent.
//
// # What stands in a member's directory
//
//	spec.json      what was asked for
//	terminal.json  what the holder knows, replaced atomically: processes, receipt, confirmation, and at last the exit
//	log, log.1     what the agent printed; together they stay below the limit of the spec
//	holder.sock    where the holder listens (or a hashed name elsewhere, see package sockpath)
//	holder.lock    locked by the holder from before its start until its end: whoever finds it free knows that the
//	               holder is dead, and whoever finds it taken knows that it is only slow. A holder in a pane takes it
//	               itself: until then it is told by start.lock, or by the spec's being taken away, that it is to come or not
//	start.lock     locked while somebody starts the agent, so that two who start one id start one agent
//	holder.log     what went wrong in the holder
//	pane.json      there where the holder is in a pane of another program's, with what resizes that
//	pane.failed    why a holder in a pane did not begin
//
// # Who ends what
//
// The holder ends the agent with every process that it started when it is told to, when the deadline passes
// unconfirmed, when its fence is over (fence.go), when the pane that it is in is closed, and when the agent itself has ended and left something behind. Only then does it record the exit. If
// the holder was killed, whoever finds that out ends what is left, by the entry FLEETDECK_MEMBER=<id> in the
// environment, before saying so.
//
// # Talking to a holder
//
// Each call is a connection of its own. A frame is one byte of kind, four bytes of length (big endian) and the payload:
//
//	r  request, JSON    first on each connection: {"v":1,"do":"status|input|resize|confirm|fence|stop|prelude|follow", …}
//	i  input, raw       follows the request "input"
//	a  answer, JSON     {"v":1,"error":"…","ended":true,"status":{…}}; once for each request
//	d  data             offset (8 bytes), then the agent's output from there; only after "follow", as all below
//	q  query            offset (8 bytes): the agent asks for the cursor's position there
//	s  status, JSON     where it changed; one with an exit is the last frame
//
// Holders live long: a newer daemon talks to older ones. Therefore unknown JSON fields and unknown kinds of frames are
// passed over, and an unknown request is answered with an error.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/process"
)

const (
	specFile      = "spec.json"
	recordFile    = "terminal.json"
	logFile       = "log"
	oldLogFile    = "log.1"
	socketFile    = "holder.sock"
	lockFile      = "holder.lock"
	startFile     = "start.lock"
	holderLogFile = "holder.log"
)

// leftoverPatience is how long processes that an ended agent left behind have between TERM and KILL.
const leftoverPatience = 2 * time.Second

// Launcher is the embedded [launch.Launcher].
type Launcher struct {
	exe string
}

var _ launch.Launcher = (*Launcher)(nil)

// New makes a launcher whose holders run exe, the path of this very program. That program must hand the command
// "holder --dir DIR" to [HolderMain] and "agent-exec --dir DIR" to [GateMain].
func New(exe string) *Launcher { return &Launcher{exe: exe} }

// Name is "embedded".
func (l *Launcher) Name() string { return "embedded" }

// Start starts the agent of spec, or finds the one already started under its id, by whichever process. It returns
// once the holder serves; whether the last gate let the agent through is told by the status.
func (l *Launcher) Start(ctx context.Context, spec launch.Spec) (launch.Terminal, error) {
	return l.start(ctx, spec, func(ctx context.Context) error { return l.spawn(ctx, spec) })
}

// start is Start, with a holder that begin brings into being; nothing but that is known to run by then.
func (l *Launcher) start(ctx context.Context, spec launch.Spec, begin func(context.Context) error) (launch.Terminal, error) {
	if err := check(spec); err != nil {
		return nil, fmt.Errorf("start agent %s: %w: %w", spec.ID, launch.ErrNotStarted, err)
	}
	if err := os.MkdirAll(spec.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start agent %s: %w: %w", spec.ID, launch.ErrNotStarted, err)
	}
	turn := flock.New(filepath.Join(spec.Dir, startFile))
	if _, err := turn.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return nil, fmt.Errorf("start agent %s: wait for another start of it: %w", spec.ID, err)
	}
	defer turn.Close()

	t := &terminal{id: spec.ID, dir: spec.Dir, starting: true}
	if _, err := t.Status(ctx); err == nil {
		return l.Find(ctx, spec.ID, spec.Dir)
	} else if !errors.Is(err, launch.ErrNotStarted) {
		return nil, err
	}
	if left := spec.Deadline.Remaining(process.Now()); left <= 0 && !unlimited(spec.Deadline) {
		return nil, fmt.Errorf("start agent %s: %w: its deadline passed %v ago", spec.ID, launch.ErrNotStarted, -left)
	}
	if err := begin(ctx); err != nil {
		return nil, fmt.Errorf("start agent %s: %w", spec.ID, err)
	}
	return l.Find(ctx, spec.ID, spec.Dir)
}

// Find finds the terminal that was started as id in dir. If its holder was killed, what is left of the agent is ended
// before the answer [launch.ErrGone].
func (l *Launcher) Find(ctx context.Context, id, dir string) (launch.Terminal, error) {
	t := &terminal{id: id, dir: dir}
	if _, err := t.Status(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// check refuses a spec that could not be kept.
func check(spec launch.Spec) error {
	switch {
	case spec.ID == "":
		return errors.New("the spec has no id")
	case !filepath.IsAbs(spec.Dir):
		return fmt.Errorf("directory %q is not absolute", spec.Dir)
	case len(spec.Argv) == 0 || !filepath.IsAbs(spec.Argv[0]):
		return fmt.Errorf("command %q does not begin with an absolute path", strings.Join(spec.Argv, " "))
	case !filepath.IsAbs(spec.Tree.Path):
		return fmt.Errorf("tree %q is not absolute", spec.Tree.Path)
	case !slices.Contains(spec.Env, marker(spec.ID)):
		return fmt.Errorf("the environment lacks %s, by which the agent's processes are found again", marker(spec.ID))
	}
	return checkSize(spec.Cols, spec.Rows)
}

func checkSize(cols, rows int) error {
	const most = 10_000
	if cols < 1 || rows < 1 || cols > most || rows > most {
		return fmt.Errorf("terminal size %dx%d is not between 1x1 and %dx%d", cols, rows, most, most)
	}
	return nil
}

// marker is the entry of the environment by which the processes of agent id are found.
func marker(id string) string { return "FLEETDECK_MEMBER=" + id }

// unlimited reports whether d never comes.
func unlimited(d fleet.Deadline) bool { return d.Wall.IsZero() && d.Boot.ID == "" }
