package process

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fleetdeck/fleet"
)

// Boot is the id of this boot, or empty where the system does not tell it.
func Boot() string { return boot() }

// Now is the present moment as this host sees it.
func Now() fleet.Instant {
	now := fleet.Instant{Wall: time.Now().UTC(), Boot: boot(), Machine: machine()}
	now.Host, _ = os.Hostname()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		now.Boot = "" // without the monotonic clock no deadline may be read on it
	} else {
		now.Mono = time.Duration(ts.Nano()) - monotonicOffset()
	}
	return now
}

// Awake is how long this boot lasts, sleep included, or false where no clock tells it. All processes of the host agree on it. A fence goes
// by it: a ledger's lease runs on while this machine sleeps.
func Awake() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(sleepless, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()) - boottimeOffset(), true
}

var boot = sync.OnceValue(readBoot)

// machine is the machine id hashed with the program's name: systemd asks that the id itself stay on the machine.
var machine = sync.OnceValue(func() string {
	id := readMachine()
	if id == "" {
		return ""
	}
	h := hmac.New(sha256.New, []byte(id))
	h.Write([]byte("fleetdeck"))
	return hex.EncodeToString(h.Sum(nil)[:16])
})
