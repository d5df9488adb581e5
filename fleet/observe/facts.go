package observe

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/tree"
)

const (
	// factsAtOnce is how many trees are looked at in one step, a step being made every two seconds: of more, each has its turn later.
	factsAtOnce = 200
	stepEvery   = 2 * time.Second
	// dirtEvery is the least time between two calls of git that nothing asked for but the age of what is known; a tree in
	// which somebody works is due after busyAge, another after idleAge.
	dirtEvery = 3 * time.Second
	busyAge   = 20 * time.Second
	idleAge   = 3 * time.Minute
)

// facts keeps what lists show of trees beside their occupancy. What HEAD and the index tell is at hand within two seconds; dirt that
// they do not tell of is found by calling git, and that costs more than all else here: one tree has its turn at a time.
type facts struct {
	observer *tree.Observer
	changed  chan struct{} // has a token when git found something new

	// Of Run's goroutine alone:
	known  map[string]*fact
	next   int       // where the round over the trees goes on
	called time.Time // git, for nothing but age

	mu      sync.Mutex      // guards all below
	found   map[string]bool // trees where git found something new
	touched map[string]bool // trees where something happened
	doubted map[string]bool // trees that somebody asks about
}

type fact struct {
	tree.Facts
	stamp headStamp
	asked time.Time
}

func newFacts() *facts {
	return &facts{
		observer: tree.NewObserver(), changed: make(chan struct{}, 1), known: map[string]*fact{},
		found: map[string]bool{}, touched: map[string]bool{}, doubted: map[string]bool{},
	}
}

// fill fills in the facts of rows. A tree that is new is looked at now, unless that are many.
func (f *facts) fill(ctx context.Context, rows []fleet.TreeRow) {
	f.mu.Lock()
	found := f.found
	f.found = map[string]bool{}
	f.mu.Unlock()
	for path := range found {
		f.look(ctx, path)
	}
	for i, unknown := 0, 0; i < len(rows); i++ {
		k := f.known[rows[i].Tree]
		if k == nil {
			if unknown++; unknown > factsAtOnce {
				continue
			}
			k = f.look(ctx, rows[i].Tree)
		}
		setFacts(&rows[i], k.Facts)
	}
}

// look reads the facts of a tree. That calls git in the background where its HEAD or index is another, or what is known old.
func (f *facts) look(ctx context.Context, path string) *fact {
	k := &fact{stamp: headStampOf(path), asked: time.Now()}
	k.Facts = f.observer.Facts(ctx, path, func() {
		f.mu.Lock()
		f.found[path] = true
		f.mu.Unlock()
		f.tell()
	})
	f.known[path] = k
	return k
}

func (f *facts) tell() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// touch notes that something happened in a tree.
func (f *facts) touch(path string) {
	if path == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touched[path] = true
}

// doubt has a tree looked at with the next step, whatever is known of it.
func (f *facts) doubt(path string) {
	if path == "" {
		return
	}
	f.observer.Doubt(path)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doubted[path] = true
}

// step looks at those trees whose turn it is. It is due every [stepEvery].
func (f *facts) step(ctx context.Context, trees []fleet.Tree, busy index) {
	f.mu.Lock()
	doubted := f.doubted
	f.doubted = map[string]bool{}
	f.mu.Unlock()
	for path := range doubted {
		if f.known[path] != nil {
			f.look(ctx, path)
		}
	}
	var oldest string
	var age time.Duration // past the one at which a tree is due
	for range min(factsAtOnce, len(trees)) {
		f.next = (f.next + 1) % len(trees)
		t := trees[f.next]
		k := f.known[t.Path]
		if k == nil || headStampOf(t.Path) != k.stamp {
			var before tree.Facts
			if k != nil {
				before = k.Facts
			}
			if f.look(ctx, t.Path).Facts != before {
				f.tell()
			}
			f.touch(t.Path) // git may have looked just before that
			continue
		}
		due := idleAge
		if busy.has(t) || f.isTouched(t.Path) {
			due = busyAge
		}
		if a := time.Since(k.asked) - due; a > age {
			oldest, age = t.Path, a
		}
	}
	if oldest != "" && time.Since(f.called) > dirtEvery {
		f.called = time.Now()
		f.mu.Lock()
		delete(f.touched, oldest)
		f.mu.Unlock()
		f.look(ctx, oldest)
	}
}

func (f *facts) isTouched(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.touched[path]
}

// headStamp is what a commit, a checkout, a git add or a fetch shows in.
type headStamp struct {
	gone               bool // the tree is
	head, index, fetch time.Time
}

func headStampOf(path string) headStamp {
	dir := filepath.Join(path, ".git")
	head, err := os.Stat(filepath.Join(dir, "HEAD"))
	if err != nil {
		data, rerr := os.ReadFile(dir) // of a linked worktree
		if rerr != nil {
			_, err = os.Stat(path)
			return headStamp{gone: err != nil}
		}
		if dir = strings.TrimSpace(strings.TrimPrefix(string(data), "gitdir: ")); !filepath.IsAbs(dir) {
			dir = filepath.Join(path, dir)
		}
		if head, err = os.Stat(filepath.Join(dir, "HEAD")); err != nil {
			return headStamp{}
		}
	}
	s := headStamp{head: head.ModTime()}
	if index, err := os.Stat(filepath.Join(dir, "index")); err == nil {
		s.index = index.ModTime()
	}
	if fetch, err := os.Stat(filepath.Join(dir, "FETCH_HEAD")); err == nil {
		s.fetch = fetch.ModTime()
	}
	return s
}
