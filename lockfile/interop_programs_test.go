package lockfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// foreign is a program in another language that works on the lock, as told by its standard input: "lock" tries the lock and
// answers "held" or "busy", "unlock" answers "free".
type foreign struct {
	name    string
	family  string // of its lock, by the kernel's name
	tool    string // what must be installed
	file    string
	source  string
	run     []string // what runs the source; empty means the tool
	compile []string // what makes a program of the source: OUT is that program's path
	program string   // how a holder's command line begins; empty means as the tool
}

var foreigners = []foreign{
	{
		name: "flock(1)", family: "flock", tool: "flock", file: "dispatch.sh", run: []string{"sh"}, program: "sh ",
		source: `
exec 9<>"$1"
while read -r verb; do
	case $verb in
	lock) if flock --nonblock 9; then echo held; else echo busy; fi ;;
	unlock) flock --unlock 9; echo free ;;
	esac
done
`,
	},
	{
		name: "python flock", family: "flock", tool: "python3", file: "dispatch.py",
		source: `
import fcntl, sys
lock = open(sys.argv[1], "r+")
for verb in iter(sys.stdin.readline, ""):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB if verb == "lock\n" else fcntl.LOCK_UN)
        print("held" if verb == "lock\n" else "free", flush=True)
    except BlockingIOError:
        print("busy", flush=True)
`,
	},
	{
		name: "perl flock", family: "flock", tool: "perl", file: "dispatch.pl",
		source: `
use Fcntl ':flock';
$| = 1;
open(my $lock, '+<', $ARGV[0]) or die "open: $!";
while (<STDIN>) {
    if (/^unlock/) { flock($lock, LOCK_UN); print "free\n" }
    else { print flock($lock, LOCK_EX | LOCK_NB) ? "held\n" : "busy\n" }
}
`,
	},
	{
		name: "node with flock(1)", family: "flock", tool: "node", file: "dispatch.cjs",
		// Node has no flock(2) of its own; a lock belongs to the open file, which it shares with flock(1).
		source: `
const fs = require('fs'), { spawnSync } = require('child_process')
const lock = fs.openSync(process.argv[2], 'r+')
const flock = how => spawnSync('flock', [how, '3'], { stdio: ['ignore', 'ignore', 'inherit', lock] }).status === 0
require('readline').createInterface({ input: process.stdin }).on('line', verb => {
  if (verb === 'unlock') console.log(flock('--unlock') && 'free')
  else console.log(flock('--nonblock') ? 'held' : 'busy')
})
`,
	},
	{
		name: "rust File::lock", family: "flock", tool: "rustc", file: "dispatch.rs",
		compile: []string{"rustc", "--edition", "2021", "-o", "OUT", "SOURCE"}, program: "dispatch.rs.out ",
		source: `
use std::{env, fs::File, io::{self, BufRead}};
fn main() {
    let lock = File::options().read(true).write(true).open(env::args().nth(1).unwrap()).unwrap();
    for verb in io::stdin().lock().lines() {
        if verb.unwrap() == "unlock" {
            lock.unlock().unwrap();
            println!("free");
        } else {
            println!("{}", if lock.try_lock().is_ok() { "held" } else { "busy" });
        }
    }
}
`,
	},
	{
		name: "c flock", family: "flock", tool: "cc", file: "flock.c",
		compile: []string{"cc", "-o", "OUT", "SOURCE"}, program: "flock.c.out ",
		source: `
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
int main(int argc, char **argv) {
	char verb[16];
	int lock = open(argv[1], O_RDWR);
	while (fgets(verb, sizeof verb, stdin)) {
		if (verb[0] == 'u') puts(flock(lock, LOCK_UN) ? "failed" : "free");
		else puts(flock(lock, LOCK_EX | LOCK_NB) ? "busy" : "held");
		fflush(stdout);
	}
}
`,
	},
	{
		name: "python lockf", family: "fcntl", tool: "python3", file: "dispatch.py",
		source: `
import fcntl, sys
lock = open(sys.argv[1], "r+")
for verb in iter(sys.stdin.readline, ""):
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB if verb == "lock\n" else fcntl.LOCK_UN)
        print("held" if verb == "lock\n" else "free", flush=True)
    except OSError:
        print("busy", flush=True)
`,
	},
	{
		name: "c lockf", family: "fcntl", tool: "cc", file: "lockf.c",
		compile: []string{"cc", "-o", "OUT", "SOURCE"}, program: "lockf.c.out ",
		source: `
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
	char verb[16];
	int lock = open(argv[1], O_RDWR);
	while (fgets(verb, sizeof verb, stdin)) {
		if (verb[0] == 'u') puts(lockf(lock, F_ULOCK, 0) ? "failed" : "free");
		else puts(lockf(lock, F_TLOCK, 0) ? "busy" : "held");
		fflush(stdout);
	}
}
`,
	},
	{
		name: "java FileChannel", family: "fcntl", tool: "java", file: "Dispatch.java",
		source: `
import java.io.*;
import java.nio.channels.FileLock;

public class Dispatch {
    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in));
        try (var channel = new RandomAccessFile(args[0], "rw").getChannel()) {
            FileLock lock = null;
            for (String verb; (verb = in.readLine()) != null; ) {
                if (verb.equals("unlock")) {
                    lock.release();
                    System.out.println("free");
                    continue;
                }
                lock = channel.tryLock();
                System.out.println(lock == null ? "busy" : "held");
            }
        }
    }
}
`,
	},
}

// build writes p into dir and compiles it where it must be, and gives the command that runs it. It says why where it cannot.
func (p foreign) build(t *testing.T, dir string) (argv []string, why string) {
	t.Helper()
	tool, err := exec.LookPath(p.tool)
	if err != nil {
		return nil, p.tool + " is not installed"
	}
	dir = filepath.Join(dir, strings.ReplaceAll(p.name, " ", "-"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, p.file)
	if err := os.WriteFile(source, []byte(p.source), 0o600); err != nil {
		t.Fatal(err)
	}
	switch {
	case p.compile != nil:
		args := make([]string, len(p.compile)-1)
		for i, arg := range p.compile[1:] {
			args[i] = strings.NewReplacer("OUT", source+".out", "SOURCE", source).Replace(arg)
		}
		if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
			return nil, p.tool + " does not compile it: " + err.Error() + ": " + string(out)
		}
		return []string{source + ".out"}, ""
	case p.run != nil:
		return append(p.run, source), ""
	}
	return []string{tool, source}, ""
}

// called is how the command line of a running p begins.
func (p foreign) called() string {
	if p.program != "" {
		return p.program
	}
	return p.tool + " "
}
