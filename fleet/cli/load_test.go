package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// used is the processor time that a process and its ended children have taken so far, to the hundredth of a second.
func used(pid int) (own, children time.Duration) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	// utime, stime, cutime and cstime
	for i, f := range bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[11:15] {
		n, _ := strconv.Atoi(string(f))
		d := time.Duration(n) * 10 * time.Millisecond
		if i < 2 {
			own += d
		} else {
			children += d
		}
	}
	return own, children
}

// BenchmarkAtRest measures what the whole of the program costs while nothing happens: the console in a terminal with the git that it
// calls, the daemon, and the holder of an idle agent, with fifty trees. One round is one second.
func BenchmarkAtRest(b *testing.B) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		b.Skipf("what a process uses is read from /proc: %v", err)
	}
	r := newRig(b, "roots = [\"DIR/src\"]\n"+agents)
	for i := range 50 {
		r.repo(fmt.Sprintf("tree-%02d", i))
	}
	r.must(nil, "up")
	if out, code := r.dispatch(filepath.Join(r.dir, "src", "tree-07"), "--profile", "worker"); code != 0 {
		b.Fatalf("dispatch: exit %d: %+v", code, out)
	}
	c := r.open(120, 40)
	c.shows("tree-07")
	c.shows("daemon up")

	pids := map[string]int{"console": c.cmd.Process.Pid, "daemon": r.daemonPid(), "holder": 0}
	for _, pid := range marked(r.state) {
		if strings.Contains(commandLine(pid), "holder") {
			pids["holder"] = pid
		}
	}
	if pids["holder"] == 0 {
		b.Fatal("the agent has no holder")
	}
	time.Sleep(8 * time.Second) // git looks at each tree for the first time
	before := map[string]time.Duration{}
	for name, pid := range pids {
		before[name], _ = used(pid)
	}
	_, gitBefore := used(pids["console"])
	wrote, began := len(c.output()), time.Now()
	for b.Loop() {
		time.Sleep(time.Second)
	}
	took := time.Since(began)
	share := func(name string, d time.Duration) { b.ReportMetric(100*d.Seconds()/took.Seconds(), name+"-core-%") }
	for name, pid := range pids {
		own, children := used(pid)
		share(name, own-before[name])
		if name == "console" {
			share("git", children-gitBefore)
		}
	}
	b.ReportMetric(float64(len(c.output())-wrote), "bytes")
	b.ReportMetric(0, "ns/op") // the time is fixed
	b.Logf("written meanwhile: %q", c.output()[wrote:])
}
