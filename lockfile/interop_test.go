package lockfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// foreign is a program in another language that tries the lock: it prints "held" and keeps it until its standard input
// ends, or prints "busy".
type foreign struct {
	name    string
	tool    string // what must be installed, and what the holder is called
	file    string
	source  string
	wrapper string // what runs the source, where that is not the tool itself
}

var foreigners = []foreign{
	{
		name: "python flock", tool: "python3", file: "dispatch.py",
		source: `
import fcntl, sys
lock = open(sys.argv[1], "r+")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("busy", flush=True)
else:
    print("held", flush=True)
    sys.stdin.read()
`,
	},
	{
		name: "python lockf", tool: "python3", file: "dispatch.py",
		source: `
import fcntl, sys
lock = open(sys.argv[1], "r+")
try:
    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("busy", flush=True)
else:
    print("held", flush=True)
    sys.stdin.read()
`,
	},
	{
		name: "perl flock", tool: "perl", file: "dispatch.pl",
		source: `
use Fcntl ':flock';
$| = 1;
open(my $lock, '+<', $ARGV[0]) or die "open: $!";
if (!flock($lock, LOCK_EX | LOCK_NB)) { print "busy\n"; exit }
print "held\n";
my @rest = <STDIN>;
`,
	},
	{
		name: "flock(1)", tool: "flock", file: "dispatch.sh",
		source: `flock --nonblock --close "$1" sh -c 'echo held; cat >/dev/null' || echo busy
`,
		wrapper: "sh",
	},
	{
		name: "java FileChannel", tool: "java", file: "Dispatch.java",
		source: `
import java.io.RandomAccessFile;

public class Dispatch {
    public static void main(String[] args) throws Exception {
        try (var file = new RandomAccessFile(args[0], "rw"); var lock = file.getChannel().tryLock()) {
            System.out.println(lock == null ? "busy" : "held");
            if (lock != null) System.in.readAllBytes();
        }
    }
}
`,
	},
}

func (p foreign) start(t *testing.T, f *File) *child {
	t.Helper()
	tool := needTool(t, p.tool)
	script := filepath.Join(t.TempDir(), p.file)
	if err := os.WriteFile(script, []byte(p.source), 0o600); err != nil {
		t.Fatal(err)
	}
	if p.wrapper != "" {
		tool = p.wrapper
	}
	return start(t, exec.Command(tool, script, f.LockPath()))
}

func TestProgramsInOtherLanguagesExcludeAndAreExcluded(t *testing.T) {
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
	for _, p := range foreigners {
		t.Run(p.name, func(t *testing.T) {
			f := newFile(t)
			held := hold(t, f)
			p.start(t, f).want("busy")
			held.Unlock()

			holder := p.start(t, f)
			holder.want("held")
			_, err := f.Lock(t.Context(), 0)
			busy, ok := errors.AsType[*BusyError](err)
			if !ok {
				t.Fatalf("Lock = %v, want a BusyError", err)
			}
			if runtime.GOOS == "linux" {
				if len(busy.Holders) != 1 || !strings.HasPrefix(busy.Holders[0].Program, p.tool+" ") {
					t.Fatalf("holders are %v, want one %s", busy.Holders, p.tool)
				}
				want := fmt.Sprintf("reservations.json is busy: held by %v", busy.Holders[0])
				if p.wrapper == "" && busy.Holders[0].Pid != holder.cmd.Process.Pid {
					t.Errorf("the holder is pid %d, want %d", busy.Holders[0].Pid, holder.cmd.Process.Pid)
				}
				if err.Error() != want {
					t.Errorf("Lock says %q, want %q", err, want)
				}
			}

			// Who waits meanwhile gets it when that program ends.
			got := make(chan error)
			go func() {
				held, err := f.Lock(t.Context(), patienceOfTests)
				if err == nil {
					err = held.Unlock()
				}
				got <- err
			}()
			eventually(t, "request in the queue", func() bool { return queueLen(f) == 1 })
			holder.end()
			if err := <-got; err != nil {
				t.Error(err)
			}
		})
	}
}
