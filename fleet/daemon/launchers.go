package daemon

import (
	"context"
	"fmt"

	"fleetdeck/fleet/launch"
)

// launcher gives the launcher of that name; records of before there was a choice name none.
func (d *Daemon) launcher(name string) (launch.Launcher, error) {
	if name == "" || name == d.Launcher.Name() {
		return d.Launcher, nil
	}
	for _, l := range d.Launchers {
		if l.Name() == name {
			return l, nil
		}
	}
	return nil, fmt.Errorf("this daemon has no launcher %q", name)
}

// find finds the terminal of rec with the launcher that started it. That there is no such launcher here says nothing of the
// terminal.
func (d *Daemon) find(ctx context.Context, rec record) (launch.Terminal, error) {
	l, err := d.launcher(rec.Launcher)
	if err != nil {
		return nil, err
	}
	return l.Find(ctx, rec.ID, d.dirOf(rec.ID))
}
