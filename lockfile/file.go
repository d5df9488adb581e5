package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// File is a document's place on disk. Its methods may be called from several goroutines.
type File struct {
	path  string
	links []string // the symlinks that led to path, in the order in which they were followed
	gate  *gate
}

// Open finds the place that path names. It follows symlinks, also one whose target does not exist yet, so that every
// spelling of a path has the same document and the same lock. The directory must exist, the document need not. Nothing
// is created.
func Open(path string) (*File, error) {
	real, links, err := resolve(path)
	if err != nil {
		return nil, fmt.Errorf("open document %s: %w", path, err)
	}
	if info, err := os.Lstat(real); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open document %s: %s is not a regular file", path, real)
	}
	return &File{path: real, links: links, gate: gateAt(real + ".lock")}, nil
}

// Path is the document's real path, all symlinks followed.
func (f *File) Path() string { return f.path }

// LockPath is the path of the file that carries the lock.
func (f *File) LockPath() string { return f.gate.path }

// Read returns the document as it stands, whole, without taking the lock. A missing file is an [fs.ErrNotExist].
func (f *File) Read() ([]byte, error) {
	// One open and one read: two would see two versions.
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	return data, nil
}

// maxLinks is how many symlinks resolve follows, as many as Linux does.
const maxLinks = 40

// resolve returns the real path that path names, though its last element may not exist, and the symlinks on the way. It
// never cleans a path before its symlinks are followed: "link/.." is not the directory that holds link.
func resolve(path string) (real string, links []string, err error) {
	if !filepath.IsAbs(path) {
		wd, err := os.Getwd()
		if err != nil {
			return "", nil, err
		}
		path = wd + "/" + path
	}
	for range maxLinks {
		slash := strings.LastIndexByte(path, '/')
		base := path[slash+1:]
		if base == "" || base == "." || base == ".." {
			return "", nil, errors.New("the path names a directory")
		}
		dir, err := filepath.EvalSymlinks(path[:slash+1])
		if err != nil {
			return "", nil, err
		}
		path = filepath.Join(dir, base)

		target, err := os.Readlink(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EINVAL): // EINVAL: no symlink
			return path, links, nil
		case err != nil:
			return "", nil, err
		}
		links = append(links, path)
		if !filepath.IsAbs(target) {
			target = dir + "/" + target
		}
		path = target
	}
	return "", nil, syscall.ELOOP
}
