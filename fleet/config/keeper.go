package config

import "time"

// Keeper is how the keeper goes about what [[staff]] and the queue ask for.
type Keeper struct {
	// Interval is the pause between two passes.
	Interval time.Duration
	// Launches is how many launches the fleet may have under way for the keeper to start another.
	Launches int
	// Crashes is how many failures in a row stop it from trying again.
	Crashes int
	// Backoff is the pause after the first failure. It doubles with each further one, up to BackoffMax.
	Backoff    time.Duration
	BackoffMax time.Duration
	// InDaemon says whether the daemon runs the keeper when there is something to keep.
	InDaemon bool
}

// DefaultKeeper is the keeper that a file says nothing of.
var DefaultKeeper = Keeper{
	Interval: 2 * time.Second, Launches: 4, Crashes: 5, Backoff: time.Second, BackoffMax: 5 * time.Minute, InDaemon: true,
}

type fileKeeper struct {
	Interval   string `toml:"interval"`
	Launches   *int   `toml:"launches"`
	Crashes    *int   `toml:"crashes"`
	Backoff    string `toml:"backoff"`
	BackoffMax string `toml:"backoff_max"`
	InDaemon   *bool  `toml:"in_daemon"`
}

func (b *builder) keeper(f fileKeeper) Keeper {
	k := Keeper{
		Interval:   b.duration("keeper.interval", f.Interval, DefaultKeeper.Interval),
		Launches:   b.count("keeper.launches", f.Launches, DefaultKeeper.Launches),
		Crashes:    b.count("keeper.crashes", f.Crashes, DefaultKeeper.Crashes),
		Backoff:    b.duration("keeper.backoff", f.Backoff, DefaultKeeper.Backoff),
		BackoffMax: b.duration("keeper.backoff_max", f.BackoffMax, DefaultKeeper.BackoffMax),
		InDaemon:   f.InDaemon == nil || *f.InDaemon,
	}
	if k.Backoff > k.BackoffMax {
		key := "keeper.backoff"
		if f.Backoff == "" {
			key = "keeper.backoff_max"
		}
		b.fail(key, "backoff is %s, more than the longest, backoff_max, %s", k.Backoff, k.BackoffMax)
	}
	return k
}

func (b *builder) count(key string, n *int, or int) int {
	if n == nil {
		return or
	}
	if *n < 1 {
		b.fail(key, "%d must be more than zero", *n)
	}
	return *n
}
