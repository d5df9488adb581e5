package lockfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func init() { children["replace"] = replaceOnce }

// Outcomes of a process that takes the lock and replaces the document once: its exit codes.
const (
	isDone       = 0
	isUnsure     = 10 // a DurabilityError
	isNotLocked  = 11
	isRefused    = 12 // by Replace
	isNotFreed   = 13 // by Unlock, after the replacement
	isUnexpected = 1
)

// replaceOnce makes "new" the document args[0]. What it has to say goes by pwrite(2) to descriptor 3: write(2) is made to fail here.
func replaceOnce(args []string) error {
	f, err := Open(args[0])
	if err != nil {
		return err
	}
	end := func(code int, err error) {
		os.NewFile(3, "says").WriteAt([]byte(err.Error()), 0)
		os.Exit(code)
	}
	held, err := f.Lock(background, patienceOfTests)
	if err != nil {
		end(isNotLocked, err)
	}
	err = held.Replace([]byte("new"))
	if _, unsure := errors.AsType[*DurabilityError](err); err != nil && !unsure {
		end(isRefused, err)
	} else if unsure {
		defer end(isUnsure, err)
	}
	if err := held.Unlock(); err != nil {
		end(isNotFreed, err)
	}
	return nil
}

// TestEverySystemCallOfAWriteMayFail makes each system call of a replacement fail with each error that it can give, or kill the writer, and
// demands that the outcome is told as it is, that the document is whole, and that the next writer needs nobody's help.
func TestEverySystemCallOfAWriteMayFail(t *testing.T) {
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
	needTool(t, "strace")
	const (
		lock, dir, doc, anywhere = "the lock file", "the directory", "the document", ""
	)
	for _, row := range []struct {
		call, on string
		errs     string
		most     int   // the failure is aimed at the first, the second and so on; at all of them if zero
		want     []int // the outcomes that may come of it
		says     string
	}{
		{"/^open", lock, "EIO ENOMEM", 0, []int{isNotLocked}, ""},
		{"/^open", lock, "EMFILE ENFILE", 0, []int{isNotLocked}, "open files"},
		{"/^open", lock, "EROFS", 0, []int{isNotLocked}, "remount the file system"},
		{"/^open", lock, "EINTR KILL", 4, []int{isDone}, ""},
		{"flock", lock, "EIO ENOMEM", 0, []int{isNotLocked}, ""},
		{"flock", lock, "ENOLCK", 0, []int{isNotLocked}, "on a local one"},
		{"flock", lock, "EINTR KILL", 3, []int{isDone}, ""},
		{"fcntl", lock, "ENOLCK EIO", 0, []int{isNotLocked}, ""},
		{"fcntl", lock, "EINVAL ENOSYS", 0, []int{isDone}, ""}, // no such locks here
		{"fcntl", lock, "EINTR KILL", 3, []int{isDone}, ""},
		{"/^f?statfs", lock, "EIO ENOMEM", 0, []int{isNotLocked}, ""},
		{"/stat(at|64)?$", lock, "EIO EACCES", 2, []int{isDone, isNotLocked, isRefused}, ""},
		{"/stat(at|64)?$", lock, "EINTR KILL", 4, []int{isDone}, ""},
		{"close", lock, "EIO KILL", 4, []int{isDone, isNotLocked, isNotFreed, isRefused}, ""},

		{"/^open", dir, "EMFILE ENFILE EIO", 0, []int{isRefused}, ""},
		{"/^open", dir, "EINTR KILL", 1, []int{isDone}, ""},
		{"/^getdents", dir, "EIO", 0, []int{isRefused}, ""},
		{"/^getdents", dir, "EINTR KILL", 2, []int{isDone}, ""},
		{"fsync", dir, "EIO ENOSPC EDQUOT", 0, []int{isUnsure}, ""},
		{"fsync", dir, "EINTR KILL", 1, []int{isDone}, ""},

		{"/stat(at|64)?$", doc, "EIO ENOMEM", 0, []int{isRefused, isUnexpected}, ""},
		{"/^rename", doc, "EIO ENOMEM", 0, []int{isRefused}, ""},
		{"/^rename", doc, "ENOSPC", 0, []int{isRefused}, "make room on the file system of"},
		{"/^rename", doc, "EDQUOT", 0, []int{isRefused}, "make room within your quota"},
		{"/^rename", doc, "EROFS", 0, []int{isRefused}, "remount the file system"},
		{"/^rename", doc, "EXDEV EBUSY", 0, []int{isRefused}, "mount its directory, not the file"},
		{"/^rename", doc, "EINTR KILL", 1, []int{isDone}, ""},

		// The temporary file has no name that could be aimed at. Strace counts for each thread, and not every shot meets it.
		{"/^open", anywhere, "EMFILE ENOSPC EDQUOT", 12, []int{isDone, isNotLocked, isRefused, isUnexpected}, ""},
		{"/^fchmod", anywhere, "EPERM EIO ENOSPC", 0, []int{isRefused}, ""},
		{"/^fchmod", anywhere, "EINTR KILL", 1, []int{isDone}, ""},
		{"write", anywhere, "ENOSPC EDQUOT EIO", 2, []int{isDone, isRefused}, ""},
		{"write", anywhere, "EINTR KILL", 2, []int{isDone}, ""},
		{"fsync", anywhere, "EIO ENOSPC EDQUOT", 0, []int{isRefused}, ""},
		{"fsync", anywhere, "EINTR KILL", 2, []int{isDone}, ""},
		{"/^unlink", anywhere, "EIO EACCES", 0, []int{isRefused}, ""}, // what a dead writer left cannot be removed
		{"/^unlink", anywhere, "EINTR KILL", 1, []int{isDone}, ""},
	} {
		for errno := range strings.FieldsSeq(row.errs) {
			t.Run(fmt.Sprintf("%s at %s %s", errno, strings.Trim(row.call, "/^"), row.on), func(t *testing.T) {
				met := false
				for n := min(1, row.most); n <= row.most; n++ {
					f := newFile(t)
					write(t, f, "old")
					s := shot{call: row.call, what: "error=" + errno, n: n,
						path: map[string]string{lock: f.LockPath(), dir: filepath.Dir(f.Path()), doc: f.Path()}[row.on]}
					want := row.want
					if errno == "KILL" {
						s.what, want = "signal=KILL", []int{isKilled, isDone}
					}
					met = s.fire(t, f, want, row.says) || met
				}
				if !met {
					t.Error("it never met its aim")
				}
			})
		}
	}
}

// isKilled is the outcome of a process that SIGKILL ended.
const isKilled = -1

// shot is a failure of one system call.
type shot struct {
	call, path string // as strace names them; no path means anywhere
	what       string
	n          int // at which call of a thread; zero means at each
}

// fire lets a process write f under the failure, and demands one of the outcomes in want and that f is sound. It reports whether the
// failure came about.
func (s shot) fire(t *testing.T, f *File, want []int, says string) (met bool) {
	t.Helper()
	stale := filepath.Join(filepath.Dir(f.Path()), tempPrefix(filepath.Base(f.Path()))+"1-dead")
	if err := os.WriteFile(stale, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	inject := "inject=" + s.call + ":" + s.what
	if s.n > 0 {
		inject += fmt.Sprintf(":when=%d", s.n)
	}
	args := []string{"-f", "-qq", "-o", trace, "-e", "trace=" + s.call, "-e", inject}
	if s.path != "" {
		args = append(args, "-P", s.path)
	}
	said, err := os.Create(filepath.Join(t.TempDir(), "says"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd := exec.Command("strace", append(args, self(t), f.Path())...)
	cmd.Env = append(os.Environ(), childEnv+"=replace")
	cmd.ExtraFiles = []*os.File{said}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "PTRACE") {
		t.Skipf("SKIPPED: strace may not trace here: %s", out)
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	code := cmd.ProcessState.ExitCode() // strace ends as its child did
	text, _ := os.ReadFile(said.Name())
	traced, _ := os.ReadFile(trace)
	met = strings.Contains(string(traced), "INJECTED") || code == isKilled

	if !slices.Contains(want, code) {
		t.Errorf("%s, the %d. time: exit %d, want %v: it says %q, %s", s.what, s.n, code, want, text, out)
	}
	if code >= isUnsure && !strings.Contains(string(text), f.Path()) || !strings.Contains(string(text), says) {
		t.Errorf("%s, the %d. time: it says %q, want the path and %q", s.what, s.n, text, says)
	}
	wanted := map[int]string{isDone: "new", isUnsure: "new", isNotFreed: "new", isNotLocked: "old", isRefused: "old", isUnexpected: "old"}[code]
	if got, err := f.Read(); err != nil || code != isKilled && string(got) != wanted || string(got) != "old" && string(got) != "new" {
		t.Errorf("%s, the %d. time: exit %d, and the document is %q, %v", s.what, s.n, code, got, err)
	}
	if code == isRefused && !strings.Contains(s.call, "unlink") {
		for _, name := range temps(t, f) {
			if name != stale {
				t.Errorf("%s, the %d. time: it left %s", s.what, s.n, name)
			}
		}
	}
	// Nobody has to clean up.
	write(t, f, "next")
	wantText(t, f, "next")
	wantNoLitter(t, f)
	return met
}
