package observe

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// maxHeads is how many git directories are watched: their number is limited on each machine, and shared with editors.
	maxHeads = 2000
	// headsQuiet gathers what one call of git changes, headsPause is between two tellings: agents may commit without end.
	headsQuiet = 50 * time.Millisecond
	headsPause = 2 * time.Second
)

// heads tells of trees whose HEAD, index or last fetch changed. A tree that it cannot watch, or may have lost an event of, is found by
// its times in its turn.
type heads struct {
	tell   func(trees map[string]bool)
	notify *fsnotify.Watcher // nil where the system has none to give

	mu    sync.Mutex        // guards trees
	trees map[string]string // by their git directory
}

// newHeads makes one that calls tell, from a goroutine of its own, until ctx ends.
func newHeads(ctx context.Context, tell func(trees map[string]bool)) *heads {
	h := &heads{tell: tell, trees: map[string]string{}}
	if notify, err := fsnotify.NewWatcher(); err == nil {
		h.notify = notify
		go h.run(ctx)
	}
	return h
}

// watch begins to watch the git directory of a tree, and reports whether it is watched.
func (h *heads) watch(tree, gitDir string) bool {
	if h == nil || h.notify == nil || gitDir == "" {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trees[gitDir] == tree {
		return true
	}
	if len(h.trees) >= maxHeads || h.notify.Add(gitDir) != nil {
		return false
	}
	h.trees[gitDir] = tree
	return true
}

// concerns gives the tree that an event is about, or nothing.
func (h *heads) concerns(e fsnotify.Event) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if tree, ok := h.trees[e.Name]; ok {
		if e.Has(fsnotify.Remove | fsnotify.Rename) { // the git directory itself: what comes in its place is another
			h.notify.Remove(e.Name)
			delete(h.trees, e.Name)
		}
		return tree
	}
	switch filepath.Base(e.Name) {
	case "HEAD", "index", "FETCH_HEAD":
		return h.trees[filepath.Dir(e.Name)]
	}
	return ""
}

func (h *heads) run(ctx context.Context) {
	defer h.notify.Close()
	changed := map[string]bool{}
	var due <-chan time.Time // nil while nothing is to be told
	var told time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-h.notify.Events:
			if !ok {
				return
			}
			if tree := h.concerns(e); tree != "" {
				if changed[tree] = true; due == nil {
					due = time.After(max(headsQuiet, headsPause-time.Since(told)))
				}
			}
		case _, ok := <-h.notify.Errors: // events were lost: the turn of each tree comes all the same
			if !ok {
				return
			}
		case <-due:
			h.tell(changed)
			changed, due, told = map[string]bool{}, nil, time.Now()
		}
	}
}
