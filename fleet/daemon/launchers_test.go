package daemon

import (
	"errors"
	"testing"

	"fleetdeck/fleet/launch"
	"fleetdeck/fleet/launch/embedded"
	"fleetdeck/fleet/launch/tmux"
)

func TestATerminalIsFoundByTheLauncherThatStartedIt(t *testing.T) {
	r := newDaemon(t)
	d := &Daemon{Options: Options{State: r.state, Launcher: embedded.New(""), Launchers: []launch.Launcher{tmux.New("", r.state.Path, "")}}}
	for _, name := range []string{"", "embedded", "tmux"} {
		l, err := d.launcher(name)
		if want := map[string]string{"": "embedded"}[name] + name; err != nil || l.Name() != want {
			t.Errorf("launcher %q is %v, %v", name, l, err)
		}
		if _, err := d.find(t.Context(), record{ID: "x", Launcher: name}); !errors.Is(err, launch.ErrNotStarted) {
			t.Errorf("find with launcher %q: %v, want that nothing was started", name, err)
		}
	}
	// One that this daemon does not have proves nothing.
	_, err := d.find(t.Context(), record{ID: "x", Launcher: "elsewhere"})
	if err == nil || errors.Is(err, launch.ErrNotStarted) || errors.Is(err, launch.ErrGone) {
		t.Errorf("find with an unknown launcher: %v, want that it is unknown", err)
	}
}
