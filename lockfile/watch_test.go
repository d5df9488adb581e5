package lockfile

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// never is a poll that does not come within a test.
const never = time.Hour

// awaitToken waits for a token.
func awaitToken(t *testing.T, tokens <-chan struct{}) {
	t.Helper()
	select {
	case _, ok := <-tokens:
		if !ok {
			t.Fatal("the watch ended")
		}
	case <-time.After(patienceOfTests):
		t.Fatal("no token")
	}
}

// awaitText waits for a token after which the document says want.
func awaitText(t *testing.T, f *File, tokens <-chan struct{}, want string) {
	t.Helper()
	for deadline := time.Now().Add(patienceOfTests); time.Now().Before(deadline); {
		awaitToken(t, tokens)
		if text, err := f.Read(); err == nil && string(text) == want {
			return
		}
	}
	t.Fatalf("the document never said %q", want)
}

// runWatch runs a watch whose parts the test has set.
func runWatch(t *testing.T, w *watch) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go w.run(ctx)
	t.Cleanup(func() {
		cancel()
		for range w.tokens {
		}
	})
	return w.tokens
}

func notifier(t *testing.T) *fsnotify.Watcher {
	t.Helper()
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		t.Skipf("SKIPPED: no file events here: %v", err)
	}
	t.Cleanup(func() { notify.Close() })
	return notify
}

func TestWatchSeesTheFirstDocumentAndEachReplacement(t *testing.T) {
	notifier(t)
	f := newFile(t)
	tokens := f.Watch(t.Context(), WatchOptions{Poll: never})
	awaitToken(t, tokens) // the first, at once
	for _, text := range []string{"one", "two", "three"} {
		write(t, f, text)
		awaitText(t, f, tokens, text)
	}
	if err := os.Remove(f.Path()); err != nil {
		t.Fatal(err)
	}
	awaitToken(t, tokens)
}

func TestWatchEndsWithItsContext(t *testing.T) {
	f := newFile(t)
	ctx, cancel := context.WithCancel(t.Context())
	tokens := f.Watch(ctx, WatchOptions{})
	cancel()
	eventually(t, "the channel is closed", func() bool {
		select {
		case _, ok := <-tokens:
			return !ok
		default:
			return false
		}
	})
}

func TestWatchSeesASymlinkBeingTurned(t *testing.T) {
	notifier(t)
	f := newFile(t)
	write(t, f, "one")
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(f.Path(), link); err != nil {
		t.Fatal(err)
	}
	linked := open(t, link)
	tokens := linked.Watch(t.Context(), WatchOptions{Poll: never})
	awaitToken(t, tokens)
	write(t, f, "two")
	awaitText(t, linked, tokens, "two")
	if err := os.Symlink("elsewhere", link+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".new", link); err != nil {
		t.Fatal(err)
	}
	awaitToken(t, tokens)
}

func TestWatchCaresForTheDocumentOnly(t *testing.T) {
	f := newFile(t)
	dir := filepath.Dir(f.Path())
	w := newWatch(f, WatchOptions{})
	for _, test := range []struct {
		name  string
		event fsnotify.Event
		want  bool
	}{
		{"replaced", fsnotify.Event{Name: f.Path(), Op: fsnotify.Create}, true},
		{"written", fsnotify.Event{Name: f.Path(), Op: fsnotify.Write}, true},
		{"removed", fsnotify.Event{Name: f.Path(), Op: fsnotify.Remove}, true},
		{"renamed", fsnotify.Event{Name: f.Path(), Op: fsnotify.Rename}, true},
		{"mode", fsnotify.Event{Name: f.Path(), Op: fsnotify.Chmod}, false},
		{"written and mode", fsnotify.Event{Name: f.Path(), Op: fsnotify.Write | fsnotify.Chmod}, true},
		{"lock file", fsnotify.Event{Name: f.LockPath(), Op: fsnotify.Create}, false},
		{"temporary file", fsnotify.Event{Name: filepath.Join(dir, ".reservations.json.tmp-1-a"), Op: fsnotify.Create}, false},
		{"directory removed", fsnotify.Event{Name: dir, Op: fsnotify.Remove}, true},
		{"directory renamed", fsnotify.Event{Name: dir, Op: fsnotify.Rename}, true},
	} {
		if got := w.concerns(test.event); got != test.want {
			t.Errorf("%s: concerns us is %t, want %t", test.name, got, test.want)
		}
	}
}

func TestLookSeesContentNotMode(t *testing.T) {
	f := newFile(t)
	write(t, f, "one")
	w := newWatch(f, WatchOptions{})
	before := w.look()
	if err := os.Chmod(f.Path(), 0o640); err != nil {
		t.Fatal(err)
	}
	if !same(before, w.look()) {
		t.Error("another mode looks like another document")
	}
	write(t, f, "two")
	if same(before, w.look()) {
		t.Error("another document looks the same")
	}
	if err := os.Remove(f.Path()); err != nil {
		t.Fatal(err)
	}
	if same(before, w.look()) {
		t.Error("no document looks the same")
	}
}

func TestLostEventsGiveAToken(t *testing.T) {
	f := newFile(t)
	w := newWatch(f, WatchOptions{Poll: never})
	lost := make(chan error)
	w.errors = lost
	tokens := runWatch(t, w)
	awaitToken(t, tokens)
	lost <- fsnotify.ErrEventOverflow
	awaitToken(t, tokens)
}

func TestTokensThatNobodyTakesBlockNothing(t *testing.T) {
	f := newFile(t)
	w := newWatch(f, WatchOptions{Poll: never})
	lost := make(chan error)
	w.errors = lost
	runWatch(t, w)
	for begin := time.Now(); time.Since(begin) < 3*settleMax; { // long enough for more tokens than there is room for
		select {
		case lost <- fsnotify.ErrEventOverflow:
		case <-time.After(patienceOfTests):
			t.Fatal("the watch stands still")
		}
	}
}

func TestUnendingEventsDoNotHoldBackTheToken(t *testing.T) {
	f := newFile(t)
	w := newWatch(f, WatchOptions{Poll: never})
	events := make(chan fsnotify.Event)
	w.events = events
	tokens := runWatch(t, w)
	awaitToken(t, tokens)
	for deadline := time.Now().Add(patienceOfTests); time.Now().Before(deadline); {
		select {
		case events <- fsnotify.Event{Name: f.Path(), Op: fsnotify.Write}:
		case <-tokens:
			return
		}
	}
	t.Error("no token while events went on")
}

func TestPollAloneSees(t *testing.T) {
	f := newFile(t)
	tokens := runWatch(t, newWatch(f, WatchOptions{Poll: time.Millisecond}))
	awaitToken(t, tokens)
	write(t, f, "one")
	awaitText(t, f, tokens, "one")
	if err := os.RemoveAll(filepath.Dir(f.Path())); err != nil {
		t.Fatal(err)
	}
	awaitToken(t, tokens)
}

func TestDirectoryRemovedAndMadeAgainIsWatchedAgain(t *testing.T) {
	for _, test := range []struct {
		name string
		away func(dir string) error
	}{
		{"removed", os.RemoveAll},
		{"renamed", func(dir string) error { return os.Rename(dir, dir+".old") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			f := open(t, filepath.Join(dir, "reservations.json"))
			w := newWatch(f, WatchOptions{})
			w.notify = notifier(t)
			if !w.attach() || w.attach() {
				t.Fatal("the directory is to be watched once")
			}
			if err := test.away(dir); err != nil {
				t.Fatal(err)
			}
			if !w.attach() {
				t.Fatal("attach did not see the directory go")
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if !w.attach() {
				t.Fatal("attach did not see the new directory")
			}
			write(t, f, "new")
			deadline := time.After(patienceOfTests)
			for {
				select {
				case event := <-w.notify.Events:
					if event.Name == f.Path() {
						return
					}
				case <-deadline:
					t.Fatal("no event in the new directory")
				}
			}
		})
	}
}

func TestWatchOutlivesItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f := open(t, filepath.Join(dir, "reservations.json"))
	tokens := f.Watch(t.Context(), WatchOptions{Poll: 5 * time.Millisecond})
	awaitToken(t, tokens)
	for _, text := range []string{"one", "two"} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		awaitToken(t, tokens)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		// The first may be read by a token that the removal left: only the next shows that the new directory is watched, and so that
		// its removal will be seen though the last look found none either.
		for _, part := range []string{text, text + ", again"} {
			write(t, f, part)
			awaitText(t, f, tokens, part)
		}
	}
}

func TestWatchOfADirectoryThatIsGoneAtTheStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f := open(t, filepath.Join(dir, "reservations.json"))
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	tokens := f.Watch(t.Context(), WatchOptions{Poll: 5 * time.Millisecond})
	awaitToken(t, tokens)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, f, "one")
	awaitText(t, f, tokens, "one")
}
