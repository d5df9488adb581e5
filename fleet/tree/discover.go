package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// discoverDepth is how far below a root trees are looked for.
	discoverDepth = 6
	// settled is how old a directory's time must be to be believed: within it, one more change might leave the same.
	settled = time.Second
)

// Ignored are the names of directories that hold many files and no trees of their own.
var Ignored = []string{"node_modules", "vendor", "target", "__pycache__", ".cache", ".venv", ".tox", ".npm", ".cargo", ".rustup"}

// Finder finds working trees below roots. It remembers which directories hold none, so that to search again costs a look at the time of
// each, and only those are read that changed. It is safe for use by several goroutines, one search after the other.
type Finder struct {
	ignore []string

	mu    sync.Mutex // guards known, and is held during a search
	known map[string]*directory
}

// directory is one that a search went through.
type directory struct {
	info fs.FileInfo
	sure bool // info tells it from what a later change makes of it
	tree bool
	subs []string
}

// NewFinder makes a finder that passes by directories whose name or whole path matches one of ignore, beside those that are
// [Ignored].
func NewFinder(ignore []string) *Finder { return &Finder{ignore: slices.Concat(Ignored, ignore)} }

// Discover is one search below root.
func Discover(root string) []string { return NewFinder(nil).Find(root) }

// Find gives the working trees below the roots, each once, sorted. It stops at the top of each, follows no symbolic link below a
// root, and leaves out what it cannot read, and what cannot be a tree's key since its path is no UTF-8.
func (f *Finder) Find(roots ...string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := search{finder: f, now: time.Now(), helpers: make(chan struct{}, 2*runtime.NumCPU()), seen: map[string]*directory{}}
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			s.visit(real, 0)
		}
	}
	s.running.Wait()
	f.known = s.seen
	slices.Sort(s.found)
	return slices.Compact(s.found)
}

func (f *Finder) ignores(dir, name string) bool {
	for _, pattern := range f.ignore {
		what := name
		if filepath.IsAbs(pattern) {
			what = filepath.Join(dir, name)
		}
		if ok, _ := filepath.Match(pattern, what); ok {
			return true
		}
	}
	return false
}

// search is one run of a finder.
type search struct {
	finder  *Finder
	now     time.Time
	helpers chan struct{} // has room for as many goroutines as may still be started
	running sync.WaitGroup

	mu    sync.Mutex // guards both below
	seen  map[string]*directory
	found []string
}

// visit goes through the directory at path and those below it, some of them in goroutines of their own.
func (s *search) visit(path string, depth int) {
	d := s.read(path)
	if d == nil {
		return
	}
	s.mu.Lock()
	s.seen[path] = d
	if d.tree && utf8.ValidString(path) {
		s.found = append(s.found, path)
	}
	s.mu.Unlock()
	if d.tree || depth+1 >= discoverDepth {
		return
	}
	for _, name := range d.subs {
		sub := filepath.Join(path, name)
		select {
		case s.helpers <- struct{}{}:
			s.running.Go(func() {
				defer func() { <-s.helpers }()
				s.visit(sub, depth+1)
			})
		default:
			s.visit(sub, depth+1)
		}
	}
}

// read reads the directory at path, unless it is as it was.
func (s *search) read(path string) *directory {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return nil
	}
	old := s.finder.known[path]
	if old != nil && old.sure && os.SameFile(old.info, info) && old.info.ModTime().Equal(info.ModTime()) {
		return old
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil
	}
	d := &directory{info: info, sure: s.now.Sub(info.ModTime()) > settled}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == ".git":
			d.tree, d.subs = true, nil
			return d
		case e.IsDir() && !s.finder.ignores(path, name):
			d.subs = append(d.subs, name)
		}
	}
	return d
}
