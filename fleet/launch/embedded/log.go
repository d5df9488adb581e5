package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// defaultLogLimit bounds a log whose spec does not.
const defaultLogLimit = 4 << 20

// rotatingLog keeps the newest output on disk in two files of half the limit each. It never fails its caller: an agent
// must not stand still because a disk is full.
type rotatingLog struct {
	dir   string
	half  int64
	file  *os.File
	size  int64
	ailed bool // the trouble was told
}

func openLog(dir string, limit int64) *rotatingLog {
	if limit <= 0 {
		limit = defaultLogLimit
	}
	l := &rotatingLog{dir: dir, half: max(1, limit/2)}
	l.ail(l.open())
	return l
}

func (l *rotatingLog) open() error {
	f, err := os.OpenFile(filepath.Join(l.dir, logFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	l.file, l.size = f, 0
	return err
}

func (l *rotatingLog) write(p []byte) {
	for len(p) > 0 && l.file != nil {
		if l.size >= l.half {
			l.file.Close()
			err := os.Rename(filepath.Join(l.dir, logFile), filepath.Join(l.dir, oldLogFile))
			if err = errors.Join(err, l.open()); err != nil {
				l.ail(err)
				return
			}
		}
		n, err := l.file.Write(p[:min(int64(len(p)), l.half-l.size)])
		l.size += int64(n)
		p = p[n:]
		if err != nil {
			l.ail(err)
			return
		}
	}
}

// ail tells of trouble, once.
func (l *rotatingLog) ail(err error) {
	if err != nil && !l.ailed {
		l.ailed = true
		fmt.Fprintf(os.Stderr, "fleetdeck holder: the agent's log is incomplete: %v\n", err)
	}
}

// readLog reads the last n bytes of the log in dir, all of it for n <= 0.
func readLog(dir string, n int64) ([]byte, error) {
	for {
		newer, err := openAt(dir, logFile)
		if err != nil {
			return nil, err
		}
		older, err := openAt(dir, oldLogFile)
		if err != nil {
			newer.Close()
			return nil, err
		}
		// Between the two the log may have been rotated: then one file was opened twice.
		same := sameFile(newer, older)
		var b []byte
		if !same {
			b, err = lastOf(n, older, newer)
		}
		newer.Close()
		older.Close()
		if !same {
			return b, err
		}
	}
}

// openAt opens a file that may be missing. A nil file can be closed.
func openAt(dir, name string) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

func sameFile(a, b *os.File) bool {
	if a == nil || b == nil {
		return false
	}
	x, errX := a.Stat()
	y, errY := b.Stat()
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func lastOf(n int64, files ...*os.File) ([]byte, error) {
	var all []byte
	for _, f := range files {
		if f == nil {
			continue
		}
		if info, err := f.Stat(); err == nil && n > 0 && info.Size() > n {
			if _, err := f.Seek(-n, io.SeekEnd); err != nil {
				return nil, err
			}
		}
		b, err := io.ReadAll(f)
		if err != nil {
			return nil, err
		}
		all = append(all, b...)
	}
	if n > 0 && int64(len(all)) > n {
		all = all[int64(len(all))-n:]
	}
	return all, nil
}
