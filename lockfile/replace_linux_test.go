package lockfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// wantRefused demands that a replacement fails with cause and advice, and leaves nothing but the old document.
func wantRefused(t *testing.T, f *File, text string, cause error, advice string) {
	t.Helper()
	before, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	held := hold(t, f)
	err = held.Replace([]byte(text))
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), advice) || !strings.Contains(err.Error(), f.Path()) {
		t.Errorf("Replace = %v, want %v, %q and the path", err, cause, advice)
	}
	held.Unlock()
	wantText(t, f, string(before))
	wantNoLitter(t, f)
}

func TestFullDiskLeavesTheOldDocument(t *testing.T) {
	dir := t.TempDir()
	mount(t, "tmpfs", dir, "tmpfs", 0, "size=64k")
	f := open(t, filepath.Join(dir, "reservations.json"))
	write(t, f, "old")
	wantRefused(t, f, strings.Repeat("x", 100_000), unix.ENOSPC, "make room on the file system of "+dir)
	write(t, f, "new")
}

func TestReadOnlyFileSystemLeavesTheOldDocument(t *testing.T) {
	dir := t.TempDir()
	mount(t, "tmpfs", dir, "tmpfs", 0, "size=64k")
	f := open(t, filepath.Join(dir, "reservations.json"))
	write(t, f, "old")
	held := hold(t, f)
	// The lock was taken before the disk went bad; an open descriptor for writing would keep it from going read-only, so
	// it is a second mount that does.
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("SKIPPED: cannot mount here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("SKIPPED: cannot mount here: %v", err)
	}
	err := held.Replace([]byte("new"))
	if !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "writable") {
		t.Errorf("Replace = %v, want EROFS and what to do", err)
	}
	wantText(t, f, "old")
	wantNoLitter(t, f)
}

func TestDocumentMountedAloneIsRefused(t *testing.T) {
	f := newFile(t)
	write(t, f, "old")
	elsewhere := filepath.Join(t.TempDir(), "host.json")
	if err := os.WriteFile(elsewhere, []byte("mounted"), 0o600); err != nil {
		t.Fatal(err)
	}
	mount(t, elsewhere, f.Path(), "", unix.MS_BIND, "")
	wantRefused(t, f, "new", unix.EBUSY, "mount its directory, not the file")
}

func TestDirectoryThatMayNotBeWrittenLeavesTheOldDocument(t *testing.T) {
	f := newFile(t)
	write(t, f, "old")
	dir := filepath.Dir(f.Path())
	c := startChild(t, "agent", f.Path())
	if os.Geteuid() == 0 { // whom permissions do not stop
		for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, f.LockPath(): 0o666} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		c.do("setuid 1234", "now uid")
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	c.do("lock 10s", "held")
	if line := c.do("replace new", "error"); !strings.Contains(line, "permission denied: this user must be able to write in "+dir) {
		t.Errorf("Replace says %q", line)
	}
	wantText(t, f, "old")
	wantNoLitter(t, f)
}

func TestLockFileThatMayNotBeWrittenSaysWhatToDo(t *testing.T) {
	needRoot(t)
	f := newFile(t)
	hold(t, f).Unlock()
	if err := os.Chmod(filepath.Dir(filepath.Dir(f.Path())), 0o755); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, "agent", f.Path())
	c.do("setuid 1234", "now uid")
	if line := c.do("lock 1s", "error"); !strings.Contains(line, "must make it writable for this user") {
		t.Errorf("Lock says %q", line)
	}
}

func TestFailingSystemCallLeavesTheOldDocument(t *testing.T) {
	for _, test := range []struct{ name, inject, says string }{
		{"fsync", "fsync:error=EIO", "input/output error"},
		{"fsync over the quota", "fsync:error=EDQUOT", "make room within your quota"},
		{"rename", "/^rename:error=EACCES", "permission denied"},
		{"rename over a mount", "/^rename:error=EBUSY", "mount its directory, not the file"},
		{"mode", "/^fchmod:error=EPERM", "not permitted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFile(t)
			write(t, f, "old")
			c := startTraced(t, f, "-e", "inject="+test.inject)
			c.do("lock 10s", "held")
			if line := c.do("replace new", "error"); !strings.Contains(line, test.says) {
				t.Errorf("Replace says %q, want %q", line, test.says)
			}
			wantText(t, f, "old")
			wantNoLitter(t, f)
			c.do("unlock", "free")
		})
	}
}

func TestDirectorySyncThatFailsIsDoneNotFailed(t *testing.T) {
	f := newFile(t)
	write(t, f, "old")
	c := startTraced(t, f, "-P", filepath.Dir(f.Path()), "-e", "inject=fsync:error=EIO")
	c.do("lock 10s", "held")
	if line := c.do("replace new", "durability"); !strings.Contains(line, f.Path()) || !strings.Contains(line, "input/output error") {
		t.Errorf("Replace says %q", line)
	}
	wantText(t, f, "new")
	wantNoLitter(t, f)
}

func TestDirectoryWithoutSyncIsNoError(t *testing.T) {
	f := newFile(t)
	write(t, f, "old")
	c := startTraced(t, f, "-P", filepath.Dir(f.Path()), "-e", "inject=fsync:error=EINVAL")
	c.do("lock 10s", "held")
	c.do("replace new", "replaced")
	wantText(t, f, "new")
}

func TestKilledWriterLeavesAWholeDocumentAndAFreeLock(t *testing.T) {
	for _, test := range []struct {
		name, inject string
		litter       bool
	}{
		{"before it writes", "/^fchmod:error=EIO:signal=KILL", true},
		{"before the file is on disk", "fsync:error=EIO:signal=KILL", true},
		{"between temp and rename", "/^rename:error=EIO:signal=KILL", true},
		{"after the rename", "/^rename:signal=KILL:when=1", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFile(t)
			write(t, f, "old")
			c := startTraced(t, f, "-e", "inject="+test.inject)
			c.do("lock 10s", "held")
			c.tell("replace new")
			if line, ok := <-c.lines; ok {
				t.Fatalf("the writer lived and says %q", line)
			}
			c.cmd.Wait()

			text, err := f.Read()
			if err != nil || string(text) != "old" && string(text) != "new" {
				t.Errorf("document = %q, %v, want the old or the new one", text, err)
			}
			if test.litter {
				if string(text) != "old" || len(temps(t, f)) != 1 {
					t.Errorf("document %q and temporary files %v, want the old one and one: was it killed elsewhere?", text, temps(t, f))
				}
			}
			write(t, f, "next")
			wantText(t, f, "next")
			wantNoLitter(t, f)
		})
	}
}

func TestLockLostDuringReplaceKeepsTheSuccessorsDocument(t *testing.T) {
	f := newFile(t)
	write(t, f, "old")
	// The writer stays in its first fsync long enough to lose the lock there.
	c := startTraced(t, f, "-e", "inject=fsync:delay_enter=2000000")
	c.do("lock 10s", "held")
	c.tell("replace new")
	eventually(t, "the writer is in the middle", func() bool { return len(temps(t, f)) == 1 })
	if err := os.Remove(f.LockPath()); err != nil {
		t.Fatal(err)
	}
	if line := c.want("error"); !strings.Contains(line, ErrLockLost.Error()) {
		t.Errorf("Replace says %q, want %q", line, ErrLockLost)
	}
	wantText(t, f, "old")
	wantNoLitter(t, f)
}
