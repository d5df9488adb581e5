package herdr

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"fleetdeck/fleet/launch/sockpath"
)

// patience bounds one call. herdr itself gives up after five seconds.
const patience = 7 * time.Second

// maxAnswer bounds an answer of herdr's.
const maxAnswer = 4 << 20

// Error is a refusal of herdr's.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return fmt.Sprintf("herdr: %s (%s)", e.Message, e.Code) }

// Socket is where herdr listens: the path asked for, else what the environment says, as herdr's own commands take it.
func Socket(asked string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	if path := os.Getenv("HERDR_SOCKET_PATH"); path != "" {
		return path, nil
	}
	base := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find herdr's socket: %w", err)
		}
		base = filepath.Join(home, ".config")
	}
	dir := filepath.Join(base, "herdr")
	if session := os.Getenv("HERDR_SESSION"); session != "" {
		dir = filepath.Join(dir, "sessions", filepath.Base(session))
	}
	return filepath.Join(dir, "herdr.sock"), nil
}

// call asks herdr at socket for method and reads its result into v, where v is given. An [Error] is herdr's own answer; any
// other says nothing of what herdr did.
//
// Each call is a connection of its own: one line to herdr and one back.
func call(ctx context.Context, socket, method string, params, v any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := exchange(ctx, socket, method, params, v)
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer: %w", ctx.Err())
	}
	var said *Error
	if err != nil && !errors.As(err, &said) {
		err = fmt.Errorf("herdr at %s: %s: %w", socket, method, err)
	}
	return err
}

func exchange(ctx context.Context, socket, method string, params, v any) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("%w: is herdr running?", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	if uid, err := sockpath.PeerUID(conn); err != nil || uid != os.Geteuid() {
		return errors.Join(err, errors.New("the socket belongs to another user"))
	}
	const id = "fleetdeck"
	line, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return err
	}
	line, err = bufio.NewReader(io.LimitReader(conn, maxAnswer)).ReadBytes('\n')
	if err != nil && (err != io.EOF || len(bytes.TrimSpace(line)) == 0) {
		return err
	}
	var answer struct {
		ID     string          `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *Error          `json:"error"`
	}
	switch err := json.Unmarshal(line, &answer); {
	case err != nil:
		return fmt.Errorf("its answer is no JSON: %w", err)
	case answer.Error != nil:
		return answer.Error
	case answer.ID != id || len(answer.Result) == 0:
		return errors.New("its answer is to something else")
	case v == nil:
		return nil
	}
	return json.Unmarshal(answer.Result, v)
}
