package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/process"
	"fleetdeck/lockfile"
)

// hooked is a launcher in which something happens on the way. A hook that is nil changes nothing.
type hooked struct {
	launch.Launcher
	start   func(launch.Spec) error
	confirm func(context.Context, launch.Terminal) error
}

func (h *hooked) Start(ctx context.Context, spec launch.Spec) (launch.Terminal, error) {
	if h.start != nil {
		if err := h.start(spec); err != nil {
			return nil, err
		}
	}
	return h.wrap(h.Launcher.Start(ctx, spec))
}

func (h *hooked) Find(ctx context.Context, id, dir string) (launch.Terminal, error) {
	return h.wrap(h.Launcher.Find(ctx, id, dir))
}

func (h *hooked) wrap(term launch.Terminal, err error) (launch.Terminal, error) {
	if err != nil {
		return nil, err
	}
	return &hookedTerminal{term, h}, nil
}

type hookedTerminal struct {
	launch.Terminal
	hooks *hooked
}

func (t *hookedTerminal) Confirm(ctx context.Context) error {
	if t.hooks.confirm != nil {
		return t.hooks.confirm(ctx, t.Terminal)
	}
	return t.Terminal.Confirm(ctx)
}

// through puts h around the daemon's launcher.
func (h *hooked) through(o *Options) {
	h.Launcher = o.Launcher
	o.Launcher = h
}

func same(p pool) pool { return p }

// wantNothingHeld waits until the slot is free and no entry stands in the file.
func (r *running) wantNothingHeld() {
	r.t.Helper()
	r.await("the slot is free", func() bool {
		list, err := r.client.Slots(r.t.Context())
		return err == nil && len(list) == 1 && list[0].State == fleet.SlotFree
	})
	r.wantNoEntry()
}

// wantNoEntry waits until the reservation file is empty. Nobody prunes it here, and no grace runs out so soon.
func (r *running) wantNoEntry() {
	r.t.Helper()
	r.await("no entry stands in the file", func() bool {
		entries, err := r.ledger().Read()
		return err == nil && len(entries) == 0
	})
}

// breakRegistry makes every write of the registry fail until mend is called.
func (r *running) breakRegistry() (mend func()) {
	path := filepath.Join(r.state.Path, "registry.json")
	err := os.Rename(path, path+".aside")
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = os.MkdirAll(filepath.Join(path, "in the way"), 0o700)
	}
	if err != nil {
		r.t.Errorf("break the registry: %v", err)
	}
	return func() {
		if err := os.RemoveAll(path); err != nil {
			r.t.Errorf("mend the registry: %v", err)
		}
		if err := os.Rename(path+".aside", path); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.t.Errorf("mend the registry: %v", err)
		}
	}
}

// mendOnceLogged calls mend when the daemon first logs a message that begins so: it has met the fault, and tries again.
func (r *running) mendOnceLogged(prefix string, mend func()) {
	var once sync.Once
	r.log.on(func(msg string) {
		if strings.HasPrefix(msg, prefix) {
			once.Do(mend)
		}
	})
}

// holdLock holds the admission lock until release is called.
func (r *running) holdLock() (release func()) {
	file, err := lockfile.Open(filepath.Join(r.state.Path, "reservations.json"))
	if err != nil {
		r.t.Errorf("hold the lock: %v", err)
		return func() {}
	}
	held, err := file.Lock(context.WithoutCancel(r.t.Context()), patience)
	if err != nil {
		r.t.Errorf("hold the lock: %v", err)
		return func() {}
	}
	return func() { held.Unlock() }
}

func TestEveryWayInWhichALaunchFailsGivesItsSlotAndTreeBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(r *running, h *hooked)
	}{
		{"the charter cannot be read", func(r *running, _ *hooked) {
			role := r.conf.Roles["architect"]
			role.Charter = filepath.Join(r.dir, "nowhere.md")
			r.conf.Roles["architect"] = role
		}},
		{"the charter is a pipe", func(r *running, _ *hooked) {
			role := r.conf.Roles["architect"]
			role.Charter = filepath.Join(r.dir, "pipe")
			if err := syscall.Mkfifo(role.Charter, 0o600); err != nil {
				t.Error(err)
			}
			r.conf.Roles["architect"] = role
		}},
		{"the launcher started nothing", func(_ *running, h *hooked) {
			h.start = func(launch.Spec) error { return fmt.Errorf("no terminal today: %w", launch.ErrNotStarted) }
		}},
		{"its grace is over before it is started", func(_ *running, h *hooked) {
			h.start = func(launch.Spec) error { return launchFailed("too late") }
		}},
		{"the confirmation fails", func(_ *running, h *hooked) {
			h.confirm = func(context.Context, launch.Terminal) error { return errors.New("no answer") }
		}},
		{"the terminal is killed before it is confirmed", func(r *running, h *hooked) {
			h.confirm = func(ctx context.Context, term launch.Terminal) error {
				status, err := term.Status(ctx)
				if err != nil {
					return err
				}
				if err := process.EndTree(ctx, status.Holder, "", 0); err != nil {
					return err
				}
				return term.Confirm(ctx)
			}
		}},
		{"the listing cannot be recorded", func(r *running, h *hooked) {
			h.confirm = func(ctx context.Context, term launch.Terminal) error {
				r.mendOnceLogged("launch ", r.breakRegistry())
				return term.Confirm(ctx)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, h := newDaemon(t), &hooked{}
			tt.set(r, h)
			r.up(same, h.through)
			out, err := r.dispatch("one")
			if refusal := fleet.RefusalOf(err); refusal == nil || refusal.Code != fleet.CodeLaunchFailed {
				t.Fatalf("dispatch: %+v, %v, want %s", out, err, fleet.CodeLaunchFailed)
			}
			r.wantNothingHeld()
		})
	}
}

func TestALaunchThatCannotBeRecordedHoldsNoSlot(t *testing.T) {
	r := startDaemon(t, same)
	mend := r.breakRegistry()
	_, err := r.dispatch("one")
	if refusal := fleet.RefusalOf(err); refusal == nil || refusal.Code != fleet.CodeLaunchFailed {
		t.Errorf("dispatch: %v, want %s", err, fleet.CodeLaunchFailed)
	}
	mend()
	r.wantNothingHeld()
	if _, err := r.dispatch("two"); err != nil {
		t.Errorf("dispatch once the registry can be written: %v", err)
	}
}

func TestAnEndThatCannotBeRecordedYetGivesTheSlotBackInTheEnd(t *testing.T) {
	r := startDaemon(t, same)
	out, err := r.dispatch("one")
	if err != nil {
		t.Fatal(err)
	}
	r.mendOnceLogged("member ", r.breakRegistry())
	r.endAgent(out.Member)
	r.wantNothingHeld()
}

// A stop that meets a launch after the terminal's deadline is off, and before it is listed, ends a member.
func TestAStopThatMeetsAConfirmedLaunchEndsIt(t *testing.T) {
	r, h := newDaemon(t), &hooked{}
	confirmed := make(chan struct{})
	h.confirm = func(ctx context.Context, term launch.Terminal) error {
		if err := term.Confirm(ctx); err != nil {
			return err
		}
		close(confirmed)
		<-ctx.Done() // the stop has come: its grace is longer than a test's patience
		return nil
	}
	r.up(same, h.through)
	stopped := make(chan error, 1)
	go func() {
		<-confirmed
		roster, err := r.client.Roster(t.Context())
		if err == nil {
			err = r.client.Stop(t.Context(), roster.Launches[0].ID)
		}
		stopped <- err
	}()
	if _, err := r.dispatch("one"); err != nil {
		t.Logf("dispatch: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	roster, err := r.client.Roster(t.Context())
	if err != nil || len(roster.Launches) != 0 || len(roster.Members) != 1 || roster.Members[0].Alive() {
		t.Errorf("roster %+v, %v, want one member that ended", roster, err)
	}
	r.wantNothingHeld()
}

func TestAMemberThatIsGoneWithoutAnExitGivesItsSlotBack(t *testing.T) {
	for _, tt := range []struct {
		name    string
		lost    bool // its directory is taken away
		restart bool // while no daemon runs
	}{
		{"its terminal is killed", false, false},
		{"its terminal is killed, and no daemon runs", false, true},
		{"its directory is taken away, and then it ends", true, false},
		{"its directory is taken away and it ends, and no daemon runs", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := startDaemon(t, same)
			out, err := r.dispatch("one")
			if err != nil {
				t.Fatal(err)
			}
			r.wantNoEntry()
			term, err := r.terminal(out.Member)
			if err != nil {
				t.Fatal(err)
			}
			status, err := term.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tt.restart {
				r.down(false)
			}
			ends := status.Holder
			if tt.lost {
				if err := os.RemoveAll(filepath.Join(r.state.Path, "members", out.Member)); err != nil {
					t.Fatal(err)
				}
				ends = status.Agent // its holder ends with it
			}
			if err := process.Signal(ends, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if tt.restart {
				r.up(same)
			}
			r.wantNothingHeld()
			if process.Alive(status.Agent) {
				t.Error("the slot is free while the agent lives")
			}
		})
	}
}

// Its record may be so old that it is forgotten as it ends.
func TestAMemberThatEndedLongAgoGivesItsSlotBack(t *testing.T) {
	r := startDaemon(t, same)
	out, err := r.dispatch("one")
	if err != nil {
		t.Fatal(err)
	}
	r.wantNoEntry()
	r.down(false)
	r.endAgent(out.Member)
	r.up(same, func(o *Options) {
		o.Now = func() fleet.Instant {
			now := process.Now()
			now.Wall, now.Mono = now.Wall.Add(keepEndedAt+time.Hour), now.Mono+keepEndedAt+time.Hour
			return now
		}
	})
	r.wantNothingHeld()
	var told []string
	r.await("its end is told", func() bool {
		told = nil
		err := r.client.Events(t.Context(), 0, false, func(e fleet.Event) {
			if e.Kind == "exited" {
				told = append(told, e.Member+" "+e.Tree)
			}
		})
		return err == nil && len(told) > 0
	})
	if want := out.Member + " " + out.Tree; len(told) != 1 || told[0] != want {
		t.Errorf("ended are %v, want %s", told, want)
	}
}

func TestWhatADaemonLeftUnsettledTheNextOneSettles(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(h *hooked, hold func())
		// between is done while no daemon runs.
		between func(r *running, member string)
	}{
		{"a launch that failed", func(h *hooked, hold func()) {
			h.start = func(launch.Spec) error { hold(); return launchFailed("no terminal today") }
		}, nil},
		{"a member", func(h *hooked, hold func()) {
			h.confirm = func(ctx context.Context, term launch.Terminal) error { hold(); return term.Confirm(ctx) }
		}, nil},
		{"a member that ended meanwhile", func(h *hooked, hold func()) {
			h.confirm = func(ctx context.Context, term launch.Terminal) error { hold(); return term.Confirm(ctx) }
		}, (*running).endAgent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, h := newDaemon(t), &hooked{}
			release := func() {}
			tt.set(h, func() { release = r.holdLock() })
			r.up(same, h.through)
			out, err := r.dispatch("one") // listed or failed, with the lock busy
			r.down(false)
			if entries, rerr := r.ledger().Read(); rerr != nil || len(entries) != 1 {
				t.Errorf("entries %v, %v, want the one that could not be dropped (dispatch: %v)", entries, rerr, err)
			}
			release()
			if tt.between != nil {
				tt.between(r, out.Member)
			}
			r.up(same)
			r.wantNoEntry()
		})
	}
}
