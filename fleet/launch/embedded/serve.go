package embedded

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/creack/pty"

	"fleetdeck/fleet/launch/sockpath"
)

// accept serves whoever connects, each in a goroutine of its own.
func (h *holder) accept() {
	for {
		conn, err := h.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "fleetdeck holder: accept: %v\n", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		h.conns.Add(1)
		go func() {
			defer h.conns.Done()
			defer conn.Close()
			h.serve(conn) // an error is the other side's going away
		}()
	}
}

// serve answers one request.
func (h *holder) serve(conn net.Conn) error {
	if uid, err := sockpath.PeerUID(conn); err != nil || uid != os.Geteuid() {
		return writeFrameJSON(conn, frameAnswer, answer{Version: protocol, Error: "this terminal belongs to another user"})
	}
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var req request
	if err := readRequest(conn, &req); err != nil {
		return err
	}
	var err error
	switch req.Do {
	case "status":
	case "prelude":
		return writeFrameJSON(conn, frameAnswer, answer{Version: protocol, Prelude: h.out.prelude(req.From)})
	case "input":
		err = h.takeInput(conn)
	case "resize":
		err = h.resize(req.Cols, req.Rows)
	case "confirm":
		err = h.confirm()
	case "fence":
		err = h.setFence(time.Duration(req.Until))
	case "stop":
		h.askEnd(ending{reason: "stopped", patience: time.Duration(req.Patience)})
		<-h.recorded
	case "follow":
		conn.SetReadDeadline(time.Time{})
		if err := h.reply(conn, nil); err != nil {
			return err
		}
		return h.out.follow(conn, req, h.status)
	default:
		err = fmt.Errorf("the holder does not know the request %q: it is of an older version", req.Do)
	}
	return h.reply(conn, err)
}

func (h *holder) reply(conn net.Conn, err error) error {
	status := h.status()
	a := answer{Version: protocol, Status: &status}
	if err != nil {
		a.Error, a.Ended = err.Error(), errors.Is(err, errEnded)
	}
	return writeFrameJSON(conn, frameAnswer, a)
}

// takeInput types what the next frame holds, unless it is a follower's answer to a question of the agent.
func (h *holder) takeInput(conn net.Conn) error {
	kind, p, err := readFrame(conn)
	if err != nil {
		return err
	}
	if kind != frameInput {
		return fmt.Errorf("a frame of kind %q came instead of the input", kind)
	}
	if h.answers.claim(p) {
		return nil
	}
	return h.in.add(p)
}

// resize gives the agent a size that somebody asked for.
func (h *holder) resize(cols, rows int) error {
	if err := checkSize(cols, rows); err != nil {
		return err
	}
	if err := h.setSize(winsize{cols, rows}); err != nil || h.front == nil {
		return err
	}
	select {
	case h.front.asked <- struct{}{}:
	default: // it is to be looked at anyway
	}
	return nil
}

func (h *holder) setSize(s winsize) error {
	h.sizing.Lock()
	defer h.sizing.Unlock()
	// Told first: the agent may draw for the new size before this goroutine gets any further.
	h.out.setSize(s)
	if err := pty.Setsize(h.pty, &pty.Winsize{Cols: uint16(s.cols), Rows: uint16(s.rows)}); err != nil {
		return fmt.Errorf("size the terminal: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rec.Cols, h.rec.Rows = s.cols, s.rows
	return nil
}
