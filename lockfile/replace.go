package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Replace makes data the document. Every reader sees the old document or the new one, whole, and so does a machine that
// crashes at any instant. Mode and owner of the old file are kept; a new one has mode 0600. Access control lists, extended
// attributes and further hard links are not carried over.
//
// When it returns nil the new document is on disk. When it returns a [*DurabilityError] the new document is there but may
// not outlast a power failure. On any other error the old one stands and nothing is left behind.
func (h *Held) Replace(data []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	path := h.file.path
	err := h.replace(data)
	if _, done := errors.AsType[*DurabilityError](err); err == nil || done {
		return err
	}
	return fmt.Errorf("replace %s: %w", path, advise(err, path))
}

// replace is Replace without the words for people. h.mu is held.
func (h *Held) replace(data []byte) error {
	if err := h.check(); err != nil {
		return err
	}
	path := h.file.path
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := sweep(dir, filepath.Base(path)); err != nil {
		return err
	}

	temp, err := writeTemp(path, data)
	if err != nil {
		return err
	}
	// Look again at the last moment: who lost the lock meanwhile must not overwrite what its successor wrote.
	err = h.check()
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := syncDir(dir); err != nil {
		return &DurabilityError{Path: path, Err: err}
	}
	return nil
}

// writeTemp writes data beside path, on disk and with the mode and owner that the document is to have. On an error nothing
// is left.
func writeTemp(path string, data []byte) (name string, err error) {
	dir, base := filepath.Split(path)
	name = dir + tempPrefix(base) + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(rand.Uint64(), 36)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	err = inherit(file, path)
	if err == nil {
		_, err = file.Write(data)
	}
	if err == nil {
		err = file.Sync()
	}
	return name, errors.Join(err, file.Close())
}

// inherit gives file the mode and owner of the document at path. The first document belongs to whom its lock file does.
func inherit(file *os.File, path string) error {
	old, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		giveToOwner(file, filepath.Dir(path))
		return nil
	case err != nil:
		return err
	case !old.Mode().IsRegular():
		return errors.New("it is not a regular file any more")
	}
	own, err := file.Stat()
	if err != nil {
		return err
	}
	uid, gid, known := owner(old)
	if ownUID, ownGID, _ := owner(own); known && (ownUID != uid || ownGID != gid) {
		if err := file.Chown(uid, gid); err != nil {
			return fmt.Errorf("%w: run as user %d, who owns the document", err, uid)
		}
	}
	return file.Chmod(old.Mode().Perm()) // after Chown, which can take bits away
}

// tempPrefix is how the names of a document's temporary files begin; the writer's pid and a random number follow.
func tempPrefix(base string) string { return "." + base + ".tmp-" }

// sweep removes the temporary files that dead writers left. The lock is held, so the writer of each is dead, or has lost
// the lock and must not finish.
func sweep(dir *os.File, base string) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		rest, ours := strings.CutPrefix(name, tempPrefix(base))
		pid, _, ours2 := strings.Cut(rest, "-")
		if _, err := strconv.Atoi(pid); !ours || !ours2 || err != nil {
			continue
		}
		if err := os.Remove(filepath.Join(dir.Name(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// syncDir makes a rename in dir last.
func syncDir(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // this file system knows no such thing, and keeps its directories by other means
	}
	return err
}

// advise adds what to do next.
func advise(err error, path string) error {
	dir := filepath.Dir(path)
	switch {
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EXDEV):
		return fmt.Errorf("%w: it is a mount point of its own: mount its directory, not the file", err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: make room on the file system of %s", err, dir)
	case errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room within your quota on the file system of %s", err, dir)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: raise this process's limit of open files (ulimit -n)", err)
	case errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%w: the whole system has too many open files: raise fs.file-max, or end what holds them", err)
	case errors.Is(err, syscall.ENOLCK):
		return fmt.Errorf("%w: the file system of %s has no lock to give: keep the state on a local one", err, dir)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: remount the file system of %s writable, or keep the document elsewhere", err, dir)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: this user must be able to write in %s", err, dir)
	}
	return err
}
