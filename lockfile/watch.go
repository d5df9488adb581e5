package lockfile

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// WatchOptions tune a watch. The zero value is good.
type WatchOptions struct {
	// Poll is how often to look without being told: file systems that others write to from outside (containers, network,
	// FUSE) and a removed directory tell nothing. One second if zero.
	Poll time.Duration
}

const (
	defaultPoll = time.Second
	settleTime  = 5 * time.Millisecond   // quiet that ends a burst of events
	settleMax   = 100 * time.Millisecond // how long a burst may hold back a token
)

// Watch returns a channel that gets a token whenever the document may have changed: look again. The first comes at once.
// A token that is not taken stands for all that follow, so a reader that was away sees one, and finds the present document.
// A document that did not change may give a token too; a change never gives none. The channel is closed when ctx ends.
func (f *File) Watch(ctx context.Context, opts WatchOptions) <-chan struct{} {
	w := newWatch(f, opts)
	// Without events (their number is limited on each machine, and shared with editors) the poll does.
	if notify, err := fsnotify.NewWatcher(); err == nil {
		w.notify = notify
		w.events, w.errors = notify.Events, notify.Errors
	}
	go w.run(ctx)
	return w.tokens
}

// watch is one Watch. Only its run goroutine touches it.
type watch struct {
	names  map[string]bool        // paths that concern us: the document, and the symlinks that lead to it
	dirs   map[string]os.FileInfo // their directories, as they were when watched; nil when not watched
	poll   time.Duration
	tokens chan struct{}

	notify *fsnotify.Watcher // nil without events, and so are its channels
	events <-chan fsnotify.Event
	errors <-chan error

	last map[string]state
}

// state is what a change of a file shows in. The zero value is a file that is not there.
type state struct {
	target string // of a symlink
	info   os.FileInfo
}

func newWatch(f *File, opts WatchOptions) *watch {
	w := &watch{
		names:  map[string]bool{f.path: true},
		dirs:   map[string]os.FileInfo{filepath.Dir(f.path): nil},
		poll:   opts.Poll,
		tokens: make(chan struct{}, 1),
	}
	for _, link := range f.links {
		w.names[link] = true
		w.dirs[filepath.Dir(link)] = nil
	}
	if w.poll <= 0 {
		w.poll = defaultPoll
	}
	return w
}

func (w *watch) run(ctx context.Context) {
	defer close(w.tokens)
	if w.notify != nil {
		defer w.notify.Close()
	}
	// Watch first and look then: a change in between is seen twice, and not missed.
	w.attach()
	w.last = w.look()
	w.token()

	ticker := time.NewTicker(w.poll)
	defer ticker.Stop()
	settle := time.NewTimer(0)
	settle.Stop()
	var burst time.Time // when the present burst of events began; zero when quiet
	changed := func() {
		now := time.Now()
		if burst.IsZero() {
			burst = now
		}
		settle.Reset(min(settleTime, settleMax-now.Sub(burst)))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-w.events:
			switch {
			case !ok:
				w.events = nil
			case w.concerns(event):
				changed()
			}
		case _, ok := <-w.errors:
			if !ok {
				w.errors = nil
				continue
			}
			changed() // events were lost, or might have been
		case <-settle.C:
			burst = time.Time{}
			w.attach()
			w.last = w.look()
			w.token()
		case <-ticker.C:
			moved := w.attach()
			if now := w.look(); moved || !same(w.last, now) {
				w.last = now
				w.token()
			}
		}
	}
}

func (w *watch) token() {
	select {
	case w.tokens <- struct{}{}:
	default: // one is there already
	}
}

// concerns reports whether an event may mean a change of the document. What happens to a directory itself always may.
func (w *watch) concerns(event fsnotify.Event) bool {
	if event.Op == fsnotify.Chmod {
		return false
	}
	_, isDir := w.dirs[event.Name]
	return isDir || w.names[event.Name]
}

// attach watches every directory that is not watched yet, or that is not the one any more that was. It reports whether
// there were any: what happened in them meanwhile told nobody.
func (w *watch) attach() (moved bool) {
	if w.notify == nil {
		return false
	}
	for dir, watched := range w.dirs {
		now, err := os.Stat(dir)
		if err == nil && watched != nil && os.SameFile(now, watched) {
			continue
		}
		if watched != nil {
			_ = w.notify.Remove(dir) // the system may have done so itself
			w.dirs[dir] = nil
			moved = true
		}
		if err == nil && w.notify.Add(dir) == nil {
			w.dirs[dir] = now
			moved = true
		}
	}
	return moved
}

// look notes the present state of the document and of the symlinks that lead to it.
func (w *watch) look() map[string]state {
	now := make(map[string]state, len(w.names))
	for name := range w.names {
		info, err := os.Lstat(name)
		if err != nil {
			continue
		}
		s := state{info: info}
		if info.Mode()&fs.ModeSymlink != 0 {
			s.target, _ = os.Readlink(name)
		}
		now[name] = s
	}
	return now
}

// same reports whether two looks saw the same files in the same state. Mode and owner are not part of it.
func same(a, b map[string]state) bool {
	if len(a) != len(b) {
		return false
	}
	for name, was := range a {
		is, there := b[name]
		if !there || is.target != was.target || !os.SameFile(is.info, was.info) ||
			is.info.Size() != was.info.Size() || !is.info.ModTime().Equal(was.info.ModTime()) {
			return false
		}
	}
	return true
}
