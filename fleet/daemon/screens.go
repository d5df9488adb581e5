package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/screen"
)

const (
	// screenWait is how long a question for a newer screen is held open.
	screenWait = 20 * time.Second
	// pasteEnd is the pause between a text and the return key: agents take a return that comes at once for a new line of a paste.
	pasteEnd = 200 * time.Millisecond
)

// screens are the emulated screens of the members that somebody looks at.
type screens struct {
	ctx context.Context

	mu      sync.Mutex // guards mirrors
	mirrors map[string]*screen.Mirror
}

func newScreens(ctx context.Context) *screens {
	return &screens{ctx: ctx, mirrors: map[string]*screen.Mirror{}}
}

// mirror gives the mirror of id's terminal, and makes it where there is none.
func (s *screens) mirror(id string, term launch.Terminal) *screen.Mirror {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.mirrors[id]
	if m == nil {
		m = screen.NewMirror(s.ctx, term)
		s.mirrors[id] = m
	}
	return m
}

// forget drops the mirror of what has ended: its last screen is drawn from its log.
func (s *screens) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mirrors, id)
}

// get gives the screen once it is newer than rev, or as it is after a while.
func (s *screens) get(ctx context.Context, d *Daemon, rec record, rev uint64) (fleet.Screen, error) {
	if rec.over() && rev > 0 {
		// Nothing new will come.
		select {
		case <-ctx.Done():
		case <-s.ctx.Done():
		case <-time.After(screenWait):
		}
	}
	term, err := d.find(ctx, rec)
	if err != nil {
		return fleet.Screen{}, fleet.Refuse(fleet.CodeNotFound, "%s has no screen: %w", rec.ID, err)
	}
	if rec.over() {
		return lastScreen(ctx, term)
	}
	wctx, cancel := context.WithTimeout(ctx, screenWait)
	defer cancel()
	m := s.mirror(rec.ID, term)
	shown, err := m.Wait(wctx, rev)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return m.Snapshot(), nil
	}
	return shown, err
}

// lastScreen draws the end of the log of what has ended.
func lastScreen(ctx context.Context, term launch.Terminal) (fleet.Screen, error) {
	cols, rows := termCols, termRows
	if status, err := term.Status(ctx); err == nil && status.Cols > 0 {
		cols, rows = status.Cols, status.Rows
	}
	data, err := term.Log(256 << 10)
	if err != nil {
		return fleet.Screen{}, fmt.Errorf("read the log: %w", err)
	}
	em := screen.New(cols, rows)
	defer em.Close()
	if _, err := em.Write(data); err != nil {
		return fleet.Screen{}, fmt.Errorf("draw the log: %w", err)
	}
	shown := em.Snapshot()
	shown.Rev = 1
	return shown, nil
}

// answerCursor answers an agent that asks where its cursor is, after offset bytes of output. Nobody else knows: the holder
// has no emulator. If it cannot be told in time the holder gives an answer of its own.
func (s *screens) answerCursor(ctx context.Context, id string, term launch.Terminal, offset uint64) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	x, y, err := s.mirror(id, term).CursorAt(ctx, offset)
	if err != nil {
		return
	}
	term.Input(ctx, fmt.Appendf(nil, "\x1b[%d;%dR", y+1, x+1))
}

// typeText types a text into a terminal: as a paste where it has several lines and the agent can tell a paste from typing.
func (s *screens) typeText(ctx context.Context, d *Daemon, rec record, term launch.Terminal, in api.Input) error {
	text := strings.NewReplacer("\r\n", "\r", "\n", "\r").Replace(in.Text)
	if strings.Contains(text, "\r") {
		m := s.mirror(rec.ID, term)
		if _, err := m.Wait(ctx, 0); err == nil && m.Modes().BracketedPaste {
			text = "\x1b[200~" + strings.ReplaceAll(text, "\x1b", "") + "\x1b[201~"
		}
	}
	if err := term.Input(ctx, []byte(text)); err != nil || !in.Enter {
		return err
	}
	if text != "" && !sleep(ctx, pasteEnd) {
		return ctx.Err()
	}
	return term.Input(ctx, []byte("\r"))
}
