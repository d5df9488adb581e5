package lockfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestReplaceWritesTheWholeDocument(t *testing.T) {
	f := newFile(t)
	for _, text := range []string{"first", "", "a much longer third one", "x"} {
		write(t, f, text)
		wantText(t, f, text)
	}
	wantNoLitter(t, f)
}

func TestModeIsKeptAndANewDocumentIsPrivate(t *testing.T) {
	f := newFile(t)
	write(t, f, "{}")
	wantMode(t, f, 0o600)
	for _, mode := range []os.FileMode{0o640, 0o666, 0o444} { // 0o666 is one that a umask would cut
		if err := os.Chmod(f.Path(), mode); err != nil {
			t.Fatal(err)
		}
		write(t, f, mode.String())
		wantText(t, f, mode.String())
		wantMode(t, f, mode)
	}
}

func wantMode(t *testing.T, f *File, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != want {
		t.Errorf("mode %v, want %v", info.Mode(), want)
	}
}

func TestOwnerIsKept(t *testing.T) {
	needRoot(t)
	f := newFile(t)
	write(t, f, "{}")
	if err := os.Chown(f.Path(), 1234, 4321); err != nil {
		t.Fatal(err)
	}
	write(t, f, "new")
	wantText(t, f, "new")
	wantOwner(t, f.Path(), 1234, 4321)
}

func TestWhatRootMakesBelongsToTheDirectorysOwner(t *testing.T) {
	needRoot(t)
	f := newFile(t)
	if err := os.Chown(filepath.Dir(f.Path()), 1234, 4321); err != nil {
		t.Fatal(err)
	}
	write(t, f, "{}")
	wantOwner(t, f.Path(), 1234, 4321)
	wantOwner(t, f.LockPath(), 1234, 4321)
}

func wantOwner(t *testing.T, path string, wantUID, wantGID int) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if uid, gid, ok := owner(info); !ok || uid != wantUID || gid != wantGID {
		t.Errorf("%s belongs to %d:%d, want %d:%d", path, uid, gid, wantUID, wantGID)
	}
}

func TestLitterOfDeadWritersIsSweptAndNothingElse(t *testing.T) {
	f := newFile(t)
	dir := filepath.Dir(f.Path())
	litter := []string{".reservations.json.tmp-4242-abc", ".reservations.json.tmp-1-0"}
	others := []string{".other.json.tmp-4242-abc", ".reservations.json.tmp-x-y", ".reservations.json.tmp-77", "reservations.json.bak", ".reservations.json"}
	for _, name := range append(litter, others...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(t, f, "{}")
	for _, name := range litter {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was left", name)
		}
	}
	for _, name := range others {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s was removed", name)
		}
	}
}

func TestReadersSeeWholeDocuments(t *testing.T) {
	f := newFile(t)
	// Versions of very different length, each of one letter, whose count begins it.
	version := func(n int) []byte {
		size := 1 + (n*7919)%100_000
		return append([]byte(strconv.Itoa(size)+" "), bytes.Repeat([]byte{byte('a' + n%26)}, size)...)
	}
	write(t, f, string(version(0)))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				text, err := f.Read()
				if err != nil {
					t.Error(err)
					return
				}
				head, body, _ := strings.Cut(string(text), " ")
				if size, err := strconv.Atoi(head); err != nil || len(body) != size || strings.Trim(body, body[:1]) != "" {
					t.Errorf("torn document of %d bytes: %.40q…", len(text), text)
					return
				}
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		})
	}
	for n := range 200 {
		write(t, f, string(version(n)))
	}
	close(stop)
	readers.Wait()
}

func TestDirectoryIsNoDocument(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, dir + "/", dir + "/.", dir + "/..", file + "/"} {
		want := "names a directory"
		if path == dir {
			want = "is not a regular file"
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s) = %v, want %q", path, err, want)
		}
	}
}

func TestEverySpellingIsOneDocument(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mkdir := func(name string) {
		if err := os.MkdirAll(filepath.Join(base, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	mkdir("state/deep")
	mkdir("links")
	link("state", "dir")                             // a directory
	link("state/deep", "deep")                       // "deep/.." is state, not base
	link("../state/doc.json", "links/relative.json") // the document, before it exists
	link(base+"/state/doc.json", "links/absolute.json")
	link("relative.json", "links/chain.json")
	link("../deep/../doc.json", "links/dots.json")
	t.Chdir(base)

	real := filepath.Join(base, "state/doc.json")
	spellings := []string{
		real, "state/doc.json", "./state/../state//doc.json", "dir/doc.json", "deep/../doc.json", "links/relative.json",
		"links/absolute.json", "links/chain.json", "links/dots.json",
	}
	for _, state := range []string{"before the document exists", "after"} {
		for _, path := range spellings {
			f := open(t, path)
			if f.Path() != real || f.LockPath() != real+".lock" {
				t.Errorf("%s: Open(%s) is %s with lock %s, want %s", state, path, f.Path(), f.LockPath(), real)
			}
		}
		write(t, open(t, "links/chain.json"), "{}")
	}
	if target, err := os.Readlink("links/relative.json"); err != nil || target != "../state/doc.json" {
		t.Errorf("the symlink became %q, %v", target, err)
	}
	wantText(t, open(t, real), "{}")
}

func TestSymlinksInACircleAreAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("b", filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir, "a")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("Open = %v, want ELOOP", err)
	}
}
