package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"fleetdeck/fleet/launch"
)

func (t *terminal) Follow(ctx context.Context, opts launch.FollowOptions) (<-chan launch.Frame, error) {
	conn, left, err := t.openFollow(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("follow terminal of %s: %w", t.id, err)
	}
	frames := make(chan launch.Frame, 4)
	if conn == nil {
		go func() {
			defer close(frames)
			t.replay(ctx, left, opts, frames)
		}()
		return frames, nil
	}
	go func() {
		defer close(frames)
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		defer stop()
		stream := bufio.NewReader(conn) // head and payload of a frame mostly come in one read
		for {
			frame, last, err := readFollowed(stream)
			if err != nil || !send(ctx, frames, frame) || last {
				return
			}
		}
	}()
	return frames, nil
}

// openFollow begins to follow, or gives the record of an agent that has ended.
func (t *terminal) openFollow(ctx context.Context, opts launch.FollowOptions) (net.Conn, *record, error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	for {
		conn, left, err := t.open(ctx)
		if err != nil || conn == nil {
			return nil, left, err
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		a, err := ask(conn, request{Do: "follow", Output: opts.Output, From: opts.From, Cursor: opts.Cursor, Every: int64(opts.Every)}, nil)
		if stop() && err == nil && a.Error == "" {
			return conn, nil, nil
		}
		conn.Close()
		switch {
		case ctx.Err() != nil:
			return nil, nil, fmt.Errorf("its holder does not answer: %w", ctx.Err())
		case err == nil:
			return nil, nil, errors.New(a.Error)
		}
		rest(ctx) // it may just have ended: look again
	}
}

// readFollowed reads the next frame that this version understands. The last one has an exit.
func readFollowed(stream io.Reader) (frame launch.Frame, last bool, err error) {
	for {
		kind, p, err := readFrame(stream)
		if err != nil {
			return frame, false, err
		}
		switch kind {
		case frameData:
			frame.Offset, frame.Data, err = cutOffset(p)
		case frameQuery:
			frame.Query = true
			frame.Offset, _, err = cutOffset(p)
		case frameStatus:
			frame.Status = &launch.Status{}
			err = json.Unmarshal(p, frame.Status)
			last = err == nil && frame.Status.Exit != nil
		default:
			continue
		}
		return frame, last, err
	}
}

// replay gives the newest output from disk and then the exit.
func (t *terminal) replay(ctx context.Context, left *record, opts launch.FollowOptions, frames chan<- launch.Frame) {
	if opts.Output {
		tail, err := readLog(t.dir, ringSize)
		from := max(left.Output-min(left.Output, uint64(len(tail))), min(opts.From, left.Output))
		tail = tail[len(tail)-int(min(left.Output-from, uint64(len(tail)))):]
		if err == nil && len(tail) > 0 && !send(ctx, frames, launch.Frame{Offset: from, Data: tail}) {
			return
		}
	}
	send(ctx, frames, launch.Frame{Status: &left.Status})
}

func send(ctx context.Context, frames chan<- launch.Frame, f launch.Frame) bool {
	select {
	case frames <- f:
		return true
	case <-ctx.Done():
		return false
	}
}
