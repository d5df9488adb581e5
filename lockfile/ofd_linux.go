package lockfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockOFD takes an open-file-description lock on the whole file at path, which excludes the holders of fcntl(2) locks.
// It does not wait. The file is nil, without an error, where this lock must not be taken or does not exist. On every error
// nothing stays locked or open.
func lockOFD(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	want, err := wantOFD(file)
	if err == nil && want {
		err = setOFD(file, unix.F_WRLCK)
		switch {
		case err == nil:
			return file, nil
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
			err = errBusy
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
			err = nil // an emulated kernel without such locks
		default:
			err = fmt.Errorf("open-file-description lock: %w", err)
		}
	}
	return nil, errors.Join(err, file.Close())
}

// unlockOFD frees the lock without waiting for the last copy of the descriptor to be closed.
func unlockOFD(file *os.File) error { return setOFD(file, unix.F_UNLCK) }

func setOFD(file *os.File, typ int16) error {
	whole := unix.Flock_t{Type: typ, Whence: io.SeekStart} // length 0: to the end; pid must be 0
	return uninterrupted(func() error {
		return unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &whole)
	})
}

// wantOFD reports whether the second lock may be taken on file.
func wantOFD(file *os.File) (bool, error) {
	var fs unix.Statfs_t
	err := uninterrupted(func() error { return unix.Fstatfs(int(file.Fd()), &fs) })
	if err != nil {
		return false, fmt.Errorf("find the lock file's file system: %w", err)
	}
	return !byteRangeFlock(int64(fs.Type)), nil
}

// byteRangeFlock reports whether a file system sends flock(2) to a server as a byte-range lock on the whole file. There it
// excludes both families alone, and a second descriptor would be refused because of our own first.
func byteRangeFlock(typ int64) bool {
	switch uint32(typ) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC,
		unix.V9FS_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.CODA_SUPER_MAGIC,
		unix.NCP_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC, lustreMagic, gfs2Magic, gpfsMagic:
		return true
	}
	return false
}

// File systems that x/sys/unix does not name.
const (
	lustreMagic = 0x0bd00bd0
	gfs2Magic   = 0x01161970
	gpfsMagic   = 0x47504653
)
