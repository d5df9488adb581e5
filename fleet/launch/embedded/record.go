package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"fleetdeck/fleet/launch"
)

// record is terminal.json: what a holder knows, for those who come after it.
type record struct {
	ID     string `json:"id"`
	Socket string `json:"socket"`
	launch.Status
}

// readSpec reads the spec in dir. Where there is none, nothing was ever started: [launch.ErrNotStarted].
func readSpec(dir string) (launch.Spec, error) {
	var spec launch.Spec
	err := readJSON(filepath.Join(dir, specFile), &spec)
	if errors.Is(err, fs.ErrNotExist) {
		return spec, launch.ErrNotStarted
	}
	return spec, err
}

// readRecord reads the record in dir. Where there is none it returns [fs.ErrNotExist]: the holder did not come as far
// as to start the agent.
func readRecord(dir string) (record, error) {
	var rec record
	err := readJSON(filepath.Join(dir, recordFile), &rec)
	return rec, err
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// writeJSON replaces the file path by v as a whole, durably, readable by its owner only.
func writeJSON(path string, v any) (err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// tryLock locks the holder's lock of dir and gives the file that keeps it, or nil where somebody else holds it. The
// lock belongs to the open file and thus to every process that inherits it.
func tryLock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch err {
		case nil:
			return f, nil
		case unix.EINTR:
			continue
		case unix.EWOULDBLOCK:
			f.Close()
			return nil, nil
		}
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
}

// unlock gives the lock back at once. Closing alone would not: a process being forked just now has the file open too.
func unlock(f *os.File) {
	unix.Flock(int(f.Fd()), unix.LOCK_UN)
	f.Close()
}

// exitOf makes the exit of a wait status.
func exitOf(ws unix.WaitStatus, reason string) *launch.Exit {
	e := &launch.Exit{Code: ws.ExitStatus(), Reason: reason, At: time.Now().UTC()}
	if ws.Signaled() {
		e.Code, e.Signal = 128+int(ws.Signal()), unix.SignalName(ws.Signal())
	}
	return e
}
