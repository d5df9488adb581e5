package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/observe"
	"fleetdeck/fleet/replay"
	"fleetdeck/tui"
)

// recordAll records every snapshot of live, seen or not, until stop is called.
func recordAll(ctx context.Context, live *observe.Live, rec *replay.Recorder) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for rev := uint64(0); ; {
			snap, err := live.Snapshot(ctx, rev)
			if err != nil {
				return
			}
			rec.Snapshot(now(), snap)
			rev = snap.Rev
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// recordedFleet is the fleet of a console that records what it is shown beside the snapshots.
type recordedFleet struct {
	*consoleFleet
	rec *replay.Recorder
}

func (f *recordedFleet) Screen(ctx context.Context, member string, rev uint64) (fleet.Screen, error) {
	s, err := f.consoleFleet.Screen(ctx, member, rev)
	if err == nil {
		f.rec.Screen(now(), member, s)
	}
	return s, err
}

func (f *recordedFleet) Choices() fleet.Choices {
	c := f.consoleFleet.Choices()
	f.rec.Choices(now(), c)
	return c
}

// playedFleet is the fleet of a recording.
type playedFleet struct{ *replay.Player }

func (playedFleet) CommandLine(args ...string) string {
	return commandLine(append([]string{"fleetdeck"}, args...)...)
}

// runReplay shows a recording: in the console, or line by line.
func runReplay(ctx context.Context, g *globals, o consoleOptions) error {
	switch {
	case o.record != "":
		return usagef("--record and --replay exclude each other")
	case o.speed < 0:
		return usagef("--speed %v: a recording is played forwards", o.speed)
	case !o.plain && (g.json || !canDraw()):
		return usagef("the console needs a terminal: replay with --plain where there is none")
	case o.speed == 0:
		o.speed = 1
	}
	r, err := replay.Open(o.replay)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, replay.ErrFormat) {
			return &usageError{err}
		}
		return err
	}
	defer r.Close()
	if o.plain {
		return g.plain(ctx, &steps{r, o.speed, time.Now()})
	}
	ctx, cancel := context.WithCancel(ctx)
	player := replay.Play(ctx, r, o.speed)
	defer func() {
		cancel()
		<-player.Done()
	}()
	home, _ := os.UserHomeDir()
	return tui.Run(ctx, playedFleet{player}, tui.Options{Home: home, NoColor: g.noColor, ReadOnly: true, Recorded: true})
}

// steps gives every snapshot of a recording in its turn, and at its time. However fast that is, none is passed over.
type steps struct {
	*replay.Reader
	speed float64
	began time.Time
}

func (s *steps) Snapshot(ctx context.Context, _ uint64) (fleet.Snapshot, error) {
	for {
		rec, err := s.Next()
		if err != nil {
			return fleet.Snapshot{}, err
		}
		select {
		case <-time.After(time.Duration(float64(rec.At)/s.speed) - time.Since(s.began)):
		case <-ctx.Done():
			return fleet.Snapshot{}, ctx.Err()
		}
		if rec.Snapshot != nil {
			return *rec.Snapshot, nil
		}
	}
}
