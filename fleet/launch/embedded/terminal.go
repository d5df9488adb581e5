package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/fleet/launch/sockpath"
)

// answerPatience bounds how long a holder may take for an answer where the caller's context does not.
const answerPatience = 10 * time.Second

// terminal is the other side of a holder. It keeps nothing: each call finds the holder anew, or what it left.
type terminal struct {
	id, dir string
	// starting says that the start lock is held by the caller: what has not begun is its to begin.
	starting bool
}

var (
	_ launch.Terminal = (*terminal)(nil)
	_ launch.Fencer   = (*terminal)(nil)
)

func (t *terminal) Status(ctx context.Context) (launch.Status, error) {
	a, err := t.call(ctx, request{Do: "status"}, nil)
	if err != nil {
		return launch.Status{}, fmt.Errorf("terminal of %s: %w", t.id, err)
	}
	return *a.Status, nil
}

func (t *terminal) Input(ctx context.Context, p []byte) error {
	if len(p) > maxInput {
		return fmt.Errorf("type into terminal of %s: %d bytes are more than %d at once", t.id, len(p), maxInput)
	}
	return t.do(ctx, "type into", request{Do: "input"}, p)
}

func (t *terminal) Resize(ctx context.Context, cols, rows int) error {
	if err := checkSize(cols, rows); err != nil {
		return err
	}
	return t.do(ctx, "resize", request{Do: "resize", Cols: cols, Rows: rows}, nil)
}

func (t *terminal) Confirm(ctx context.Context) error {
	return t.do(ctx, "confirm", request{Do: "confirm"}, nil)
}

// Fence is that of [launch.Fencer].
func (t *terminal) Fence(ctx context.Context, until time.Duration) error {
	return t.do(ctx, "fence", request{Do: "fence", Until: int64(until)}, nil)
}

// Prelude gives the escape sequences that bring a new emulator into the modes that were set at offset, for whoever
// follows the output from there and cannot know what was before.
func (t *terminal) Prelude(ctx context.Context, offset uint64) ([]byte, error) {
	a, err := t.call(ctx, request{Do: "prelude", From: offset}, nil)
	if err != nil {
		return nil, fmt.Errorf("modes of terminal of %s: %w", t.id, err)
	}
	return []byte(a.Prelude), nil
}

func (t *terminal) Stop(ctx context.Context, patience time.Duration) error {
	for {
		_, err := t.call(ctx, request{Do: "stop", Patience: int64(max(0, patience))}, nil)
		switch {
		case err == nil, errors.Is(err, launch.ErrGone):
			return nil
		case errors.Is(err, errBroken) && rest(ctx):
			continue // the holder ended while it was ending the agent: look what it left
		}
		return fmt.Errorf("stop terminal of %s: %w", t.id, err)
	}
}

func (t *terminal) Log(n int64) ([]byte, error) {
	b, err := readLog(t.dir, n)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", t.id, err)
	}
	return b, nil
}

// do makes a call that an ended agent cannot answer.
func (t *terminal) do(ctx context.Context, what string, req request, in []byte) error {
	a, err := t.call(ctx, req, in)
	if err == nil && a.Ended {
		err = errEnded
	}
	if err != nil {
		return fmt.Errorf("%s terminal of %s: %w", what, t.id, err)
	}
	return nil
}

// errBroken means that the connection ended without an answer: whether the request was done is unknown.
var errBroken = errors.New("the holder did not answer")

// call asks the holder. Where the agent has ended in order, the answer is what it left on record, with Ended set.
func (t *terminal) call(ctx context.Context, req request, in []byte) (answer, error) {
	if req.Do != "stop" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, answerPatience)
		defer cancel()
	}
	for {
		a, err := t.callOnce(ctx, req, in)
		// A status that got no answer is asked again, since the holder may just have ended and left it on record.
		if req.Do != "status" || !errors.Is(err, errBroken) || !rest(ctx) {
			return a, err
		}
	}
}

func (t *terminal) callOnce(ctx context.Context, req request, in []byte) (answer, error) {
	conn, left, err := t.open(ctx)
	if err != nil {
		return answer{}, err
	}
	if conn == nil {
		return answer{Ended: true, Status: &left.Status}, nil
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	a, err := ask(conn, req, in)
	switch {
	case err != nil && ctx.Err() != nil:
		return a, fmt.Errorf("%w: %w", errBroken, ctx.Err())
	case err != nil:
		return a, fmt.Errorf("%w: %w", errBroken, err)
	case a.Error != "" && !a.Ended:
		return a, errors.New(a.Error)
	}
	return a, nil
}

// rest waits a moment, and reports whether there is time for another try.
func rest(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(5 * time.Millisecond):
		return true
	}
}

// ask sends a request and waits for its answer.
func ask(conn net.Conn, req request, in []byte) (answer, error) {
	req.Version = protocol
	if err := writeFrameJSON(conn, frameRequest, req); err != nil {
		return answer{}, err
	}
	if in != nil {
		if err := writeFrame(conn, frameInput, in); err != nil {
			return answer{}, err
		}
	}
	kind, b, err := readFrame(conn)
	if err != nil {
		return answer{}, err
	}
	var a answer
	if kind != frameAnswer {
		return a, fmt.Errorf("a frame of kind %q came instead of an answer", kind)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, err
	}
	if a.Status == nil {
		a.Status = &launch.Status{}
	}
	return a, nil
}

// open connects to the holder. Where it has ended in order it gives the record that it left instead of a connection;
// where it was killed it ends what is left of the agent and says [launch.ErrGone].
func (t *terminal) open(ctx context.Context) (net.Conn, *record, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		spec, err := readSpec(t.dir)
		if err != nil {
			return nil, nil, err
		}
		if spec.ID != t.id {
			return nil, nil, fmt.Errorf("%s belongs to %s", t.dir, spec.ID)
		}
		rec, err := readRecord(t.dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, nil, err
		case rec.Exit != nil:
			return nil, &rec, nil
		default:
			conn, err := dial(ctx, rec.Socket)
			if err == nil {
				return conn, nil, nil
			}
			if errors.Is(err, errForeign) {
				return nil, nil, err
			}
		}
		lock, err := tryLock(t.dir)
		if err != nil {
			return nil, nil, err
		}
		if lock != nil {
			rec, err := t.bury(ctx)
			unlock(lock)
			if !errors.Is(err, errOpening) {
				return nil, rec, err
			}
		}
		select { // the holder lives, and either starts or ends just now, or is about to be
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("its holder does not answer: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
}

// bury finds out what a dead holder left. The holder's lock is held.
func (t *terminal) bury(ctx context.Context) (*record, error) {
	rec, err := readRecord(t.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it died before it started anything, or is still to come
		return nil, t.unbegun()
	case err != nil:
		return nil, err
	case rec.Exit != nil:
		return &rec, nil
	}
	if err := process.EndTree(ctx, rec.Agent, marker(t.id), leftoverPatience); err != nil {
		return nil, fmt.Errorf("its holder was killed: %w", err)
	}
	return nil, launch.ErrGone
}

// errOpening means that somebody opens a pane just now, in which the holder is to come.
var errOpening = errors.New("its pane is being opened")

// unbegun makes sure that what has no record never gets one, unless it is being started.
func (t *terminal) unbegun() error {
	if _, err := os.Stat(filepath.Join(t.dir, paneFile)); t.starting || errors.Is(err, fs.ErrNotExist) {
		return launch.ErrNotStarted // a holder of its own has its lock from before there was a spec
	}
	turn := flock.New(filepath.Join(t.dir, startFile))
	defer turn.Close()
	ours, err := turn.TryLock()
	switch {
	case err != nil:
		return err
	case !ours:
		return errOpening
	}
	return t.revoke()
}

var errForeign = errors.New("the socket belongs to another user")

// dial connects to a socket of this user's.
func dial(ctx context.Context, path string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	uid, err := sockpath.PeerUID(conn)
	if err == nil && uid != os.Geteuid() {
		err = fmt.Errorf("%w: %s is served by user %d", errForeign, filepath.Base(path), uid)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
