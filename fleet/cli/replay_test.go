package cli

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/observe"
	"fleetdeck/fleet/replay"
	"fleetdeck/tui"
)

var (
	_ tui.Fleet = (*recordedFleet)(nil)
	_ tui.Fleet = playedFleet{}
)

// console is what the console is handed, with what it needs beside tui.Fleet.
type console interface {
	Enqueue(ctx context.Context, order fleet.Order) error
	Unqueue(ctx context.Context, id string) error
	Restart(ctx context.Context, member string) fleet.Outcome
	CommandLine(args ...string) string
}

var (
	_ console = (*consoleFleet)(nil)
	_ console = (*recordedFleet)(nil)
	_ console = playedFleet{}
)

func TestAReplayedIncidentIsTheOneThatHappened(t *testing.T) {
	d := newDeck(t)
	path := filepath.Join(t.TempDir(), "incident")
	rec, err := replay.Create(path, now(), observe.Same)
	if err != nil {
		t.Fatal(err)
	}
	shown := &recordedFleet{d.consoleFleet, rec}
	// What is made known is kept here and recorded at once.
	ctx, cancel := context.WithCancel(t.Context())
	var happened []fleet.Snapshot
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for rev := uint64(0); ; {
			s, err := d.live.Snapshot(ctx, rev)
			if err != nil {
				return
			}
			happened = append(happened, s)
			rec.Snapshot(now(), s)
			rev = s.Rev
		}
	}()

	api := d.repo("api")
	choices := shown.Choices()
	d.Dispatch(t.Context(), fleet.Order{Tree: api, Role: "dev", Profile: "waiter", Task: "choose"})
	m := d.listed(api)
	d.await("it waits", func(s fleet.Snapshot) bool { return len(s.Members) == 1 && s.Members[0].State == fleet.StateWaiting })
	screen, err := shown.Screen(t.Context(), m.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(t.Context(), m.ID); err != nil {
		t.Fatal(err)
	}
	d.await("it has ended, and that is written down", func(s fleet.Snapshot) bool {
		return len(s.Members) == 1 && !s.Members[0].Alive() && len(s.History) == 2
	})
	cancel()
	<-seen
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}

	r, err := replay.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var replayed []fleet.Snapshot
	screens, offers := 0, 0
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case rec.Snapshot != nil:
			replayed = append(replayed, *rec.Snapshot)
		case rec.Screen != nil:
			screens++
			if d := cmp.Diff(screen, *rec.Screen); d != "" || rec.Member != m.ID {
				t.Errorf("screen of %s: %s", rec.Member, d)
			}
		case rec.Choices != nil:
			offers++
			if d := cmp.Diff(choices, *rec.Choices); d != "" {
				t.Error(d)
			}
		}
	}
	r.Close()
	if screens != 1 || offers != 1 {
		t.Errorf("%d screens and %d times choices, want one of each", screens, offers)
	}
	if len(happened) < 3 {
		t.Errorf("only %d snapshots", len(happened))
	}
	if d := cmp.Diff(happened, replayed); d != "" {
		t.Error(d)
	}

	// A player shows the same at last.
	if r, err = replay.Open(path); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	player := replay.Play(t.Context(), r, 1e9)
	<-player.Done()
	last, err := player.Snapshot(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(happened[len(happened)-1], last); d != "" {
		t.Error(d)
	}
}
